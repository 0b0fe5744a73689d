"""The reporter ``csv``: the lines of ``metrics.jsonl`` as a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cse_core.runtime.atomic_files import atomic_write
from cse_core.runtime.reporter import Reporter
from cse_reporters.options import CsvOptions


class CsvReporter(Reporter):
    """Writes ``metrics.csv`` beside ``metrics.jsonl``: a row for each line, a column for each key.

    Where a line brings a new key the file is written whole again, with its column; else the row is
    appended.
    """

    def __init__(self, options: CsvOptions) -> None:
        self._name = options.file
        self._rows: list[Mapping[str, float]] = []
        self._columns: dict[str, None] = {}
        self._path = Path()

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Read the lines of a run that goes on."""
        self._path = folder / self._name
        lines = folder / "metrics.jsonl"
        text = lines.read_text(encoding="utf-8") if lines.is_file() else ""
        self._rows = [json.loads(line) for line in text.splitlines()]

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Drop the lines after the checkpoint from which the run goes on, as metrics.jsonl does."""
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
