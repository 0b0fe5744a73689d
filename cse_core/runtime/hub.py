"""Whether the Hugging Face hub can be asked, and what its models' JSON files say."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from cse_core.errors import CseError, did_you_mean
from cse_core.runtime.model_files import JSON_FILES, read_json

_SECONDS = 3.0
_PATIENCE = 5.0
"""Seconds that the hub has for an answer."""


def is_hub_reachable() -> bool:
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


def json_files_on_hub(name: str, encoders: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the JSON files of a model on the hub: cached ones, else what it answers now.

    Empty where it cannot be reached and has nothing cached; loading then reports the reason.
    ``encoders`` are names of installed ones, for the hint.

    Raises:
        CseError: If the hub has no model of this name, or a file is not a JSON table.
    """
    import huggingface_hub as hub
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    files: dict[str, dict[str, Any]] = {}
    reachable = True
    for file in JSON_FILES:
        settings = files.get("tokenizer_config.json", {})
        says_enough = isinstance(settings.get("do_lower_case"), bool) and "mask_token" in settings
        if file == "tokenizer.json" and says_enough:
            continue  # megabytes that would tell nothing new
        try:
            path = hub.hf_hub_download(name, file, local_files_only=True)
        except LocalEntryNotFoundError:
            if not reachable:
                continue
            try:
                # Asked first because, other than the download, it does not try for half a minute.
                hub.get_hf_file_metadata(hub.hf_hub_url(name, file), timeout=_PATIENCE)
                path = hub.hf_hub_download(name, file)
            except GatedRepoError:
                reachable = False
                continue
            except RepositoryNotFoundError:
                raise CseError(
                    "is not a folder, an installed encoder or a model on the hub",
                    where="model.name",
                    value=name,
                    hint=did_you_mean(name, encoders),
                ) from None
            except EntryNotFoundError:
                continue
            except Exception:  # a network has many ways to fail
                reachable = False
                continue
        files[file] = read_json(Path(path), name, kind=dict)
    return files
