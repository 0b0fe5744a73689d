"""What each installed store, miner and augmenter costs over plain simcse.

Each is composed in the least run that takes it, and its steps are timed in turn with those of plain
simcse on the same rows, in one process. Beside the ratio stand the views that the plan sends
through the encoder, and for stores and miners the time inside them: the difference of two
objectives from the same vectors, one with the part and one without it, forward and backward to the
vectors, and the part's ``views`` and ``after_step``.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.benchmarks.inputs import load, read, registry, silence
from tests.benchmarks.report import Report, alternate, ratios, spread
from tests.benchmarks.sections import Given

if TYPE_CHECKING:
    from cse_testkit.completion import Needed

    from cse_core.recipes.composition import Composition

TOTAL = 100_000
"""Steps that schedules get, so that none of them is over."""
ALONE = (f"train.max_steps={TOTAL}", "train.precision=fp32", "train.device=cpu")
DOCUMENT = 8
"""Sentences of a synthetic document."""
TRIES = 5
"""Objectives with and without the part in a step, in turn. The least of each counts: what else a
machine does makes one longer, never shorter."""


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
    found = []
    for path in every:
        if (cost := bench.cost(path)) is not None:
            found.append(cost)
            print(f"{path}: {spread(cost.ratios)}", flush=True)
    head = [
        "part",
        "views trained / for input gradients / without gradient",
        "a step of plain simcse's",
        "inside, ms a step",
        "inside, % of its steps",
    ]
    report.table("Stores, miners and augmenters", head, [each.line() for each in found])
    for kind, row in (("negatives", "stores"), ("positives", "miners")):
        of_kind = [each for each in found if each.path.startswith(kind)]
        most = max(of_kind, key=lambda each: statistics.median(each.shares))
        report.add(row, [100 * share for share in most.shares], most.path)
    report.add("fgsm", next(each.ratios for each in found if each.path == "aug.fgsm"))


@dataclass
class Cost:
    """What a part costs.

    Attributes:
        path: Its path.
        views: Views that the plan sends through the encoder.
        ratios: Seconds of a step over plain simcse's in each repeat.
        inside: Seconds inside it in a step, in each repeat; empty for augmenters.
        shares: The same over the seconds of its steps.
    """

    path: str
    views: str
    ratios: list[float]
    inside: list[float]
    shares: list[float]

    def line(self) -> list[str]:
        """Return it as a line of the table."""
        inside = spread([1000 * value for value in self.inside]) if self.inside else "-"
        share = spread([100 * value for value in self.shares]) if self.shares else "-"
        return [self.path, self.views, spread(self.ratios), inside, share]


class Bench:
    """Runs parts beside plain simcse."""

    def __init__(self, given: Given, sizes: Sizes) -> None:
        from cse_testkit import complete

        from cse_core.recipes.model_facts import resolve_model

        silence()
        self.sizes, self.repeats = sizes, given.repeats
        self.model = resolve_model("starter", registry())
        self.columns = columns(given.texts, sizes.rows)
        self.plain = self.run(complete(registry(), []))

    def run(self, needed: Needed) -> Run:
        """Return a run of what is needed, on rows with the columns that it needs."""
        from cse_testkit.tiny import data_file

        from cse_core.data import Corpus
        from cse_core.recipes.compose import resolve
        from cse_core.recipes.model_facts import model_facts

        made = {name: self.columns[name] for name in needed.columns}
        corpus = Corpus.from_columns(made or {"text": self.columns["text"]}, name="rows")
        known = model_facts(self.model, registry())
        composition = resolve(
            registry(),
            kinds=needed.kinds,
            sets=[*needed.sets, *ALONE, f"train.batch_size={self.sizes.batch}"],
            model=self.model,
            data=[str(data_file(corpus))],
            facts=replace(known, rows=len(corpus), columns=corpus.names),
        )
        return Run(composition)

    def cost(self, path: str) -> Cost | None:
        """Measure a part; None where it needs a cased encoder or texts that are not here."""
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
        if kind != "aug":
            works["inside"] = partial(run.steps, self._places(), Inside(run.session, path).seconds)
        found = alternate(works, self.repeats, warm=0)
        inside = found.get("inside", [])
        shares = ratios(inside, found["part"]) if inside else []
        cost = Cost(path, run.views(), ratios(found["part"], found["plain"]), inside, shares)
        del run, works
        gc.collect()
        return cost

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
    """A composition that is stepped, without a folder, scores or checkpoints.

    Attributes:
        session: The parts and the engine.
    """

    def __init__(self, composition: Composition) -> None:
        from cse import Session
        from cse_core.tokenization.training_rows import Batches

        self.composition = composition
        self.session = Session(composition).prepare()
        rows = len(self.session.rows)
        size = min(composition.train.batch_size, rows)
        self.batches = Batches(rows - rows % size, size)

    def step(self, place: int) -> float:
        """Run a step on the batch at a place, and return its seconds."""
        index = self.batches.at(place)
        began = time.perf_counter()
        self.session.step(index)
        return time.perf_counter() - began

    def steps(
        self, places: Iterator[range], measure: Callable[[Any], float] | None = None
    ) -> float:
        """Return the mean seconds of the next steps, or of what is measured in them."""
        steps: Sequence[Any] = [partial(self.step, place) for place in next(places)]
        return statistics.mean(step() if measure is None else measure(step) for step in steps)

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


class Inside:
    """Time inside a store or miner of a run.

    Args:
        session: The run.
        path: ``negatives.NAME`` or ``positives.NAME``.
    """

    def __init__(self, session: Any, path: str) -> None:
        self.engine, self.assembly = session._loop.engine, session._loop.assembly
        self.part: Any = session.parts[path]
        self.kind, _, self.name = path.partition(".")
        self._taken = 0.0

    def seconds(self, step: Callable[[], object]) -> float:
        """Return the seconds inside the part during a step."""
        self._taken = 0.0
        objectives, whole = self.engine.objectives, type(self.engine.objectives).__call__

        def compared(own: Any, *given: Any, **named: Any) -> Any:
            found = whole(own, *given, **named)
            type(own).__call__ = whole
            self._taken += self._difference(objectives, *given)
            type(own).__call__ = compared
            return found

        type(objectives).__call__ = compared
        self.part.after_step = self._timed(self.part.after_step)
        self.part.views = self._timed(self.part.views)
        try:
            step()
        finally:
            type(objectives).__call__ = whole
            del self.part.after_step, self.part.views
        return self._taken

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            began = time.perf_counter()
            found = function(*given, **named)
            self._taken += time.perf_counter() - began
            return found

        return timed

    def _difference(self, objectives: Any, vectors: Any, *given: Any) -> float:
        """Return what the part adds to the objective and its backward pass."""
        self._objective(objectives, vectors, *given)  # warm
        whole, bare = [], []
        for _ in range(TRIES):
            whole.append(self._objective(objectives, vectors, *given))
            with self._without():
                bare.append(self._objective(objectives, vectors, *given))
        return min(whole) - min(bare)

    def _objective(self, objectives: Any, vectors: Any, *given: Any) -> float:
        import torch

        def leaf(each: Any) -> Any:
            needs = each.vectors.requires_grad
            return replace(each, vectors=each.vectors.detach().requires_grad_(needs))

        leaves = {
            view: {level: leaf(each) for level, each in levels.items()}
            for view, levels in vectors.items()
        }
        wanted = [each.vectors for levels in leaves.values() for each in levels.values()]
        for path, module in self.assembly.modules():
            if path.startswith(("loss.", "negatives.", "positives.")):
                wanted.extend(module.parameters())
        wanted = [each for each in wanted if each.requires_grad]
        began = time.perf_counter()
        found = objectives(leaves, *given)
        if found.value is not None and wanted:
            torch.autograd.grad(found.value, wanted, allow_unused=True)
        return time.perf_counter() - began

    @contextmanager
    def _without(self) -> Iterator[None]:
        """Take the part away; a loss over positives that it finds is away then too."""
        from cse_core.parts import NegativeStore, PositiveMiner

        stores = self.kind == "negatives"
        parts: Any = self.assembly.stores if stores else self.assembly.miners
        whole = parts[self.name]
        parts[self.name] = NegativeStore() if stores else PositiveMiner()
        try:
            yield
        finally:
            parts[self.name] = whole
