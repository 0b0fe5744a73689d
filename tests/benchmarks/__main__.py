"""Run every benchmark in a process of its own, and write docs/performance.md.

    python -m tests.benchmarks [SECTION ...] [--quick] [--texts FILE] [--articles FILE] [--render]

What a section found is kept as JSON in runs/tests.benchmarks; ``--render`` writes the page of what
is there alone. Sizes of a whole run are chosen for two hours on two cores, those of ``--quick``
show that everything runs.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.report import HEAD, ROOT, ROWS, Report, table

OUT = ROOT / "runs/tests.benchmarks"
PAGE = ROOT / "docs/performance.md"
NOT_YET = "not measured yet"
AGAIN = "measure it again"
MAX_BUSY = 0.1
"""Share of the processor that others may use before the page warns."""
INTRODUCTION = """# Performance

Written by `make bench DATA=FILE ARTICLES=FILE` (`python -m tests.benchmarks`), not by hand. DATA is
a file of sentences, ARTICLES one of documents, by default the starter's synthetic texts. The peer,
sentence-transformers, is a dependency of the benchmarks alone.

What is compared runs in turn on one machine. Each repeat gives one ratio, after one repeat that
warms up; tables have the median and, in brackets, the least and the largest. Of speeds more is
better for cse; of seconds and memory less is.
"""
QUICK = (
    "\n**A smoke run with tiny sizes: it shows that everything runs; its numbers mean nothing.**\n"
)


class Section(NamedTuple):
    """A benchmark: its function, its heading and the files it takes."""

    name: str
    title: str
    files: tuple[str, ...] = ()
    module: str = "tests.benchmarks.sections"

    def words(self, options: argparse.Namespace) -> list[str]:
        words = [self.name, *(["--quick"] if options.quick else [])]
        for name in self.files:
            words += [f"--{name}", vars(options)[name]] if vars(options)[name] else []
        return words


SECTIONS = (
    Section("startup", "Start-up"),
    Section("search", "The first answer", ("texts",), "tests.benchmarks.search"),
    Section("training", "Training", ("texts",)),
    Section("compiled", "Compiled layers", ("texts",), "tests.benchmarks.compiled"),
    Section("encoding", "Encoding", ("texts",)),
    Section("memory", "Memory against the batch", ("texts",)),
    Section("large", "Large batches", ("texts",)),
    Section("parts", "What a part costs", ("texts",), "tests.benchmarks.parts"),
    Section("losses", "Losses that both have", ("texts",), "tests.benchmarks.losses"),
    Section("hicl", "HiCL at 512 tokens", ("texts", "articles")),
)


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser("tests.benchmarks", description=__doc__, formatter_class=raw)
    known = [section.name for section in SECTIONS]
    made.add_argument("sections", nargs="*", help=f"{', '.join(known)}; all by default")
    made.add_argument("--texts", metavar="FILE", help="sentences instead of the starter's")
    made.add_argument("--articles", metavar="FILE", help="documents instead of the starter's")
    made.add_argument("--quick", action="store_true", help="tiny sizes, a page of their own")
    made.add_argument("--render", action="store_true", help="write the page alone")
    made.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = made.parse_args(words)
    if unknown := {*options.sections} - {*known}:
        made.error(f"{', '.join(unknown)}: there are {', '.join(known)}")
    for path in (options.texts, options.articles):
        if path is not None and not Path(path).is_file():
            made.error(f"{path}: no such file")
    return options


def main(words: Sequence[str] | None = None) -> int:
    options = arguments(words)
    if options.child is not None:
        measure(options)
        return 0
    from tests.benchmarks.work import child

    folder = OUT / ("quick" if options.quick else "whole")
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for section in SECTIONS:
        if options.render or (options.sections and section.name not in options.sections):
            continue
        out = folder / f"{section.name}.json"
        out.unlink(missing_ok=True)
        try:
            child("tests.benchmarks", *section.words(options), "--child", str(out), stdout=None)
        except SystemExit as error:
            failed.append(str(error))
    files = [folder / f"{section.name}.json" for section in SECTIONS]
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    target = folder / "page.md" if options.quick else PAGE
    target.write_text(page(found, quick=options.quick), encoding="utf-8")
    print("\n".join([f"\n{target} is written", *failed]))
    return 1 if failed else 0


def measure(options: argparse.Namespace) -> None:
    import psutil

    from tests.benchmarks.sections import Given

    (section,) = (each for each in SECTIONS if each.name in options.sections)
    busy = psutil.cpu_percent(1.0) / 100  # of others: this process sleeps meanwhile
    report = Report(section.name, busy=busy)
    benchmark: Callable[..., None] = getattr(import_module(section.module), section.name)
    benchmark(report, Given(options.texts, options.articles, options.quick))
    words = [Path(word).name if "/" in word else word for word in section.words(options)]
    command = shlex.join(["python", "-m", "tests.benchmarks", *words])
    options.child.write_text(json.dumps({**report.as_dict(), "command": command}), encoding="utf-8")


def page(results: Sequence[Mapping[str, Any]], *, quick: bool = False) -> str:
    """Return the page of what ``Report.as_dict`` gave, each with its ``command``."""
    found = {each["section"]: each for each in results}
    lines = [INTRODUCTION + QUICK * quick, "## Machine", ""]
    if results:
        threads = ", ".join(dict.fromkeys(str(each["threads"]) for each in results))
        lines.append(table(("", ""), [*results[-1]["machine"].items(), ("threads", threads)]))
    compared = []
    for row in ROWS:
        of_row = found.get(row.key.partition(".")[0], {"values": {}, "notes": {}})
        note, values = of_row["notes"].get(row.key, ""), of_row["values"].get(row.key, [])
        cells = row.cells(values, NOT_YET, note)
        if row.aim and values and of_row["busy"] > MAX_BUSY:
            cells[-1] = AGAIN
        compared.append(cells)
    lines += ["", "## Comparisons", "", table(HEAD, compared), ""]
    for section in SECTIONS:
        result = found.get(section.name)
        lines += [f"## {section.title}", ""]
        lines += _details(result) if result else [f"{NOT_YET.capitalize()}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _details(result: Mapping[str, Any]) -> list[str]:
    lines = [f"`{result['command']}`", "", " ".join(result["said"])]
    minutes = f"{result['seconds'] / 60:.1f} minutes"
    lines.append(f"Measured on {result['began']} in {minutes}, commit {result['code']}.")
    if result["busy"] > MAX_BUSY:
        others = f"Others used {result['busy']:.0%} of the processor when it began"
        lines.append(f"**{others}: {AGAIN}.**")
    for each in result["tables"]:
        lines += ["", f"{each['title']}:", "", table(each["head"], each["lines"])]
    return [*lines, ""]


if __name__ == "__main__":
    sys.exit(main())
