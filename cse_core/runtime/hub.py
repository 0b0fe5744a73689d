"""Whether the Hugging Face hub can be asked."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit
from urllib.request import getproxies

_SECONDS = 3.0


def hub_answers() -> bool:
    """Tell whether the hub answers, without the minute that its client would try."""
    from huggingface_hub import constants

    if constants.is_offline_mode():
        return False
    if getproxies():
        return True
    address = urlsplit(constants.ENDPOINT)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        with socket.create_connection((address.hostname or "", port), timeout=_SECONDS):
            return True
    except OSError:
        return False
