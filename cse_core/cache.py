"""The folder of what can be made again: measurements of this machine, token tables."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "CSE_CACHE"
"""Environment variable that names another folder; an empty text or ``off`` is none."""


def cache_folder() -> Path | None:
    """Return the folder, there or not: the user's of this system, or what ``CSE_CACHE`` names.

    Returns:
        None where nothing is to be kept.
    """
    named = os.environ.get(VARIABLE)
    if named is None:
        import platformdirs

        return Path(platformdirs.user_cache_dir("cse"))
    if named.strip().lower() in ("", "off"):
        return None
    return Path(os.path.expanduser(named))
