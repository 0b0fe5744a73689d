"""JSON files of runs and studies: anything may lie there, and one line says what is wrong."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from cse_core.errors import CseError, truncate_repr
from cse_core.files import file_text


def read_json(path: Path, shape: Any, hint: str, *, lines: bool = False) -> Any:
    """Read a JSON file of a run or of a study; None, or no lines, if it is missing.

    Args:
        path: The file.
        shape: What its content, or that of each line, has to be (:func:`check_shape`).
        hint: What to do about one that is damaged.
        lines: Whether it has a JSON value a line; a last one that a killed process cut is left out.

    Raises:
        CseError: If it is not a regular file, too large, not JSON, or of another shape.
    """
    if not os.path.lexists(path):
        return [] if lines else None
    content: Any = []
    place = ""
    try:
        text = file_text(path)
        if lines:
            *whole, rest = text.split("\n")
            for number, line in enumerate(whole, 1):
                place = f"line {number}: "
                content += [json.loads(line)] if line.strip() else []
            with suppress(ValueError, RecursionError):
                content.append(json.loads(rest))
        else:
            content = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        what = "cannot be read" if isinstance(error, OSError) else f"is damaged: {place}no JSON"
        reason = f": {error.strerror or error}" if isinstance(error, OSError) else ""
        raise CseError(f"{what}{reason}", where=str(path), hint=hint) from None
    check_shape(content, [shape] if lines else shape, path, hint)
    return content


def check_shape(content: Any, shape: Any, path: Path, hint: str, place: str = "") -> None:
    """Refuse what was read from a file, by the first place that does not fit a shape.

    A shape is a type or several; a list with the shape of its items; or a dict of shapes by key, of
    which each may be missing, and ``...`` stands for every other one.
    """
    kind: Any = type(shape) if isinstance(shape, list | dict) else shape
    if not isinstance(content, kind):
        what = f"is damaged: {place.lstrip('.') or 'it'} is {truncate_repr(content, 40)}"
        raise CseError(what, where=str(path), hint=hint)
    if isinstance(shape, dict):
        for key, value in content.items():
            check_shape(value, shape.get(key, shape.get(..., object)), path, hint, f"{place}.{key}")
    elif isinstance(shape, list):
        for number, value in enumerate(content, 1):
            check_shape(value, shape[0], path, hint, f"{place}.{number}")
