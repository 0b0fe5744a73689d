"""Warnings of settings that a run takes, and that hardly mean what they say; imports no torch."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cse_core.recipes.composition import Composition
from cse_core.registry.registry import Registry


def advice(run: Composition, registry: Registry) -> Iterator[str]:
    """Yield a line for each setting of a composition that may be a mistake."""
    yield from _of_sizes(run)
    yield from _of_weights(run)
    yield from _of_patience(run, registry)


def _of_sizes(run: Composition) -> Iterator[str]:
    """Yield warnings of sizes that do not fit each other."""
    train, facts = run.train, run.facts
    if train.chunk_size is not None and train.chunk_size > train.batch_size:
        yield (
            f"train.chunk_size {train.chunk_size} is larger than train.batch_size "
            f"{train.batch_size}: nothing is chunked"
        )
    if train.warmup > max(1, facts.steps or math.inf):
        yield f"train.warmup {train.warmup:g} is longer than the run ({facts.steps} steps)"
    if facts.rows is not None and facts.rows < train.batch_size:
        yield (
            f"train.batch_size {train.batch_size} is larger than the data ({facts.rows} rows): "
            "each epoch is one short batch"
        )


def _of_weights(run: Composition) -> Iterator[str]:
    """Yield warnings of negative weights of losses, such as ``1 - alpha`` of an alpha above 1."""
    for loss, options in run.losses():
        least = options.weight.bounds[0]
        if least < 0:
            yield (f"{loss.path}.weight is below zero ({least:g}): training increases that loss")


def _of_patience(run: Composition, registry: Registry) -> Iterator[str]:
    """Yield warnings of a patience that nothing can try: scores are what it waits for.

    Where a recipe counts on it, such as one whose steps at most are many more than it takes, the
    run would be as much longer, and nothing else would say so.
    """
    train, installed = run.train, {found.name for found in registry.datasets()}
    has_pairs = any(path in installed for path in run.data.path)  # what auto finds pairs of
    if any(has_pairs if name == "auto" else name != "none" for name in train.dev):
        return
    steps = "all its epochs" if train.max_steps is None else f"all its {train.max_steps} steps"
    waits = [("train.patience", train.patience, steps)]
    for part in run.round_miners:
        bound = "all its epochs" if hasattr(part.options, "epochs") else steps
        waits.append((f"{part.path}.patience", getattr(part.options, "patience", None), bound))
    for path, patience, bound in waits:
        if patience is not None:
            yield (
                f"{path} = {patience} has no effect without a dev set: a round takes {bound}; "
                "add a dev set with --dev FILE"
            )
