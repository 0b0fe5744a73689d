"""Sentences per second of simcse beside sentence-transformers' trainer on the same work.

Same random BERT, same sentences in the same order, same batches, length and loss, in one process,
in turn, so that a noisy machine is as noisy for both. cse tokenises before the first step, the peer
in each: what cse's tokens take is measured and counted to its steps.

    python -m benchmarks.training [--repeats 5] [--steps 6] [--texts FILE] [--mixed]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.inputs import Shape, make_model, read, write
from benchmarks.machine import no_bf16, precisions
from benchmarks.measure import alternate, ratios, spread
from benchmarks.report import Report, parser
from benchmarks.steps import PEER, Work, run, tokenising

FOR_VOCABULARY = 20_000


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("--steps", type=int, default=6, help="steps of a repeat, after one more")
    made.add_argument("--texts", metavar="FILE", help="sentences instead of the starter's")
    made.add_argument("--mixed", action="store_true", help="rows of very different lengths")
    made.add_argument("--batch", type=int, default=64)
    made.add_argument("--length", type=int, default=32, help="tokens of a text at most")
    made.add_argument("--layers", type=int, default=6)
    made.add_argument("--hidden", type=int, default=384)
    made.add_argument("--precisions", default="auto", help="fp32,bf16; auto is what is fast here")
    options = made.parse_args(words)
    if "fp32" not in precisions(options.precisions):
        made.error("--precisions: everything is compared with fp32, so name it too")
    return options


def main() -> None:
    """Measure and print."""
    options = arguments()
    report = Report("training")
    shape = Shape(options.layers, options.hidden)
    texts = read(options.texts, FOR_VOCABULARY, mixed=options.mixed)
    with tempfile.TemporaryDirectory() as temporary:
        base = Work(
            who=PEER,
            model=make_model(Path(temporary) / "model", texts, shape),
            texts=write(
                Path(temporary) / "texts.txt", texts[: options.batch * (options.steps + 1)]
            ),
            length=options.length,
            batch=options.batch,
            steps=options.steps,
        )
        seconds = measure(base, precisions(options.precisions), options.repeats)
        tokens = tokenising(base)
    report.say(
        f"A random BERT of {shape}, batches of {options.batch}, at most {options.length} tokens; "
        f"{options.repeats} repeats of {options.steps} steps; "
        f"{'rows of mixed lengths' if options.mixed else 'sentences'} of "
        f"{'a file' if options.texts else 'the starter'}. cse's tokens, {1000 * tokens:.2f} ms a "
        "batch, are counted to its steps."
    )
    found = {
        name: [each + (0 if name.startswith(PEER) else tokens) for each in of_name]
        for name, of_name in seconds.items()
    }
    compare(report, found, options.batch)
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


def compare(report: Report, seconds: dict[str, list[float]], batch: int) -> None:
    """Fill the report with speeds and ratios."""
    plain = seconds[f"{PEER} fp32"]
    report.add("fp32", ratios(plain, seconds["simcse fp32"]))
    if "simcse bf16" in seconds:
        report.add("bf16", ratios(plain, seconds["simcse bf16"]))
        report.add("bf16-bf16", ratios(seconds[f"{PEER} bf16"], seconds["simcse bf16"]))
    else:
        why = no_bf16() or "not asked for"
        report.skip("bf16", why)
        report.skip("bf16-bf16", why)
    lines = [
        [
            name.replace("simcse", "cse"),
            spread([batch / each for each in of_name], ".1f"),
            spread(ratios(plain, of_name)),
        ]
        for name, of_name in seconds.items()
    ]
    report.table("Training", ["", "sentences/s", f"of {PEER} fp32"], lines)


if __name__ == "__main__":
    main()
