"""Seconds and memory of a step of hicl beside simcse and sentence-transformers, on long texts.

Three measurements, all with random BERT weights and the same texts for everybody:

- `articles`: hicl and simcse on articles of up to 512 tokens, in turn in one process; beside the
  ratio of seconds the ratio of operations, counted from the lengths. Then on full rows of 512.
- `sentences`: hicl, simcse and sentence-transformers' trainer, which pads, on sentences with
  max_length 512; beside the ratios the share of padding of the padded batches.
- `memory`: each of these in a process of its own, peak resident memory of the steps; and hicl and
  simcse at full rows of 512 tokens; for a plot of 128 and 256 too.

    python -m tests.benchmarks.hicl [articles] [sentences] [memory] [--repeats 5] [--steps 4]
        [--articles FILE] [--texts FILE] [--plot docs/methods/hicl.svg]

Without files the starter's texts stand in: its documents are short, so the first says little then.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.benchmarks.inputs import Shape, content_lengths, full_rows, make_model, read, write
from tests.benchmarks.measure import alternate, ratios, spread
from tests.benchmarks.report import Report, parser
from tests.benchmarks.steps import PEER, in_process, run
from tests.benchmarks.work import Work

SEGMENT = 32
LENGTHS = (128, 256, 512)
FOR_MEMORY = 2
"""Measured steps of a process: the second holds the optimiser's moments."""
WHAT = ("articles", "sentences", "memory")


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("what", nargs="*", help=f"{', '.join(WHAT)}; all by default")
    made.add_argument("--steps", type=int, default=4, help="steps of a repeat, after one more")
    made.add_argument("--articles", metavar="FILE", help="documents instead of the starter's")
    made.add_argument(
        "--texts", "--sentences", metavar="FILE", help="sentences instead of the starter's"
    )
    made.add_argument("--layers", type=int, default=4)
    made.add_argument("--hidden", type=int, default=512)
    made.add_argument("--batch", type=int, default=16, help="articles of a batch")
    made.add_argument("--sentence-batch", type=int, default=128)
    made.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    made.add_argument("--wrap", default="segment", choices=["segment", "sentence"])
    made.add_argument("--plot", type=Path, help="where the plot goes: docs/methods/hicl.svg")
    options = made.parse_args(words)
    unknown = [name for name in options.what if name not in WHAT]
    if unknown:
        made.error(f"{unknown[0]}: measure {', '.join(WHAT)}")
    if options.plot is not None and importlib.util.find_spec("matplotlib") is None:
        made.error("--plot needs matplotlib: pip install matplotlib")
    options.what = options.what or list(WHAT)
    return options


def main() -> None:
    """Measure and print."""
    options = arguments()
    report = Report("hicl")
    shape = Shape(options.layers, options.hidden)
    steps = options.steps + 1
    articles = read(options.articles, options.batch * steps, "document")
    sentences = read(options.texts, options.sentence_batch * steps)
    report.say(
        f"A random BERT of {shape}, {options.precision}, segments of {SEGMENT} tokens; "
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
            length=512,
            batch=options.batch,
            steps=options.steps,
            precision=options.precision,
            wrap=options.wrap,
        )
        rows = full_rows(articles, options.batch * steps)
        full = replace(work, texts=write(folder / "full.txt", rows))
        short = replace(
            work,
            texts=write(folder / "sentences.txt", sentences),
            batch=options.sentence_batch,
        )
        if "articles" in options.what:
            for what, each, title in (
                ("articles", work, "Articles"),
                ("full", full, "Full rows of 512"),
            ):
                found, operations = compare(report, each, ["simcse"], options.repeats, shape, title)
                saved = operations["simcse"] / operations["hicl"]
                gained = ratios(found["simcse"], found["hicl"])
                report.add(what, [gain / saved for gain in gained], f"{saved:.3f} times")
        if "sentences" in options.what:
            found, _ = compare(report, short, ["simcse", PEER], options.repeats, shape, "Sentences")
            report.add("sentences", ratios(found[PEER], found["hicl"]))
        if "memory" in options.what:
            remember(report, short, full, options)
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


