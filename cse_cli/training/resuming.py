"""What ``cse train --resume`` looks at before it loads anything: is the run what it was?"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_cli.terminal.console import echo_err
from cse_core.errors import CseError, raise_all

if TYPE_CHECKING:
    from cse_core.training.run_folder import RunFolder

_SHOWN = 5
"""Changed settings that a refusal names."""


def check_run(folder: RunFolder) -> None:
    """Refuse a run that is finished or has other settings now; remove a result that is damaged.

    Raises:
        CseError: If it is finished, which tells of a damaged model too, or if its ``run.toml``
            was changed: each setting by name, as it was and as it is.
    """
    _check_unfinished(folder)
    written = _written(folder)
    try:
        text = folder.recipe.read_bytes() if folder.recipe.is_file() else b""
        now = dict(_flat(tomllib.loads(text.decode())))
    except (OSError, ValueError, RecursionError):
        now = {}
    if written is None or not now:  # a resume writes it again
        if written is not None:
            echo_err(f"{folder.recipe} is damaged or missing: writing it again")
        return
    then = dict(_flat(tomllib.loads(written.decode())))
    changed = [path for path in {**then, **now} if then.get(path) != now.get(path)]
    hint = f"restore it in {folder.recipe}, or start a new run with this file as --recipe"
    raise_all(
        [
            CseError(f"was {then.get(path)!r} when the run began", where=path,
                     value=now.get(path, "nothing"), hint=hint)
            for path in changed[:_SHOWN]
        ]
    )  # fmt: skip


def recorded_reports(folder: Path) -> list[str]:
    """Return ``train.report`` of a run as it began."""
    from cse_core.training.run_folder import RunFolder

    text = _written(RunFolder(folder)) or b""
    reports: list[str] = tomllib.loads(text.decode()).get("train", {}).get("report", [])
    return reports


def _written(folder: RunFolder) -> bytes | None:
    """Return ``run.toml`` as it was written, None where no copy of it is whole."""
    from cse_core.runtime.atomic_files import verify_checksums

    for path in reversed(folder.checkpoints()):
        if verify_checksums(path, folder.recipe.name) is None:
            return (path / folder.recipe.name).read_bytes()
    return None


def _check_unfinished(folder: RunFolder) -> None:
    from cse_core.runtime.atomic_files import verify_checksums
    from cse_core.training.run_folder import RESULT

    result = folder.path / RESULT
    if not result.exists():
        return
    try:
        content = result.read_bytes() if result.is_file() else b""
        whole = {"model", "steps", "scores"} <= json.loads(content).keys()
    except (OSError, ValueError, AttributeError, RecursionError):
        whole = False
    wrong = verify_checksums(folder.model) if folder.model.is_dir() else "every file is missing"
    if whole and wrong:
        raise CseError(
            f"is finished, and of its model {wrong}",
            where="--resume",
            value=str(folder.path),
            hint=f"remove {result} to save the model again from the last checkpoint",
        )
    if whole:
        path = folder.path
        raise CseError(
            f"run {str(path)!r} has already finished",
            where="--resume",
            hint=f"`cse eval {path}` scores it, `cse train --recipe {path} --out DIR` repeats it, "
            f"--model {path} beside that trains its model further",
        )
    if result.is_file() and not result.is_symlink():
        echo_err(f"{result} is damaged: writing it again")
        result.unlink(missing_ok=True)
    else:
        raise CseError("is not a file", where=str(result), hint="move it away")


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings of a table by their paths, and the order of tables in a list."""
    if isinstance(value, dict):
        for key, content in value.items():
            yield from _flat(content, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        named = {str(item.get("name", place)): item for place, item in enumerate(value)}
        yield path, list(named)
        yield from _flat(named, path)
    else:
        yield path, value
