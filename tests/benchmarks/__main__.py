"""Run every benchmark in a process of its own, and write docs/performance.md.

    python -m tests.benchmarks [SECTION ...] [--quick] [--texts FILE] [--articles FILE]

A result is kept as a line of JSON as soon as it is there; what was measured by the same command on
the same machine, of the same commit, is not measured again, unless ``--again`` says so. Sizes of a
whole run are chosen for an hour on two cores, those of ``--quick`` only show that everything runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.command_line import SectionParser
from tests.benchmarks.machine import code, machine
from tests.benchmarks.page import page
from tests.benchmarks.resident import ROOT
from tests.benchmarks.sections import SECTIONS, Section

OUT = ROOT / "runs/tests.benchmarks"
PAGE = ROOT / "docs/performance.md"


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = SectionParser("tests.benchmarks", __doc__, [section.name for section in SECTIONS], OUT)
    made.add_argument("--texts", metavar="FILE", help="sentences instead of the starter's")
    made.add_argument("--articles", metavar="FILE", help="documents instead of the starter's")
    made.add_argument("--quick", action="store_true", help="tiny sizes, a page of their own")
    made.add_argument("--again", action="store_true", help="measure what is there already too")
    options = made.read(words)
    for path in (options.texts, options.articles):
        if path is not None and not Path(path).is_file():
            made.error(f"{path}: no such file")
    return options


def main() -> int:
    """Run what is missing; return 1 if anything failed."""
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    book = options.out / ("quick.jsonl" if options.quick else "results.jsonl")
    target = options.page or (options.out / "quick.md" if options.quick else PAGE)
    failed = []
    for section in SECTIONS:
        if options.render or (options.sections and section.name not in options.sections):
            continue
        command = section.command(
            quick=options.quick, texts=options.texts, articles=options.articles
        )
        print(f"\n== {command}", flush=True)
        if not options.again and is_there(read(book), section.name, command):
            print("is there already; --again measures it again", flush=True)
        elif (found := measure(section, options)) is None:
            failed.append(section.name)
        else:
            keep(book, {**found, "command": command})
    target.write_text(page(read(book), quick=options.quick), encoding="utf-8")
    print(f"\n{target} is written")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def measure(section: Section, options: argparse.Namespace) -> dict[str, Any] | None:
    """Run a benchmark and return what it found; None if it failed."""
    words = section.words(quick=options.quick, texts=options.texts, articles=options.articles)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary) / "found.json"
        done = subprocess.run(
            [sys.executable, "-m", f"tests.benchmarks.{section.name}", *words, "--json", str(out)],
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        if done.returncode or not out.exists():
            return None
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return found


def keep(book: Path, found: dict[str, Any]) -> None:
    """Add a result to the others."""
    cut = book.exists() and not book.read_bytes().endswith(b"\n")
    with book.open("a", encoding="utf-8") as file:
        file.write("\n" * cut + json.dumps(found, ensure_ascii=False) + "\n")


def read(book: Path) -> list[dict[str, Any]]:
    """Return the results so far; a line that was cut short is none."""
    if not book.exists():
        return []
    found = []
    for line in book.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def is_there(results: Sequence[dict[str, Any]], name: str, command: str) -> bool:
    """Tell whether a section of this code was measured by this command on this machine."""
    wanted = (name, command, machine(), code())
    return any(
        (each["section"], each["command"], each["machine"], each["code"]) == wanted
        for each in results
    )


if __name__ == "__main__":
    sys.exit(main())