def remember(report: Report, short: Work, full: Work, options: argparse.Namespace) -> None:
    """Measure the memory of steps, and draw that of hicl and simcse against the length."""
    short, full = (replace(work, steps=FOR_MEMORY) for work in (short, full))
    of_short = [replace(short, who=who) for who in ("hicl", "simcse", PEER)]
    lengths = LENGTHS if options.plot else LENGTHS[-1:]
    pairs = itertools.product(lengths, ("hicl", "simcse"))
    of_full = [replace(full, who=who, length=length) for length, who in pairs]
    found = peaks(of_short, options.repeats)
    _tell(report, "Memory of the steps, sentences", of_short, found)
    report.add("memory", ratios(_most(found[0]), _most(found[2])))
    found = peaks(of_full, options.repeats)
    _tell(report, "Memory of the steps, full rows", of_full, found)
    report.add("memory-full", ratios(_most(found[-2]), _most(found[-1])))
    if options.plot is not None:
        plot(options.plot, of_full, found)


def peaks(works: Sequence[Work], repeats: int) -> list[list[dict[str, Any]]]:
    """Return for each piece of work what its process found in each repeat."""
    tasks = {str(place): (lambda each=work: in_process(each)) for place, work in enumerate(works)}
    return list(alternate(tasks, repeats, warm=0).values())


def _most(found: list[dict[str, Any]]) -> list[float]:
    return [each["most"] for each in found]


def _tell(
    report: Report, title: str, works: Sequence[Work], found: list[list[dict[str, Any]]]
) -> None:
    lines = []
    for work, each in zip(works, found, strict=True):
        added = [one["most"] - one["before"] for one in each]
        seconds = [one["seconds"] for one in each]
        printed = spread(_most(each), ".0f"), spread(added, ".0f"), spread(seconds, ".3f")
        lines.append([work.who, str(work.length), *printed])
    head = ["", "tokens at most", "peak MB", "MB above the loaded model", "s a step"]
    report.table(title, head, lines)


def plot(path: Path, works: Sequence[Work], found: list[list[dict[str, Any]]]) -> None:
    """Draw memory and seconds against the length of texts."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "cse"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for axis, what, label in zip(
        axes, ("most", "seconds"), ("peak memory, MB", "seconds a step"), strict=True
    ):
        for who, style in (("simcse", "o--"), ("hicl", "s-")):
            points = [
                (work.length, statistics.median(one[what] for one in each))
                for work, each in zip(works, found, strict=True)
                if work.who == who
            ]
            axis.plot(*zip(*points, strict=True), style, label=who)
        axis.set(xlabel="tokens of a text", ylabel=label, xticks=LENGTHS)
        axis.set_ylim(bottom=0)
        axis.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def rows_of(who: str, lengths: Sequence[int], work: Work) -> list[int]:
    """Return the tokens of each row that an encoder sees of texts with this content.

    Args:
        who: ``hicl``, ``simcse``, or another, which pads to the longest of a batch.
        lengths: Content tokens of each text.
        work: Says batch, length and what is wrapped.
    """
    rows: list[int] = []
    for start in range(0, len(lengths), work.batch):
        batch = [min(length, work.length - 2) for length in lengths[start : start + work.batch]]
        if who == "hicl":
            inside, around = (2, 0) if work.wrap == "sentence" else (0, 2)
            for length in batch:
                tokens = length + inside
                cuts = range(0, max(tokens, 1), SEGMENT)
                rows += [min(SEGMENT, tokens - cut) + around for cut in cuts]
        elif who == "simcse":
            rows += [length + 2 for length in batch]
        else:
            rows += [max(batch) + 2] * len(batch)
    return rows


if __name__ == "__main__":
    main()
