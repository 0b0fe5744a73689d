"""What to type to install a distribution of this repository: from where the toolkit came."""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cse_core.registry.plugin_info import TOOLKIT


def pip_install(name: str, *flags: str, versions: str = "") -> str:
    """Return the command that installs a distribution, or says what to update.

    A plugin of this repository is installed from where the toolkit was: its checkout, its folder of
    wheels or its repository. Everything else, and all where the toolkit came by its name, is
    installed by name.

    Args:
        name: The distribution.
        flags: Options of ``pip install``.
        versions: The versions that are wanted, such as ``>=9``.
    """
    source = _source(name)
    if source and versions:
        return f"update {source[-1]} to {name}{versions}"
    wanted = source or [f'"{name}{versions}"' if versions else name]
    return " ".join(["pip install", *flags, *wanted])


def _source(name: str) -> list[str]:
    """Return what follows ``pip install`` instead of a name; empty where the name does."""
    came_from = origin()
    url = str(came_from.get("url", ""))
    place = Path(unquote(urlsplit(url).path)) if url.startswith("file:") else None
    if "dir_info" in came_from and place is not None:
        folder = place if name == TOOLKIT else place / "plugins" / name.removeprefix("cse-")
        if (folder / "pyproject.toml").is_file():
            edits = ["-e"] if came_from["dir_info"].get("editable") else []
            return [*edits, _as_typed(folder)]
    elif "vcs_info" in came_from and (name == TOOLKIT or name in _known()):
        vcs = came_from["vcs_info"]
        inside = "" if name == TOOLKIT else f"#subdirectory=plugins/{name.removeprefix('cse-')}"
        revision = vcs.get("requested_revision") or vcs.get("commit_id", "")
        return [shlex.quote(f"{vcs.get('vcs', 'git')}+{url}@{revision}{inside}")]
    elif "archive_info" in came_from and place is not None:
        wheels = sorted(place.parent.glob(f"{name.replace('-', '_')}-*.whl"))
        return [_as_typed(wheels[-1])] if wheels else []
    return []


@cache
def origin() -> dict[str, Any]:
    """Return where the installer says the toolkit came from; empty where it came by its name."""
    try:
        found = json.loads(distribution(TOOLKIT).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _known() -> set[str]:
    text = Path(__file__).with_name("directory.toml").read_text(encoding="utf-8")
    return set(tomllib.loads(text))


def _as_typed(path: Path) -> str:
    """Return a path below the working directory as relative to it, others whole, quoted."""
    try:
        inside = path.relative_to(Path.cwd())
    except (ValueError, OSError):
        return shlex.quote(str(path))
    text = str(inside)
    return shlex.quote(text if text == "." or os.sep in text else f".{os.sep}{text}")
