"""Run every benchmark in a process of its own, and write docs/performance.md.

    python -m tests.benchmarks [SECTION ...] [--quick] [--texts FILE] [--articles FILE]

What a section found is kept as JSON; ``--render`` writes the page of what is there alone. Sizes of
a whole run are chosen for two hours on two cores, those of ``--quick`` show that everything runs.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.command_line import SectionParser
from tests.benchmarks.resident import ROOT
from tests.benchmarks.rows import HEAD, ROWS

OUT = ROOT / "runs/tests.benchmarks"
PAGE = ROOT / "docs/performance.md"
NOT_YET = "not measured yet"
MAX_BUSY = 0.1
"""Share of the processor that others may use before the page warns."""
INTRODUCTION = """# Performance

Written by `make bench DATA=FILE ARTICLES=FILE` (`python -m tests.benchmarks`), not by hand. DATA is
a file of sentences, ARTICLES one of documents, by default the starter's synthetic texts. The peer,
sentence-transformers, is a dependency of the benchmarks alone.

What is compared runs in turn on one machine. Each repeat gives one ratio, after one repeat that
warms up; tables have the median and, in brackets, the least and the largest. Of speeds more is
better for cse; of seconds, memory and shares less is.
"""
QUICK = (
    "\n**A smoke run with tiny sizes: it shows that everything runs; its numbers mean nothing.**\n"
)


class Section(NamedTuple):
    """A benchmark: its module, its heading, arguments of a smoke run and the files it takes."""

    name: str
    title: str
    quick: str
    files: tuple[str, ...]

    def words(self, options: argparse.Namespace, *, shown: bool = False) -> list[str]:
        """Return its arguments; where they are ``shown``, files by their names alone."""
        words = self.quick.split() if options.quick else []
        for name in self.files:
            if path := vars(options)[name]:
                words += [f"--{name}", Path(path).name if shown else path]
        return words

    def command(self, options: argparse.Namespace) -> str:
        """Return the command that does it, files by their names alone."""
        words = self.words(options, shown=True)
        return shlex.join(["python", "-m", f"tests.benchmarks.{self.name}", *words])


_SMALL = "--layers 2 --hidden 64"
_TINY = "--repeats 1 --steps 1 --batch 2 --sentence-batch 8 --layers 1 --hidden 64"
SECTIONS = (
    Section("startup", "Start-up", "--repeats 1", ()),
    Section("training", "Training", f"--repeats 2 --steps 1 --batch 16 {_SMALL}", ("texts",)),
    Section("encoding", "Encoding", f"--repeats 2 --count 400 {_SMALL}", ("texts",)),
    Section("memory", "Memory against the batch",
            f"--repeats 1 --batches 8,64 --chunk 8 --whole 64 {_SMALL}", ("texts",)),
    Section("mining", "Mining", "--repeats 1 --documents 40 --shard 200", ("articles",)),
    Section("parts", "What a part costs",
            "--repeats 1 --steps 1 --warm 1 --rows 128 --batch 8", ("texts",)),
    Section("hicl", "HiCL at 512 tokens", _TINY, ("texts", "articles")),
)  # fmt: skip


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = SectionParser("tests.benchmarks", __doc__, [section.name for section in SECTIONS], OUT)
    made.add_argument("--texts", metavar="FILE", help="sentences instead of the starter's")
    made.add_argument("--articles", metavar="FILE", help="documents instead of the starter's")
    made.add_argument("--quick", action="store_true", help="tiny sizes, a page of their own")
    options = made.read(words)
    for path in (options.texts, options.articles):
        if path is not None and not Path(path).is_file():
            made.error(f"{path}: no such file")
    return options


def main(words: list[str] | None = None) -> int:
    """Run the sections; return 1 if one failed."""
    options = arguments(words)
    folder = options.out / ("quick" if options.quick else "whole")
    folder.mkdir(parents=True, exist_ok=True)
    target = options.page or (folder / "page.md" if options.quick else PAGE)
    failed = []
    for section in SECTIONS:
        if options.render or (options.sections and section.name not in options.sections):
            continue
        print(f"\n== {section.command(options)}", flush=True)
        if not measure(section, options, folder / f"{section.name}.json"):
            failed.append(section.name)
    files = [folder / f"{section.name}.json" for section in SECTIONS]
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    target.write_text(page(found, options), encoding="utf-8")
    print(f"\n{target} is written")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def measure(section: Section, options: argparse.Namespace, out: Path) -> bool:
    """Run a benchmark; return whether it wrote what it found."""
    out.unlink(missing_ok=True)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", f"tests.benchmarks.{section.name}", *section.words(options)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([*command, "--json", str(out)], check=False, env=environment)
    if done.returncode or not out.exists():
        return False
    found = json.loads(out.read_text(encoding="utf-8"))
    out.write_text(json.dumps({**found, "command": section.command(options)}), encoding="utf-8")
    return True


def page(results: Sequence[Mapping[str, Any]], options: argparse.Namespace) -> str:
    """Return the page: the machine, one table of all comparisons, and the details of each.

    Args:
        results: What was found, as ``Report.as_dict`` gives it and with its ``command``.
        options: The command line.
    """
    found = {each["section"]: each for each in results}
    lines = [INTRODUCTION + (QUICK if options.quick else ""), "## Machine", ""]
    if results:
        threads = ", ".join(dict.fromkeys(str(each["threads"]) for each in results))
        lines.append(table(("", ""), [*results[-1]["machine"].items(), ("threads", threads)]))
    compared = []
    for row in ROWS:
        of_row = found.get(row.section, {"values": {}, "skipped": {}, "notes": {}})
        why = of_row["skipped"].get(row.key)
        missing = f"left out: {why}" if why else NOT_YET
        note = of_row["notes"].get(row.key, "")
        compared.append(row.cells(of_row["values"].get(row.key), missing, note))
    lines += ["", "## Comparisons", "", table(HEAD, compared), ""]
    for section in SECTIONS:
        lines += [f"## {section.title}", ""]
        if result := found.get(section.name):
            lines += _details(result)
        else:
            lines += [f"{NOT_YET.capitalize()}.", "", f"`{section.command(options)}`", ""]
    return "\n".join(lines).rstrip() + "\n"


def _details(result: Mapping[str, Any]) -> list[str]:
    lines = [f"`{result['command']}`", "", " ".join(result["said"])]
    minutes = f"{result['seconds'] / 60:.1f} minutes"
    lines.append(f"Measured on {result['began']} in {minutes}, commit {result['code']}.")
    if result["busy"] is not None and result["busy"] > MAX_BUSY:
        others = f"Others used {result['busy']:.0%} of the processor when it began"
        lines.append(f"**{others}: measure it again.**")
    for each in result["tables"]:
        lines += ["", f"{each['title']}:", "", table(each["head"], each["lines"])]
    return [*lines, ""]


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
    )


if __name__ == "__main__":
    sys.exit(main())
