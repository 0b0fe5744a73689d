"""What each installed store, miner and augmenter costs over plain simcse.

Each is composed in the least run that takes it, and its steps are timed in turn with those of plain
simcse on the same rows, in one process. Beside the ratio stand the views that the plan sends
through the encoder.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tests.benchmarks.inputs import load, read, registry, silence
from tests.benchmarks.report import Report, alternate, ratios, spread
from tests.benchmarks.sections import Given

if TYPE_CHECKING:
    from cse_testkit.completion import Needed

    from cse_engine.compose.composition import Composition

TOTAL = 100_000
"""Steps that schedules get, so that none of them is over."""
ALONE = (f"train.max_steps={TOTAL}", "train.precision=fp32", "train.device=cpu")
DOCUMENT = 8
"""Sentences of a synthetic document."""


@dataclass(frozen=True)
class Sizes:
    """Rows of the data, batches, steps of a repeat, and steps before these, which fill buffers."""

    rows: int = 4096
    batch: int = 64
    steps: int = 2
    warm: int = 18


def parts(report: Report, given: Given) -> None:
    """Measure every installed store, augmenter and miner but those of rounds."""
    sizes = Sizes(128, 8, 1, 1) if given.quick else Sizes()
    every = [
        f"{kind}.{part.name}"
        for kind in ("negatives", "positives", "aug")
        for part in registry().parts(kind)
        if not getattr(part.spec, "rounds", False)
    ]
    bench = Bench(given, sizes)
    report.say(
        f"Model starter, batches of {sizes.batch}, at most 32 tokens, {sizes.rows:,} rows; "
        f"{given.repeats} repeats of {sizes.steps} steps in turn with plain simcse, after "
        f"{sizes.warm} that fill buffers. Miners of rounds work between steps and are left out."
    )
    lines = []
    for path in every:
        if (cost := bench.cost(path)) is not None:
            views, found = cost
            lines.append([path, views, spread(found)])
            print(f"{path}: {spread(found)}", flush=True)
            if path == "aug.fgsm":
                report.add("fgsm", found)
    views = "views trained / for input gradients / without gradient"
    head = ["part", views, "a step of plain simcse's"]
    report.table("Stores, miners and augmenters", head, lines)


class Bench:
    def __init__(self, given: Given, sizes: Sizes) -> None:
        from cse_testkit import complete

        from cse_engine.compose.models import Models

        silence()
        self.sizes, self.repeats = sizes, given.repeats
        self.model = str(Models(registry()).weights("starter"))
        self.columns = columns(given.texts, sizes.rows)
        self.plain = self.run(complete(registry(), []))

    def run(self, needed: Needed) -> Run:
        from cse_testkit.tiny import data_file

        from cse_defaults.texts import Corpus
        from cse_engine.compose.compose import resolve
        from cse_engine.compose.models import Models

        made = {name: self.columns[name] for name in needed.columns}
        corpus = Corpus.from_columns(made or {"text": self.columns["text"]}, name="rows")
        known = Models(registry()).look(self.model)[0]
        composition = resolve(
            registry(),
            kinds=needed.kinds,
            sets=[*needed.sets, *ALONE, f"train.batch_size={self.sizes.batch}"],
            model=self.model,
            data=[str(data_file(corpus))],
            facts=replace(known, rows=len(corpus), columns=corpus.names),
        )
        return Run(composition)

    def cost(self, path: str) -> tuple[str, list[float]] | None:
        """Return a part's views, and in each repeat the seconds of its steps over plain simcse's.

        None where it needs a cased encoder or texts that are not here.
        """
        from cse_testkit import complete

        from cse_core.errors import CseError

        sizes, plain = self.sizes, self.plain
        kind, _, name = path.partition(".")
        try:
            needed = complete(registry(), [(kind, name)])
            if needed.cased:
                return None
            run = self.run(needed)
        except CseError as error:
            print(error.line())
            return None
        for place in range(sizes.warm):
            run.step(place)
        for place in range(2):
            plain.step(place)
        works = {
            "plain": partial(plain.steps, self._places()),
            "part": partial(run.steps, self._places()),
        }
        found = alternate(works, self.repeats, warm=0)
        views = run.views()
        del run, works
        gc.collect()
        return views, ratios(found["part"], found["plain"])

    def _places(self) -> Iterator[range]:
        """Yield the places of each repeat's batches, the same for whoever asks."""
        start, steps = self.sizes.warm, self.sizes.steps
        return (range(start + i * steps, start + (i + 1) * steps) for i in range(TOTAL))


def columns(path: str | None, count: int) -> dict[str, list[str]]:
    """Return columns of so many rows: text, document, title, fraternal, negative, positive."""
    if path is None:
        rows = load(None)
        size = min(count, len(rows))
        found = {name: rows.column(name)[:size] for name in rows.names}
    else:
        texts = read(path, count)
        found = {
            "text": texts,
            "document": [f"document {row // DOCUMENT}" for row in range(len(texts))],
            "title": [texts[row // DOCUMENT * DOCUMENT][:60] for row in range(len(texts))],
            "fraternal": random.Random(2).sample(texts, len(texts)),
        }
    texts = found["text"]
    others = [*texts[len(texts) // 2 :], *texts[: len(texts) // 2]]
    return {**found, "negative": others, "positive": others[::-1]}


class Run:
    """A composition that is stepped, without a folder, scores or checkpoints."""

    def __init__(self, composition: Composition) -> None:
        from cse import Session
        from cse_engine.step.training_rows import Batches

        self.composition = composition
        self.session = Session(composition).prepare()
        rows = len(self.session.rows)
        size = min(composition.train.batch_size, rows)
        self.batches = Batches(rows - rows % size, size)

    def step(self, place: int) -> float:
        index = self.batches.at(place)
        began = time.perf_counter()
        self.session.step(index)
        return time.perf_counter() - began

    def steps(self, places: Iterator[range]) -> float:
        return statistics.mean(self.step(place) for place in next(places))

    def views(self) -> str:
        """Return the views that are trained, encoded for their inputs' gradient, and without."""
        trained = inputs = without = 0
        for each in self.composition.passes:
            if not each.gradient:
                without += len(each.views)
            elif each.why.startswith("gradient of the inputs"):
                inputs += len(each.views)
            else:
                trained += len(each.views)
        return f"{trained} / {inputs} / {without}"
