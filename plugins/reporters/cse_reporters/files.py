"""The reporters ``csv`` and ``tensorboard``: the lines of ``metrics.jsonl`` in other files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_core.errors import CseError
from cse_core.files import atomic_write
from cse_core.reporter import Reporter
from cse_reporters.options import CsvOptions, TensorboardOptions

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


def metrics(folder: Path) -> list[dict[str, float]]:
    """Return the lines that a run wrote; a last one that a kill cut short is left out."""
    file = folder / "metrics.jsonl"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


class CsvReporter(Reporter):
    """Writes ``metrics.csv`` beside ``metrics.jsonl``: a row for each line, a column for each key.

    Where a line brings a new key the whole file is written again; else the row is appended.
    """

    def __init__(self, options: CsvOptions) -> None:
        self._name = options.file
        self._rows: list[dict[str, float]] = []
        self._columns: dict[str, None] = {}
        self._path = Path()

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Read the lines of a run that continues."""
        self._path = folder / self._name
        self._rows = metrics(folder)

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Drop the lines after the checkpoint from which the run continues."""
        here = (round_number, done)
        self._rows = [row for row in self._rows if (row.get("round", 0), row["step"]) <= here]
        self._columns = dict.fromkeys(key for row in self._rows for key in row)
        self._write()

    def line(self, line: Mapping[str, float]) -> None:
        """Write a row."""
        self._rows.append(dict(line))
        if line.keys() <= self._columns.keys():
            with self._path.open("a", encoding="utf-8", newline="") as file:
                csv.DictWriter(file, self._columns, lineterminator="\n").writerow(line)
            return
        self._columns.update(dict.fromkeys(line))
        self._write()

    def _write(self) -> None:
        text = io.StringIO(newline="")
        table = csv.DictWriter(text, self._columns, lineterminator="\n")
        if self._columns:
            table.writeheader()
        table.writerows(self._rows)
        atomic_write(self._path, text.getvalue())


class TensorboardReporter(Reporter):
    """Writes a scalar for each key of a line, by the line's step.

    Steps of a round count from 1, so each round of a run with rounds has a folder of its own,
    ``round-2``, which TensorBoard shows as a run.

    Raises:
        CseError: If tensorboard is not installed.
    """

    def __init__(self, options: TensorboardOptions) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise CseError(
                f"the reporter tensorboard needs tensorboard: {error}",
                where="train.report",
                hint="pip install 'tensorboard>=2.20'",
            ) from error
        self._make = SummaryWriter
        self._name = options.folder
        self._folder = Path()
        self._writer: SummaryWriter | None = None

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Note the folder."""
        self._folder = folder / self._name

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Open the round's events; those after the checkpoint of a resumed run are hidden."""
        folder = self._folder / f"round-{round_number}" if round_number else self._folder
        self._writer = self._make(str(folder), purge_step=done + 1 if done else None)

    def line(self, line: Mapping[str, float]) -> None:
        """Write a scalar for each key, under the names of ``metrics.jsonl``."""
        assert self._writer is not None
        for name, value in line.items():
            if name not in ("step", "round"):
                self._writer.add_scalar(name, value, int(line["step"]))
        self._writer.flush()

    def end(self) -> None:
        """Close the round's events."""
        if self._writer is not None:
            self._writer.close()
