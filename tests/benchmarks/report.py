"""What a benchmark found: values of rows, what was left out, tables of details."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.machine import busy, code, machine
from tests.benchmarks.rows import BY_KEY, HEAD


@dataclass
class Report:
    """The findings of one benchmark.

    Attributes:
        section: Its name.
        values: Values of a row in each repeat, by key.
        notes: What a row's number is of, by key: ``queue``.
        skipped: Why a row was not measured, by key.
        said: What was compared, in sentences.
        tables: Details: ``title``, ``head`` and ``lines`` of cells in words.
        began: When it began, seconds since 1970.
        busy: Share of the processor that others used then; None where that is not known.
    """

    section: str
    values: dict[str, list[float]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.time)
    busy: float | None = field(default_factory=busy)

    def add(self, what: str, values: Sequence[float], note: str = "") -> None:
        """Note a row's value in each repeat."""
        key = self._key(what)
        self.values[key] = [float(f"{value:.5g}") for value in values]
        self.notes[key] = note

    def skip(self, what: str, why: str) -> None:
        """Note why a row is not measured."""
        self.skipped[self._key(what)] = why

    def say(self, sentence: str) -> None:
        """Note what was compared, and print it."""
        print(sentence, flush=True)
        self.said.append(sentence)

    def table(self, title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
        """Note a table of details, and print it."""
        self.tables.append(
            {"title": title, "head": list(head), "lines": [[*each] for each in lines]}
        )
        print(f"\n{title}\n{in_columns([head, *lines])}\n", flush=True)

    def finish(self, out: str | None) -> None:
        """Print the rows, and write everything where it is asked for."""
        lines = [BY_KEY[k].cells(v, "", self.notes[k]) for k, v in self.values.items()]
        lines += [BY_KEY[k].cells(None, f"left out: {why}") for k, why in self.skipped.items()]
        print(in_columns([HEAD, *lines]))
        if out is not None:
            Path(out).write_text(json.dumps(self.as_dict()), encoding="utf-8")

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, with the machine and the time."""
        import torch

        return {
            **asdict(self),
            "began": time.strftime("%Y-%m-%d", time.gmtime(self.began)),
            "seconds": round(time.time() - self.began, 1),
            "threads": torch.get_num_threads(),
            "machine": machine(),
            "code": code(),
        }

    def _key(self, what: str) -> str:
        key = f"{self.section}.{what}"
        if key not in BY_KEY:
            raise KeyError(f"rows.py has no row {key}")
        return key


def in_columns(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells with their columns under each other."""
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with what every benchmark takes."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--repeats", type=int, default=5, help="alternating repeats that count")
    made.add_argument("--json", metavar="FILE", help="write what was found to a file too")
    return made
