"""The files of a saved model or run by which it is found and read; imports no torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cse_core.errors import CseError

RUN_FILE = "run.toml"
"""What a run writes beside its model; it is a recipe too."""


HEADS = "heads.safetensors"
"""Weights of its heads, and of a row pooler or slicer that has any."""


MANIFEST = "cse.json"
"""The file that says how ``cse`` encodes with a saved model, and if it is from the starter."""


def model_folder(path: Path, name: str) -> Path:
    """Return the folder with the encoder's ``config.json``: itself, its ``model/``, or a module's.

    Raises:
        CseError: If there is none.
    """
    if not path.is_dir():
        raise CseError(
            "is a file, not a model folder",
            where="model.name",
            value=name,
            hint="name the folder that holds config.json",
        )
    for folder in (path, path / "model"):
        if (folder / "config.json").is_file():
            return folder
        modules = folder / "modules.json"
        if modules.is_file():
            for module in _json(modules, name, kind=list):
                inner = folder / str(module.get("path", "")) if isinstance(module, dict) else folder
                if (inner / "config.json").is_file() and inner != folder:
                    return inner
    hint = "name the folder that save_pretrained wrote"
    if (path / RUN_FILE).is_file():
        hint = "this run has saved no model yet"
    raise CseError("is a folder without config.json", where="model.name", value=name, hint=hint)


def _json(path: Path, name: str, *, kind: type) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no JSON text"
        raise CseError(
            f"{path.name} {reason}", where="model.name", value=name, hint="save the model again"
        ) from None
    if not isinstance(content, kind):
        raise CseError(f"{path.name} has another form", where="model.name", value=name)
    return content
