"""Seconds and memory of a step of hicl beside simcse and sentence-transformers, on long texts.

Three measurements, all with random BERT weights and the same texts for everybody:

- hicl and simcse on articles of up to 512 tokens, in turn in one process; beside the ratio of
  seconds the ratio of operations, counted from the lengths. Then on full rows of 512.
- hicl, simcse and sentence-transformers' trainer, which pads, on sentences with max_length 512;
  beside the ratios the share of padding of the padded batches.
- each of these in a process of its own, peak resident memory of the steps; and hicl and simcse at
  full rows of 512 tokens.

    python -m tests.benchmarks.hicl [--repeats 5] [--steps 1] [--articles FILE] [--texts FILE]

Without files the starter's texts stand in: its documents are short, so the first says little then.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.benchmarks.inputs import Shape, content_lengths, full_rows, make_model, read, write
from tests.benchmarks.measure import alternate, ratios, spread
from tests.benchmarks.report import Report, parser
from tests.benchmarks.steps import PEER, in_process, run
from tests.benchmarks.work import Work

SEGMENT, LENGTH = 32, 512
FOR_MEMORY = 2
"""Measured steps of a process: the second holds the optimiser's moments."""


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("--steps", type=int, default=1, help="steps of a repeat, after one more")
    made.add_argument("--articles", metavar="FILE", help="documents instead of the starter's")
    made.add_argument("--texts", metavar="FILE", help="sentences instead of the starter's")
    made.add_argument("--layers", type=int, default=4)
    made.add_argument("--hidden", type=int, default=512)
    made.add_argument("--batch", type=int, default=16, help="articles of a batch")
    made.add_argument("--sentence-batch", type=int, default=128)
    return made.parse_args(words)


def main() -> None:
    """Measure and print."""
    options = arguments()
    report = Report("hicl")
    shape = Shape(options.layers, options.hidden)
    steps = options.steps + 1
    articles = read(options.articles, options.batch * steps, "document")
    sentences = read(options.texts, options.sentence_batch * steps)
    report.say(
        f"A random BERT of {shape}, fp32, segments of {SEGMENT} tokens; "
        f"{options.repeats} repeats of {options.steps} steps; {options.batch} articles or "
        f"{options.sentence_batch} sentences a batch, articles of "
        f"{'a file' if options.articles else 'the starter, which are short'}."
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        work = Work(
            who="hicl",
            model=make_model(folder / "model", [*articles, *sentences], shape),
            texts=write(folder / "articles.txt", articles),
            length=LENGTH,
            batch=options.batch,
            steps=options.steps,
        )
        rows = full_rows(articles, options.batch * steps)
        full = replace(work, texts=write(folder / "full.txt", rows))
        short = replace(
            work,
            texts=write(folder / "sentences.txt", sentences),
            batch=options.sentence_batch,
        )
        for what, each, title in (
            ("articles", work, "Articles"),
            ("full", full, "Full rows of 512"),
        ):
            found, operations = compare(report, each, ["simcse"], options.repeats, shape, title)
            saved = operations["simcse"] / operations["hicl"]
            gained = ratios(found["simcse"], found["hicl"])
            report.add(what, [gain / saved for gain in gained], f"{saved:.3f} times")
        found, _ = compare(report, short, ["simcse", PEER], options.repeats, shape, "Sentences")
        report.add("sentences", ratios(found[PEER], found["hicl"]))
        peaks = memory(report, short, ("hicl", "simcse", PEER), options.repeats, "sentences")
        report.add("memory", ratios(peaks["hicl"], peaks[PEER]))
        peaks = memory(report, full, ("hicl", "simcse"), options.repeats, "full rows")
        report.add("memory-full", ratios(peaks["hicl"], peaks["simcse"]))
    report.finish(options.json)


def compare(
    report: Report, work: Work, others: Sequence[str], repeats: int, shape: Shape, title: str
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return the seconds of a step of hicl and others in each repeat, and their operations."""
    texts = Path(work.texts).read_text(encoding="utf-8").splitlines()
    lengths = content_lengths(work.model, texts)[work.batch :]  # the first step is not measured
    works = [work, *(replace(work, who=who) for who in others)]
    seconds = alternate({each.who: _mean(each) for each in works}, repeats)
    rows = {who: rows_of(who, lengths, work) for who in seconds}
    operations = {who: shape.operations(each) for who, each in rows.items()}
    lines = []
    for who, found in seconds.items():
        padding = 1 - sum(rows_of("simcse", lengths, work)) / sum(rows[who]) if who == PEER else 0
        lines.append(
            [
                who,
                spread(found, ".3f"),
                spread(ratios(found, seconds["hicl"])),
                f"{operations[who] / operations['hicl']:.3f}",
                f"{padding:.1%}",
            ]
        )
    head = ["", "s a step", "of hicl", "operations of hicl's", "padding"]
    printed = f"{len(lengths)} texts of {spread(lengths, '.0f')} tokens"
    report.table(f"{title}: {printed}, batches of {work.batch}", head, lines)
    return seconds, operations


def _mean(work: Work) -> Callable[[], float]:
    return lambda: statistics.mean(run(work).seconds)


def memory(
    report: Report, work: Work, who: Sequence[str], repeats: int, rows: str
) -> dict[str, list[float]]:
    """Return the peak memory in MB of the steps of each, in processes of their own."""
    works = {name: replace(work, who=name, steps=FOR_MEMORY) for name in who}
    tasks = {name: partial(in_process, each) for name, each in works.items()}
    found = alternate(tasks, repeats, warm=0)
    peaks = {name: [one["most"] for one in each] for name, each in found.items()}
    lines = []
    for name, each in found.items():
        added = [one["most"] - one["before"] for one in each]
        seconds = [one["seconds"] for one in each]
        printed = spread(peaks[name], ".0f"), spread(added, ".0f"), spread(seconds, ".3f")
        lines.append([name, *printed])
    head = ["", "peak MB", "MB above the loaded model", "s a step"]
    report.table(f"Memory of the steps, {rows}", head, lines)
    return peaks


def rows_of(who: str, lengths: Sequence[int], work: Work) -> list[int]:
    """Return the tokens of each row that an encoder sees of texts with this content.

    Args:
        who: ``hicl``, ``simcse``, or another, which pads to the longest of a batch.
        lengths: Content tokens of each text.
        work: Says batch and length.
    """
    rows: list[int] = []
    for start in range(0, len(lengths), work.batch):
        batch = [min(length, work.length - 2) for length in lengths[start : start + work.batch]]
        if who == "hicl":
            for length in batch:
                cuts = range(0, max(length, 1), SEGMENT)
                rows += [min(SEGMENT, length - cut) + 2 for cut in cuts]
        elif who == "simcse":
            rows += [length + 2 for length in batch]
        else:
            rows += [max(batch) + 2] * len(batch)
    return rows


if __name__ == "__main__":
    main()
