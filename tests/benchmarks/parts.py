"""What each installed store, miner and augmenter costs over plain simcse.

Each is composed in the least run that takes it, and its steps are timed in turn with those of plain
simcse on the same rows, in one process. Beside the ratio stand the views that the plan sends
through the encoder, and for stores and miners the time inside them: that is what they cost beyond
the encoder's passes. It is the difference of two objectives from the same vectors, one with the
part and one without it, forward and backward to the vectors, and the part's ``views`` and
``after_step``.

    python -m tests.benchmarks.parts [negatives.queue ...] [--repeats 5] [--steps 2] [--texts FILE]
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.benchmarks.inputs import load, read, registry, silence
from tests.benchmarks.measure import alternate, ratios, spread
from tests.benchmarks.report import Report, parser

if TYPE_CHECKING:
    from cse_testkit.completion import Needed

    from cse_core.data import Corpus
    from cse_core.recipes.composition import Composition

TOTAL = 100_000
"""Steps that schedules get, so that none of them is over."""
DOCUMENT = 8
"""Sentences of a synthetic document."""
TRIES = 5
"""Objectives with and without the part in a step, in turn. The least of each counts: what else a
machine does makes one longer, never shorter."""


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("parts", nargs="*", help="kind.name; all stores, miners and augmenters")
    made.add_argument("--model", default="starter")
    made.add_argument("--texts", metavar="FILE", help="sentences, not the starter's")
    made.add_argument("--rows", type=int, default=4096, help="rows of the data")
    made.add_argument("--batch", type=int, default=64)
    made.add_argument("--steps", type=int, default=2, help="steps of a repeat")
    made.add_argument("--warm", type=int, default=18, help="steps before: buffers get full")
    return made.parse_args(words)


def main() -> None:
    """Measure and print."""
    options = arguments()
    report = Report("parts")
    kinds = ("negatives", "positives", "aug")
    every = [f"{kind}.{part.name}" for kind in kinds for part in registry().parts(kind)]
    bench = Bench(options)
    report.say(
        f"Model {options.model}, batches of {options.batch}, at most 32 tokens, {options.rows:,} "
        f"rows; {options.repeats} repeats of {options.steps} steps in turn with plain simcse, "
        f"after {options.warm} that fill buffers. Miners of rounds train on pairs of their own, of "
        "other lengths."
    )
    found = []
    for path in options.parts or every:
        found.append(bench.cost(path))
        print(f"{path}: {found[-1].refused or spread(found[-1].ratios)}", flush=True)
    head = [
        "part",
        "views trained / for the inputs' gradient / without gradient",
        "besides",
        "a step of plain simcse's",
        "inside, ms a step",
        "inside, % of its steps",
    ]
    report.table("Stores, miners and augmenters", head, [each.line() for each in found])
    for kind, row in (("negatives", "stores"), ("positives", "miners")):
        of_kind = [each for each in found if each.path.startswith(kind) and each.shares]
        if of_kind:
            most = max(of_kind, key=lambda each: statistics.median(each.shares))
            report.add(row, [100 * share for share in most.shares], most.path)
    for each in found:
        if each.path == "aug.fgsm" and each.ratios:
            report.add("fgsm", each.ratios)
    report.finish(options.json)


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
        refused: Why it did not run.
    """

    path: str
    views: str = ""
    besides: str = ""
    ratios: list[float] = field(default_factory=list)
    inside: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    refused: str = ""

    def line(self) -> list[str]:
        """Return it as a line of the table."""
        if self.refused:
            return [self.path, self.refused, *["-"] * 4]
        inside = spread([1000 * value for value in self.inside]) if self.inside else "-"
        share = spread([100 * value for value in self.shares]) if self.shares else "-"
        return [self.path, self.views, self.besides or "-", spread(self.ratios), inside, share]


class Bench:
    """Runs parts beside plain simcse.

    Args:
        options: The command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        from cse_testkit import complete

        from cse_core.recipes.model_facts import resolve_model

        silence()
        self.options = options
        self.model = resolve_model(options.model, registry())
        self.columns = columns(options.texts, options.rows)
        self.plain = self.run(complete(registry(), []))

    def run(self, needed: Needed) -> Run:
        """Return a run of what is needed, on rows with the columns that it needs."""
        from cse_core.data import Corpus
        from cse_core.recipes.compose import resolve
        from cse_core.recipes.model_facts import model_facts

        made = {name: self.columns[name] for name in needed.columns}
        corpus = Corpus.from_columns(made or {"text": self.columns["text"]}, name="rows")
        known = model_facts(self.model, registry())
        composition = resolve(
            registry(),
            kinds=needed.kinds,
            sets=[*needed.sets, f"train.batch_size={self.options.batch}"],
            model=self.model,
            facts=replace(known, rows=len(corpus), columns=corpus.names),
        )
        return Run(composition, corpus)

    def cost(self, path: str) -> Cost:
        """Measure a part."""
        from cse_testkit import complete

        from cse_core.errors import CseError

        options, plain = self.options, self.plain
        kind, _, name = path.partition(".")
        try:
            needed: Any = complete(registry(), [(kind, name)])
            if needed.cased:
                return Cost(path, refused="needs a cased model")
            run = self.run(needed)
        except CseError as error:
            return Cost(path, refused=error.line())
        for place in range(options.warm):
            run.step(place)
        for place in range(2):
            plain.step(place)
        works = {
            "plain": partial(plain.steps, self._places()),
            "part": partial(run.steps, self._places()),
        }
        if kind != "aug":
            works["inside"] = partial(run.steps, self._places(), Inside(run.rig, path).seconds)
        found = alternate(works, options.repeats, warm=0)
        inside = found.get("inside", [])
        besides = (part.path for part in run.composition.parts if part.path not in plain.paths)
        cost = Cost(
            path,
            views=run.views(),
            besides=", ".join(each for each in besides if each != path),
            ratios=ratios(found["part"], found["plain"]),
            inside=inside,
            shares=ratios(inside, found["part"]) if inside else [],
        )
        del run, works
        gc.collect()
        return cost

    def _places(self) -> Iterator[range]:
        """Yield the places of each repeat's batches, the same for whoever asks."""
        start, steps = self.options.warm, self.options.steps
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
        rig: The parts and the engine.
        paths: Paths of its parts.
    """

    def __init__(self, composition: Composition, corpus: Corpus) -> None:
        from cse_testkit import Rig

        from cse_core.tokenization.training_rows import Batches

        self.composition = composition
        self.rig = Rig(composition, corpus, registry=registry(), total_steps=TOTAL)
        self.rig.loop.before_update = None  # what the kit reads costs no part
        rows, size = len(self.rig.loop.rows), composition.train.batch_size
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
        rig: The run, begun.
        path: ``negatives.NAME`` or ``positives.NAME``.
    """

    def __init__(self, rig: Any, path: str) -> None:
        self.engine, self.assembly = rig.loop.engine, rig.assembly
        self.part: Any = rig.assembly.parts[path]
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


if __name__ == "__main__":
    main()
