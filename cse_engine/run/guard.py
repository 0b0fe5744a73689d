"""Two refusals in a run: a step that made numbers that are not finite, parts that learn nothing."""

from __future__ import annotations

import json
from collections.abc import Container
from pathlib import Path

from cse_core.errors import CseError
from cse_core.files import atomic_write
from cse_engine.run.checkpoint import not_finite
from cse_engine.run.loop import TrainingLoop
from cse_engine.runtime import distributed

FIRST_STEPS = 10
"""Steps in which every encoder, pooler and loss has had a gradient."""


def refuse_untrained(loop: TrainingLoop, computed: Container[str]) -> None:
    """Refuse a run whose first steps gave the encoder, a pooler or a loss no gradient.

    Losses that were not ``computed``, or weigh nothing so far, may get theirs later.

    Raises:
        CseError: At the part that learns nothing.
    """
    acting = {
        loss.path
        for loss, weight in loop.assembly.composition.weights()
        if f"{loss.name}.loss" in computed
        and any(weight.at(step, loop.total) for step in range(loop.done))
    }
    for path in loop.optimizer.untrained() if acting else ():
        if path in ("encoder", *acting) or path.startswith("pool."):
            what = f"had no gradient in the first {loop.done} steps, so it learns nothing"
            hint = "a part may return zeros, or every negative be masked: see cse inspect"
            raise CseError(what, where=path, hint=hint)


def refuse_not_finite(loop: TrainingLoop, folder: Path) -> None:
    """Wait for the steps so far, and stop where one made a number that is not finite.

    The first process writes the texts of that step to a file in the run's folder.

    Raises:
        CseError: With the part, its method and the file.
    """
    bad = loop.assembly.calls.first_bad()
    if bad is None:
        return
    step, path, method = bad
    index = loop.batches.at(step)
    texts = {name: loop.rows.texts(name, index) for name in loop.rows.columns}
    file = folder / f"not-finite-step-{step + 1}.json"
    if distributed.rank_and_size()[0] == 0:
        about = {"round": loop.current.number, "step": step + 1, "part": path, "method": method}
        atomic_write(file, json.dumps({**about, "texts": texts}, indent=1) + "\n")
    part = loop.assembly.parts.get(path)
    who = path if part is None else f"{path} of {part.owner}"
    raise not_finite(f"{who}: {method} made numbers that are not finite", step + 1, file)
