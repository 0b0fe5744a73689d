"""Files and folders that a table of inputs names under ``made``, each made by a function here."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from cse_core.runtime.loading import package_path

Maker = Callable[[Path], None]
MAKERS: dict[str, Maker] = {}


def maker(name: str) -> Callable[[Maker], Maker]:
    """Register a function that makes what ``made = ["NAME"]`` or ``"NAME as PATH"`` asks for."""

    def add(function: Maker) -> Maker:
        MAKERS[name] = function
        return function

    return add


def starter_folder() -> Path:
    """Return the folder of the embedded encoder."""
    from cse_cli.installed import Installed

    return package_path(Installed().registry.encoder("starter").spec.path)


@maker("encoder")
def encoder(path: Path) -> None:
    """A copy of the embedded encoder's folder."""
    shutil.copytree(starter_folder(), path)


@maker("fifo")
def fifo(path: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(path)


@maker("hidden size 0")
def hidden_size_0(path: Path) -> None:
    """An encoder whose config says that its vectors have no dimensions."""
    encoder(path)
    config = path / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text("utf-8")), "hidden_size": 0}))
