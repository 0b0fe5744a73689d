"""Sentences per second of simcse beside sentence-transformers' trainer on the same work.

Same random BERT, same sentences in the same order, same batches, length and loss, in one process,
in turn, so that a noisy machine is as noisy for both. cse tokenises before the first step, the peer
in each: what cse's tokens take is measured and counted to its steps. What is gained depends on the
padding, so there are two kinds of rows: the sentences as they are, and their words cut again into
rows of very different lengths, a third of whose padded batches is padding.

    python -m tests.benchmarks.training [--repeats 5] [--steps 6] [--texts FILE]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.benchmarks.inputs import (
    FOR_VOCABULARY,
    Shape,
    content_lengths,
    make_model,
    mix_lengths,
    read,
    write,
)
from tests.benchmarks.machine import no_bf16, precisions
from tests.benchmarks.measure import alternate, ratios, spread
from tests.benchmarks.report import Report, parser
from tests.benchmarks.steps import PEER, run, tokenising
from tests.benchmarks.work import Work

NAMES = {"sentences": "sentences as they are", "mixed": "rows of mixed lengths"}


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("--steps", type=int, default=6, help="steps of a repeat, after one more")
    made.add_argument("--texts", metavar="FILE", help="sentences instead of the starter's")
    made.add_argument("--batch", type=int, default=64)
    made.add_argument("--length", type=int, default=32, help="tokens of a text at most")
    made.add_argument("--layers", type=int, default=6)
    made.add_argument("--hidden", type=int, default=384)
    return made.parse_args(words)


def main() -> None:
    """Measure and print."""
    options = arguments()
    report = Report("training")
    shape = Shape(options.layers, options.hidden)
    report.say(
        f"A random BERT of {shape}, batches of {options.batch}, at most {options.length} tokens; "
        f"{options.repeats} repeats of {options.steps} steps on "
        f"{'a file' if options.texts else 'the starter'}."
    )
    texts = read(options.texts, FOR_VOCABULARY)
    needed = options.batch * (options.steps + 1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = make_model(folder / "model", texts, shape)
        of_kind = {
            "sentences": texts[:needed],
            "mixed": mix_lengths(texts, needed, partial(content_lengths, model)),
        }
        for rows in NAMES:
            work = Work(
                who=PEER,
                model=model,
                texts=write(folder / f"{rows}.txt", of_kind[rows]),
                length=options.length,
                batch=options.batch,
                steps=options.steps,
            )
            seconds = measure(work, precisions(), options.repeats)
            tokens, padding = tokenising(work)
            report.say(
                f"Of a padded batch of {NAMES[rows]}, {padding:.0%} is padding; cse's tokens, "
                f"{1000 * tokens:.2f} ms a batch, are counted to its steps."
            )
            found = {
                name: [each + (0 if name.startswith(PEER) else tokens) for each in of_name]
                for name, of_name in seconds.items()
            }
            compare(report, rows, found, options.batch, f"{padding:.0%} padding")
    report.finish(options.json)


def measure(base: Work, formats: tuple[str, ...], repeats: int) -> dict[str, list[float]]:
    """Return seconds of a step in each repeat, by who and number format."""

    def one(who: str, precision: str) -> Callable[[], float]:
        work = Work(**{**vars(base), "who": who, "precision": precision})

        def mean() -> float:
            seconds = run(work).seconds
            return sum(seconds) / len(seconds)

        return mean

    works = {f"{who} {each}": one(who, each) for each in formats for who in (PEER, "simcse")}
    return alternate(works, repeats)


def compare(
    report: Report, rows: str, seconds: dict[str, list[float]], batch: int, note: str
) -> None:
    """Fill the report with speeds and ratios on one kind of rows."""
    plain = seconds[f"{PEER} fp32"]
    key = "mixed-" if rows == "mixed" else ""
    report.add(f"{key}fp32", ratios(plain, seconds["simcse fp32"]), note)
    if "simcse bf16" in seconds:
        of_bf16 = ratios(seconds[f"{PEER} bf16"], seconds["simcse bf16"])
        report.add(f"{key}bf16", ratios(plain, seconds["simcse bf16"]), note)
        report.add(f"{key}bf16-bf16", of_bf16, note)
    else:
        for left_out in ("bf16", "bf16-bf16"):
            report.skip(f"{key}{left_out}", no_bf16() or "")
    lines = [
        [
            name.replace("simcse", "cse"),
            spread([batch / each for each in of_name], ".1f"),
            spread(ratios(plain, of_name)),
        ]
        for name, of_name in seconds.items()
    ]
    report.table(NAMES[rows].capitalize(), ["", "sentences/s", f"of {PEER} fp32"], lines)


if __name__ == "__main__":
    main()
