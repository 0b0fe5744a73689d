"""The index of published plugins: a small JSON file that names distributions and what they bring.

``CSE_PLUGIN_INDEX`` says where it is, an address or a file; what was fetched is kept for a day in
the cache folder. ``docs/directory.py`` writes one from wheels or from a package index::

    {"plugins": [{"name": "cse-margin", "version": "0.1.0", "summary": "A margin",
                  "plugins": ["margin"], "commands": ["margin plot"]}]}
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cse_core.errors import CseError
from cse_core.files import atomic_write, cache_folder

INDEX_VARIABLE = "CSE_PLUGIN_INDEX"
_DAY = 86_400.0
_SECONDS = 3
"""How long the address may take to answer."""
_MAX_BYTES = 2**22


@dataclass(frozen=True)
class Published:
    """A distribution of the index.

    Attributes:
        plugins: Names of its entry points of group ``cse``, by which its parts are usually called.
        commands: What a user types after ``cse``.
    """

    name: str
    version: str
    summary: str
    plugins: tuple[str, ...]
    commands: tuple[str, ...]


def published(oldest: float = 0.0, *, fetch: bool = True) -> tuple[Published, ...]:
    """Return the distributions of the index, by a copy that is at most ``oldest`` seconds old.

    An older copy is returned where the address does not answer, or ``fetch`` says not to ask it.

    Raises:
        CseError: If none is named, it cannot be read, or is not an index.
    """
    address = os.environ.get(INDEX_VARIABLE, "").strip()
    if not address:
        what, hint = "no index of plugins is named", "set it to the address or the file of one"
        raise CseError(what, where=INDEX_VARIABLE, hint=hint)
    try:
        text = _read(address, oldest, fetch)
        return tuple(_entry(**entry) for entry in json.loads(text)["plugins"])
    except OSError as error:
        what = f"the index of plugins does not answer: {getattr(error, 'reason', error)}"
        raise CseError(what, where=INDEX_VARIABLE, value=address, hint="try again online") from None
    except (ValueError, KeyError, TypeError) as error:
        what = f"is not an index of plugins: {error}"
        raise CseError(what, where=INDEX_VARIABLE, value=address) from None


def _entry(
    *, name: str, version: str, summary: str, plugins: Any = (), commands: Any = (), **_: Any
) -> Published:
    line = " ".join(str(summary).split())
    return Published(
        str(name), str(version), line, tuple(map(str, plugins)), tuple(map(str, commands))
    )


def _read(address: str, oldest: float, fetch: bool) -> bytes:
    if not address.startswith(("http://", "https://")):
        return Path(address).expanduser().read_bytes()
    folder = cache_folder()
    name = f"{hashlib.sha256(address.encode()).hexdigest()[:16]}.json"
    copy = None if folder is None else folder / "plugins" / name
    kept = copy.read_bytes() if copy is not None and copy.is_file() else None
    if copy is not None and kept is not None and time.time() - copy.stat().st_mtime < oldest:
        return kept
    try:
        if not fetch:
            raise OSError("it was not asked")
        from urllib.request import urlopen

        with urlopen(address, timeout=_SECONDS) as answer:
            text: bytes = answer.read(_MAX_BYTES)
    except OSError:
        if kept is None:
            raise
        return kept
    json.loads(text)
    if copy is not None:
        copy.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(copy, text.decode())
    return text


@cache
def names() -> frozenset[str]:
    """Return the names that the index listed when it was last asked; none without an index."""
    try:
        return frozenset(one.name for one in published(fetch=False))
    except CseError:
        return frozenset()


def who_has(name: str, *, command: bool = False) -> str:
    """Return a hint at the published distribution that may bring a part or a command."""
    try:
        index = published(_DAY)
    except CseError:
        return ""
    owners = {n: one.name for one in index for n in (one.commands if command else one.plugins)}
    owners |= {n.partition(" ")[0]: owner for n, owner in owners.items()}
    if name not in owners:
        return ""
    return f"{owners[name]} may have it: pip install {owners[name]}"
