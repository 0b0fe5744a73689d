"""The folder of a run: what it holds, how it is begun, found again and read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from shlex import quote
from shutil import rmtree

from cse_core.errors import CseError
from cse_core.files import (
    EVALUATIONS,
    FOLDERS,
    METRICS,
    RESULT,
    RUN_FILE,
    atomic_write,
    disk_errors,
    lock_folder,
    remove_stale_files,
    writable_folder,
)
from cse_core.registry.plugin_info import TOOLKIT
from cse_engine.compose.composition import Composition

_STEP = r"(?:round-(\d{1,9})-)?step-(\d{1,18})"


class RunFolder:
    """A run's folder.

    Attributes:
        recipe: The file that repeats the run.
        metrics: A file with a JSON object a line: step, loss, lr and the speeds.
        model: Where the finished model is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recipe, self.metrics, self.model = path / RUN_FILE, path / METRICS, path / "model"

    @staticmethod
    def check_free(path: Path) -> None:
        """Raise a ``CseError`` if the folder holds a run."""
        if (path / RUN_FILE).exists() or RunFolder(path).checkpoints():
            hint = f"`cse train --resume {quote(str(path))}` continues it, --force replaces it"
            raise CseError("already holds a run", where="--out", value=str(path), hint=hint)

    def clear(self) -> None:
        """Remove what a run wrote and nothing else; at the end ``run.toml``, by which it is one."""
        with disk_errors(self.path):
            for name in (RESULT, METRICS, EVALUATIONS, *FOLDERS, RUN_FILE):
                path = self.path / name
                if path.is_dir() and not path.is_symlink():
                    rmtree(path)
                else:
                    path.unlink(missing_ok=True)

    @staticmethod
    def open(path: Path, where: str = "--resume") -> RunFolder:
        """Find the folder of a run that was begun; one of no run raises a ``CseError``."""
        folder = RunFolder(path)
        if not (folder.recipe.exists() or folder.checkpoints()):
            what = "is not a run: it has no run.toml"
            hint = "name the folder that `cse train` made, such as runs/NAME"
            raise CseError(what, where=where, value=str(path), hint=hint)
        return folder

    @contextmanager
    def held(self, where: str) -> Iterator[None]:
        """Keep other processes from writing to the folder; the end of this one frees it.

        What killed ones left of unfinished files and folders is removed. ``where`` is a flag, for
        errors.
        """
        with lock_folder(writable_folder(self.path, where), where, "training into it"):
            inside = (self.path / "checkpoints", self.path / "rounds")
            for folder in (self.path, *inside, *self.path.glob("rounds/*")):
                remove_stale_files(folder)
            yield

    def append(self, line: str) -> None:
        """Append a line to the metrics."""
        with disk_errors(self.metrics), self.metrics.open("a", encoding="utf-8") as file:
            file.write(line)

    def round(self, number: int) -> Path:
        """Return the folder of a round."""
        return self.path / "rounds" / str(number)

    def checkpoint(self, round_number: int, step: int) -> Path:
        """Return the folder of a checkpoint."""
        name = f"step-{step}" if round_number == 0 else f"round-{round_number}-step-{step}"
        return self.path / "checkpoints" / name

    def checkpoints(self) -> list[Path]:
        """Return complete checkpoints, the newest last."""
        folders = [
            p for p in (self.path / "checkpoints").glob("*step-*") if place_of(p) and p.is_dir()
        ]
        return sorted(folders, key=place_of)

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the run, whole or not at all."""
        with disk_errors(self.path / name):
            atomic_write(self.path / name, content.decode())


def place_of(checkpoint: Path) -> tuple[int, ...]:
    """Return round and step of a checkpoint's folder, nothing of any other."""
    match = re.fullmatch(_STEP, checkpoint.name)
    return (int(match[1] or 0), int(match[2])) if match else ()


def versions(composition: Composition) -> dict[str, str]:
    """Return the version of every distribution that the run stands on."""
    libraries = TOOLKIT, "torch", "transformers", "tokenizers", "safetensors", "numpy"
    parts = {part.distribution: part.version for part in composition.parts}
    return dict(sorted({**{name: version(name) for name in libraries}, **parts}.items()))
