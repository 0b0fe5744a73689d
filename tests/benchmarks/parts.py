"""What each installed store, miner and augmenter costs over plain simcse.

Each is composed in the least run that takes it, and its steps are timed in turn with those of plain
simcse on the same rows, in one process. Beside the ratio stand the views that the plan sends
through the encoder, and for stores and miners the time inside them (inside.py): that is what they
cost beyond the encoder's passes. What a part does before the first step (an index, mined rounds) is
timed by itself, and how much of that is encoding.

    python -m tests.benchmarks.parts [negatives.queue ...] [--loss twins] \
        [--set negatives.queue.size=512]
        [--repeats 5] [--steps 2] [--texts FILE]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.costs import Bench, Cost
from tests.benchmarks.inputs import registry
from tests.benchmarks.measure import spread
from tests.benchmarks.report import Report, parser

KINDS = ("negatives", "positives", "aug")


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("parts", nargs="*", help="kind.name; all stores, miners and augmenters")
    made.add_argument("--loss", help="a loss instead of infonce")
    made.add_argument("--model", default="starter")
    made.add_argument("--texts", "--data", metavar="FILE", help="sentences, not the starter's")
    made.add_argument("--rows", type=int, default=4096, help="rows of the data")
    made.add_argument("--batch", type=int, default=64)
    made.add_argument("--steps", type=int, default=2, help="steps of a repeat")
    made.add_argument("--warm", type=int, default=18, help="steps before: buffers get full")
    made.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    return made.parse_args(words)


def main() -> None:
    """Measure and print."""
    options = arguments()
    report = Report("parts")
    wanted = options.parts or installed()
    with tempfile.TemporaryDirectory() as temporary:
        bench = Bench(options, Path(temporary))
        report.say(
            f"Model {options.model}, batches of {options.batch}, at most 32 tokens, "
            f"{options.rows:,} rows; {options.repeats} repeats of {options.steps} steps in turn "
            f"with plain simcse, after {options.warm} that fill buffers. Miners of rounds train on "
            "pairs of their own, of other lengths."
        )
        found = []
        for path in wanted:
            cost = bench.cost(path)
            print(f"{path}: {cost.refused or spread(cost.ratios)}", flush=True)
            found.append(cost)
    head = [
        "part",
        "views trained / for the inputs' gradient / without gradient",
        "besides",
        "a step of plain simcse's",
        "inside, ms a step",
        "inside, % of its steps",
        "before the steps, s",
        "of that encoding, s",
    ]
    report.table("Stores, miners and augmenters", head, [each.line() for each in found])
    if not options.parts:
        _rows(report, found)
    report.finish(options.json)


def _rows(report: Report, found: Sequence[Cost]) -> None:
    for kind, row in (("negatives", "stores"), ("positives", "miners")):
        of_kind = [each for each in found if each.path.startswith(kind) and each.shares]
        if of_kind:
            dearest = max(of_kind, key=lambda each: statistics.median(each.shares))
            report.add(row, [100 * share for share in dearest.shares], dearest.path)
    for each in found:
        if each.path == "aug.fgsm" and each.ratios:
            report.add("fgsm", each.ratios)


def installed() -> list[str]:
    """Return every installed store, miner and augmenter; those of a cased model come last."""
    from cse_testkit import complete

    found = [f"{kind}.{each.name}" for kind in KINDS for each in registry().parts(kind)]
    parts = (path.partition(".") for path in found)
    cased = {f"{k}.{name}" for k, _, name in parts if complete(registry(), [(k, name)]).cased}
    return sorted(found, key=lambda path: path in cased)


if __name__ == "__main__":
    main()
