"""Peak resident memory of simcse's steps against the batch, at once and in chunks.

Each measurement is a process of its own. When model, texts and optimiser are loaded, what is
resident is noted and the peak so far forgotten; the peak is then that of two steps and more, since
the optimiser's moments are there from the second step on. What is compared is the whole resident
memory of both processes at their peaks, libraries and model included; what the steps add to the
loaded model stands beside it.

    python -m tests.benchmarks.memory [--batches 64,1024,3200] [--chunk 64] [--whole 64,256]
        [--repeats 5] [--texts FILE]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.benchmarks.inputs import FOR_VOCABULARY, Shape, make_model, read, write
from tests.benchmarks.measure import alternate, ratios, spread
from tests.benchmarks.report import Report, parser
from tests.benchmarks.steps import in_process
from tests.benchmarks.work import Work

STEPS = 1
"""Measured steps, after one more: the moments of AdamW are made at the end of the first."""


def numbers(text: str) -> list[int]:
    """Return numbers with commas between them."""
    return [int(each) for each in text.split(",") if each]


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("--batches", type=numbers, default=[64, 1024, 3200])
    made.add_argument("--chunk", type=int, default=64, help="sentences encoded at once")
    made.add_argument("--whole", type=numbers, default=[64, 256], help="without chunks")
    made.add_argument("--texts", metavar="FILE", help="sentences instead of the starter's")
    made.add_argument("--length", type=int, default=32, help="tokens of a text at most")
    made.add_argument("--layers", type=int, default=4)
    made.add_argument("--hidden", type=int, default=256)
    return made.parse_args(words)


def main() -> None:
    """Measure and print."""
    options = arguments()
    report = Report("memory")
    shape = Shape(options.layers, options.hidden)
    most = max([*options.batches, *options.whole])
    texts = read(options.texts, max((STEPS + 1) * most, FOR_VOCABULARY))
    report.say(
        f"A random BERT of {shape}, simcse in fp32, at most {options.length} tokens; "
        f"{options.repeats} processes of {STEPS + 1} steps each. Compared is the peak of the whole "
        "process during the steps."
    )
    with tempfile.TemporaryDirectory() as temporary:
        base = Work(
            who="simcse",
            model=make_model(Path(temporary) / "model", texts[:FOR_VOCABULARY], shape),
            texts=write(Path(temporary) / "texts.txt", texts[: (STEPS + 1) * most]),
            length=options.length,
            batch=options.batches[0],
            steps=STEPS,
        )
        works = [replace(base, batch=each, chunk=options.chunk) for each in options.batches]
        works += [replace(base, batch=each) for each in options.whole]
        found = alternate({_name(work): _task(work) for work in works}, options.repeats, warm=0)
    first, last = (_name(works[place]) for place in (0, len(options.batches) - 1))
    note = f"{options.batches[-1]:,} against {options.batches[0]}"
    report.add("chunked", ratios(_of(found[last], "most"), _of(found[first], "most")), note)
    lines = []
    for work in works:
        each = found[_name(work)]
        added = [one["most"] - one["before"] for one in each]
        printed = spread(_of(each, "before"), ".0f"), spread(_of(each, "most"), ".0f")
        chunk = str(work.chunk or "at once")
        lines.append([f"{work.batch:,}", chunk, *printed, spread(added, ".0f")])
    head = ["batch", "chunk", "MB before the steps", "peak MB of the steps", "added MB"]
    report.table("Memory of a process", head, lines)
    report.finish(options.json)


def _name(work: Work) -> str:
    return f"{work.batch} {work.chunk}"


def _task(work: Work) -> Callable[[], dict[str, Any]]:
    return lambda: in_process(work)


def _of(found: list[dict[str, Any]], what: str) -> list[float]:
    return [float(each[what]) for each in found]


if __name__ == "__main__":
    main()
