"""The least run that takes a part, and its steps in turn with those of plain simcse."""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.inputs import Shape, load, make_model, read, registry
from tests.benchmarks.inside import Inside, Stopwatch, timed_methods
from tests.benchmarks.measure import alternate, ratios, spread

if TYPE_CHECKING:
    from cse_testkit import Needed

    from cse_core.data import Corpus
    from cse_core.recipes.composition import Composition

TOTAL = 100_000
"""Steps that schedules get, so that none of them is over."""
DOCUMENT = 8
"""Sentences of a made-up document."""


@dataclass
class Cost:
    """What a part costs.

    Attributes:
        path: Its path.
        views: Views that the plan sends through the encoder.
        besides: Other parts that the run has beyond plain simcse.
        ratios: Seconds of a step over plain simcse's in each repeat.
        inside: Seconds inside it in a step, in each repeat; empty for augmenters.
        shares: The same over the seconds of its steps.
        before: Seconds before the first step.
        encoding: Of these encoding.
        refused: Why it did not run.
    """

    path: str
    views: str = ""
    besides: str = ""
    ratios: list[float] = field(default_factory=list)
    inside: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    before: float = 0.0
    encoding: float = 0.0
    refused: str = ""

    def line(self) -> list[str]:
        """Return it as a line of the table."""
        if self.refused:
            return [self.path, self.refused, *["-"] * 6]
        inside = [spread([1000 * value for value in self.inside])] if self.inside else ["-"]
        share = [spread([100 * value for value in self.shares])] if self.shares else ["-"]
        before = ["-", "-"]
        if self.before >= 0.01:
            before = [f"{self.before:.2f}", f"{self.encoding:.2f}"]
        printed = self.path, self.views, self.besides or "-", spread(self.ratios)
        return [*printed, *inside, *share, *before]


class Bench:
    """Runs parts beside plain simcse.

    Args:
        options: The command line.
        folder: Where models are made.
    """

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self._base: tuple[str, Run] | None = None

    def cost(self, path: str) -> Cost:
        """Measure a part."""
        from cse_testkit import complete

        from cse_core.errors import CseError

        kind, _, name = path.partition(".")
        chosen: Any = [(kind, name)]
        if self.options.loss:
            chosen.append(("loss", self.options.loss))
        try:
            needed = complete(registry(), chosen)
            return self._cost(path, needed)
        except CseError as error:
            return Cost(path, refused=error.line())

    def _cost(self, path: str, needed: Needed) -> Cost:
        options = self.options
        model = self.model(needed.cased)
        base = self.base(model)
        corpus = self.corpus(needed.columns)
        composition = self.compose(needed, model, corpus, options.set)
        before = Stopwatch()
        encoding = Stopwatch(only_inside=before)
        with _watching(composition, path, before, encoding):
            run = Run(composition, corpus)
        for place in range(options.warm):
            run.step(place)
        for place in range(2):
            base.step(place)
        works: dict[str, Callable[[], float]] = {
            "plain": partial(base.steps, self._places()),
            "part": partial(run.steps, self._places()),
        }
        if not path.startswith("aug."):
            meter = Inside(run.rig, path)
            works["inside"] = partial(run.steps, self._places(), meter.seconds)
        found = alternate(works, options.repeats, warm=0)
        inside = found.get("inside", [])
        cost = Cost(
            path,
            views=_views(composition),
            besides=", ".join(
                part.path
                for part in composition.parts
                if part.path != path and part.path not in base.paths
            ),
            ratios=ratios(found["part"], found["plain"]),
            inside=inside,
            shares=ratios(inside, found["part"]) if inside else [],
            before=before.seconds,
            encoding=encoding.seconds,
        )
        del run
        gc.collect()
        return cost

    def _places(self) -> Iterator[range]:
        """Yield the places of each repeat's batches, the same for whoever asks."""
        start, steps = self.options.warm, self.options.steps
        return (range(start + i * steps, start + (i + 1) * steps) for i in range(TOTAL))

    def model(self, cased: bool) -> str:
        """Return the folder of the model; where capital letters must count, of a random one."""
        return _cased_model(self) if cased else _folder(self.options.model)

    def base(self, model: str) -> Run:
        """Return plain simcse with a model; only the last one is kept."""
        from cse_testkit import complete

        if self._base is None or self._base[0] != model:
            self._base = None
            corpus = self.corpus(("text",))
            needed = complete(registry(), [])
            self._base = model, Run(self.compose(needed, model, corpus), corpus)
        return self._base[1]

    def compose(
        self, needed: Needed, model: str, corpus: Corpus, sets: Sequence[str] = ()
    ) -> Composition:
        """Return the composition of what is needed."""
        from cse_core.recipes.compose import resolve
        from cse_core.recipes.model_facts import model_facts

        known = model_facts(model, registry())
        return resolve(
            registry(),
            kinds=needed.kinds,
            sets=[*needed.sets, f"train.batch_size={self.options.batch}", *sets],
            model=model,
            facts=replace(known, rows=len(corpus), columns=corpus.names),
        )

    def corpus(self, columns: Sequence[str]) -> Corpus:
        """Return rows with these columns: the starter's own, or made of a file's sentences."""
        from cse_core.data import Corpus

        made = _columns(self.options.texts, self.options.rows)
        return Corpus.from_columns({name: made[name] for name in columns}, name="rows")


