"""Time inside a store or miner: in a step with the columns that it adds, and before the steps.

In a step it is the difference of two objectives from the same vectors, one with the part and one
without it, forward and backward to the vectors, and beside it the part's ``views`` and
``after_step``. Encoder passes are none of this: the engine makes them before, as the plan shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse_testkit import Rig

TRIES = 5
"""Objectives with and without the part in a step, in turn. The least of each counts: what else a
machine does makes one longer, never shorter."""


class Stopwatch:
    """Seconds inside some functions; a call inside another counts once.

    Attributes:
        seconds: So far.
        running: Whether one of them is being called.
    """

    def __init__(self, only_inside: Stopwatch | None = None) -> None:
        self.seconds = 0.0
        self.running = False
        self._outer = only_inside

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, timed."""

        def timed(*given: Any, **named: Any) -> Any:
            outside = self._outer is not None and not self._outer.running
            if self.running or outside:
                return function(*given, **named)
            self.running = True
            began = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                self.seconds += time.perf_counter() - began
                self.running = False

        return timed


@contextmanager
def timed_methods(owner: type, names: Sequence[str], watch: Stopwatch) -> Iterator[None]:
    """Time methods of a class for a while."""
    before = {name: vars(owner).get(name) for name in names}
    for name in names:
        setattr(owner, name, watch.around(getattr(owner, name)))
    try:
        yield
    finally:
        for name, method in before.items():
            if method is None:
                delattr(owner, name)
            else:
                setattr(owner, name, method)


class Followed:
    """An object that is called, and what is done after each call with the same arguments.

    Args:
        whole: The object.
        after: Called after it.
    """

    def __init__(self, whole: Any, after: Callable[..., None]) -> None:
        self._whole = whole
        self._after = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        found = self._whole(*given, **named)
        self._after(*given)
        return found


class Inside:
    """Time inside a store or miner of a run.

    Args:
        rig: The run, begun.
        path: ``negatives.NAME`` or ``positives.NAME``.
    """

    def __init__(self, rig: Rig, path: str) -> None:
        self.engine: Any = rig.engine
        self.assembly = rig.assembly
        self.part: Any = rig.assembly.parts[path]
        self.kind, _, self.name = path.partition(".")

    def seconds(self, step: Callable[[], object]) -> float:
        """Return the seconds inside the part during a step."""
        commits, differences = Stopwatch(), Stopwatch()
        objectives = self.engine.objectives

        def compare(*given: Any) -> None:
            differences.seconds += self._difference(objectives, *given)

        self.engine.objectives = Followed(objectives, compare)
        self.part.after_step = commits.around(self.part.after_step)
        self.part.views = commits.around(self.part.views)
        try:
            step()
        finally:
            self.engine.objectives = objectives
            del self.part.after_step, self.part.views
        return commits.seconds + differences.seconds

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
        leaves = {
            view: {
                level: replace(
                    each,
                    vectors=each.vectors.detach().requires_grad_(each.vectors.requires_grad),
                )
                for level, each in levels.items()
            }
            for view, levels in vectors.items()
        }
        wanted = [each.vectors for levels in leaves.values() for each in levels.values()]
        for path, module in self.assembly.modules():
            if path.startswith(("loss.", "negatives.", "positives.")):
                wanted.extend(module.parameters())
        wanted = [each for each in wanted if each.requires_grad]
        import torch

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
