"""Time inside a store or miner, with the columns that it adds, as a share of the steps.

Trains a composition and, at every step, computes its loss twice more from the same vectors, with
the part and without it: the difference, and the part's ``after_step``, are what it costs beyond the
encoder passes that the plan shows.

    python benchmarks/parts.py negatives.queue [--recipe simcse] [--loss twins] [--steps 50] \
        [--set negatives.queue.size=512]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from cse_core.composer import resolve
from cse_core.manager import load_plugins
from cse_core.registry import Registry
from cse_core.reporting import Reporter
from cse_core.training import train


class Meter(Reporter):
    """Seconds of each step, less what the measuring itself took.

    Args:
        kind: ``negatives`` or ``positives``.
        name: The part.
    """

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        self.steps: list[float] = []
        self.costs: list[float] = []
        self.cost = self.measuring = 0.0
        self.began: float | None = None

    def step(self, step: int) -> None:
        """Close a step."""
        now = time.perf_counter()
        if self.began is not None:
            self.steps.append(now - self.began - self.measuring)
            self.costs.append(self.cost)
        self.cost = self.measuring = 0.0
        self.began = time.perf_counter()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Measure every step of the engine inside."""
        from cse_core.engine import Engine

        objective, commit = Engine._objective, Engine._commit

        def measured(engine: Any, vectors: Any, work: Any, **options: Any) -> Any:
            found = objective(engine, vectors, work, **options)
            began = time.perf_counter()
            self._again(engine, vectors, work)  # warm
            whole = self._again(engine, vectors, work)
            with self._without(engine):
                bare = self._again(engine, vectors, work)
            self.cost += whole - bare
            self.measuring += time.perf_counter() - began
            return found

        def committed(engine: Any, *arguments: Any) -> None:
            part = self._parts(engine)[self.name]
            own = part.after_step

            def timed(*given: Any) -> None:
                began = time.perf_counter()
                own(*given)
                self.cost += time.perf_counter() - began

            part.after_step = timed
            try:
                commit(engine, *arguments)
            finally:
                del part.after_step

        Engine._objective, Engine._commit = measured, committed  # type: ignore[method-assign]
        try:
            yield
        finally:
            Engine._objective, Engine._commit = objective, commit  # type: ignore[method-assign]

    def _parts(self, engine: Any) -> dict[str, Any]:
        assembly = engine.assembly
        return assembly.stores if self.kind == "negatives" else assembly.miners

    def _again(self, engine: Any, vectors: Any, work: Any) -> float:
        """Return the seconds of the loss and its backward pass to the vectors."""
        leaves = {
            view: {
                level: replace(each, vectors=each.vectors.detach().requires_grad_(True))
                for level, each in levels.items()
            }
            for view, levels in vectors.items()
        }
        roles, rows = work.roles, work.rows.to(engine.device)
        began = time.perf_counter()
        found = engine.objectives(leaves, roles, rows, engine.keys, work.context())
        if found.value is not None:
            found.value.backward()
        return time.perf_counter() - began

    @contextmanager
    def _without(self, engine: Any) -> Iterator[None]:
        parts, objectives = self._parts(engine), engine.objectives
        levels = objectives.store_level if self.kind == "negatives" else objectives.miner_level
        part, level = parts.pop(self.name), levels.pop(self.name)
        try:
            yield
        finally:
            parts[self.name], levels[self.name] = part, level


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return what the part costs."""
    kind, _, name = options.part.partition(".")
    registry = Registry.from_plugins(load_plugins().infos)
    kinds = {kind: [name]}
    if options.loss:
        kinds["loss"] = [options.loss]
    composition = resolve(
        registry,
        recipe=options.recipe,
        kinds=kinds,
        model=options.model,
        data=options.data or [],
        dev=["none"],
        sets=[
            *options.set,
            f"train.max_steps={options.steps + options.warm}",
            "train.eval_steps=0",
            "train.save_steps=0",
        ],
    )
    meter = Meter(kind, name)
    with tempfile.TemporaryDirectory() as out, meter.watching():
        train(composition, registry, out=Path(out) / "run", reporter=meter)
    steps, costs = meter.steps[options.warm - 1 :], meter.costs[options.warm - 1 :]
    return {
        "part": options.part,
        "steps": len(steps),
        "seconds a step": round(sum(steps) / len(steps), 4),
        "milliseconds of the part": round(1000 * sum(costs) / len(costs), 3),
        "share %": round(100 * sum(costs) / sum(steps), 2),
    }


def main() -> None:
    """Measure the part and print a line for it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", help="negatives.NAME or positives.NAME")
    parser.add_argument("--recipe", default="simcse")
    parser.add_argument("--loss")
    parser.add_argument("--model", default="starter")
    parser.add_argument("--data", action="append")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--warm", type=int, default=10)
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    print(json.dumps(measure(options)))


if __name__ == "__main__":
    main()