@cache
def _folder(model: str) -> str:
    from cse_core.recipes.model_facts import resolve_model

    return resolve_model(model, registry())


@cache
def _cased_model(bench: Bench) -> str:
    from cse_core.recipes.model_facts import model_facts

    facts = model_facts(_folder(bench.options.model), registry())
    texts = bench.corpus(("text",)).column("text")
    shape = Shape(facts.layers or 4, facts.hidden or 256)
    return make_model(bench.folder / "cased", list(texts), shape, cased=True)


@cache
def _columns(path: str | None, count: int) -> dict[str, list[str]]:
    """Return columns of so many rows: text, document, title, fraternal, negative, positive."""
    if path is None:
        rows = load(None)
        size = min(count, len(rows))
        found = {name: rows.column(name)[:size] for name in rows.names}
    else:
        texts = read(path, count)
        draws = random.Random(2)
        found = {
            "text": texts,
            "document": [f"document {row // DOCUMENT}" for row in range(len(texts))],
            "title": [texts[row // DOCUMENT * DOCUMENT][:60] for row in range(len(texts))],
            "fraternal": draws.sample(texts, len(texts)),
        }
    texts = found["text"]
    others = [*texts[len(texts) // 2 :], *texts[: len(texts) // 2]]
    return {**found, "negative": others, "positive": others[::-1]}


class Run:
    """A composition that is stepped, without a folder, scores or checkpoints.

    Attributes:
        rig: The parts and the engine.
        paths: Paths of its parts.
    """

    def __init__(self, composition: Composition, corpus: Corpus) -> None:
        from cse_testkit import Rig

        from cse_core.tokenization.training_rows import Batches

        self.rig = Rig(composition, corpus, registry=registry(), total_steps=TOTAL)
        self.rig.loop.before_update = None  # what the kit reads costs no part
        rows, size = len(self.rig.rows), composition.train.batch_size
        self.batches = Batches(rows, min(size, rows), drop_last=True)
        self.paths = {part.path for part in composition.parts}

    def step(self, place: int) -> float:
        """Run a step on the batch at a place, and return its seconds."""
        index = self.batches.at(place)
        began = time.perf_counter()
        self.rig.loop.step(index)
        return time.perf_counter() - began

    def steps(
        self, places: Iterator[range], measure: Callable[[Any], float] | None = None
    ) -> float:
        """Return the mean seconds of the next steps, or of what is measured in them."""
        found = []
        for place in next(places):
            step = partial(self.step, place)
            found.append(step() if measure is None else measure(step))
        return statistics.mean(found)


@contextmanager
def _watching(
    composition: Composition, path: str, before: Stopwatch, encoding: Stopwatch
) -> Iterator[None]:
    """Time what a part does before the first step, and the encoding in that."""
    from cse_core.models.sentence_encoder import SentenceEncoder
    from cse_core.runtime.loading import load_factory

    choice = next(part for part in composition.parts if part.path == path)
    owner = load_factory(choice.spec.factory)
    with (
        timed_methods(owner, ("prepare", "begin_round", "next_round"), before),
        timed_methods(SentenceEncoder, ("encode", "encode_table"), encoding),
    ):
        yield


def _views(composition: Composition) -> str:
    trained = inputs = without = 0
    for each in composition.passes:
        if not each.gradient:
            without += len(each.views)
        elif each.why.startswith("gradient of the inputs"):
            inputs += len(each.views)
        else:
            trained += len(each.views)
    return f"{trained} / {inputs} / {without}"
