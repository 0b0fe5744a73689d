"""A step of a composition or of a run, with what its losses were given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cse_cli.training.equipment import attach_callbacks
from cse_core.data import Corpus
from cse_core.engine.views import PreparedView
from cse_core.errors import CseError
from cse_core.parts import Loss
from cse_core.recipes.compose import resolve
from cse_core.recipes.composition import Composition
from cse_core.registry.registry import Registry
from cse_core.runtime import distributed
from cse_core.runtime.reporter import Reporter
from cse_core.tokenization.training_rows import TrainingRows
from cse_core.training import checkpoint as saved
from cse_core.training.checkpoint import Checkpoint
from cse_core.training.loop import TrainingLoop
from cse_core.training.run import Prepared
from cse_core.training.run_folder import RunFolder
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext


@dataclass(frozen=True)
class Given:
    """What a loss was given in one direction, and its value."""

    batch: Batch
    targets: Positives
    negatives: Negatives
    value: float


@dataclass(frozen=True)
class WatchedStep:
    """A step, and what was seen in it.

    Attributes:
        step: Its number in the round, from 0.
        views: The rows that the encoders read, by view; those of this process.
        given: What each loss was given by its name, anchors to targets first.
        parts: The step's numbers for ``metrics.jsonl``.
    """

    prepared: Prepared
    loop: TrainingLoop
    rows: TrainingRows
    step: int
    views: Mapping[str, PreparedView]
    given: Mapping[str, tuple[Given, ...]]
    parts: Mapping[str, float]


class _Listening(Loss):
    """A loss that keeps what it was given."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.name = loss.name
        self.calls: list[Given] = []

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        output = self.loss(batch, targets, negatives, ctx)
        self.calls.append(Given(batch, targets, negatives, float(output.value.detach())))
        return output


@contextmanager
def watch_choice(
    composition: Composition,
    registry: Registry,
    *,
    after: int,
    reporter: Reporter,
    corpus: Corpus | None = None,
) -> Iterator[WatchedStep]:
    """Make ``after`` steps of a composition and watch the next one; nothing of it stays."""
    with TemporaryDirectory(prefix="cse-inspect-") as folder:
        prepared = _prepared(composition, registry, reporter, corpus)
        yield _watched(prepared, RunFolder(Path(folder)), None, after)


@contextmanager
def watch_run(
    path: Path, registry: Registry, *, after: int, reporter: Reporter
) -> Iterator[WatchedStep]:
    """Make ``after`` steps from the last checkpoint of a run and watch the next one.

    The run's folder stays as it is.

    Raises:
        CseError: If it is not a run, or the data has changed.
    """
    folder = RunFolder.open(path)
    found = folder.checkpoints()
    checkpoint = Checkpoint.read(found[-1]) if found else None
    prepared = _prepared(resolve(registry, recipe=folder.recipe), registry, reporter, None)
    with TemporaryDirectory(prefix="cse-inspect-") as beside:
        if checkpoint is None or not checkpoint.values["round"]:
            folder = RunFolder(Path(beside))  # rounds are written where they begin
        yield _watched(prepared, folder, checkpoint, after)


def _prepared(
    composition: Composition, registry: Registry, reporter: Reporter, corpus: Corpus | None
) -> Prepared:
    train = composition.train.model_copy(update={"dev": (), "select": None, "report": ()})
    prepared = Prepared(replace(composition, train=train), registry, reporter, corpus)
    if distributed.rank_and_size()[1] > 1:
        raise CseError("shows a single process", where="inspect", hint="start it alone")
    return prepared


def _watched(
    prepared: Prepared, folder: RunFolder, checkpoint: Checkpoint | None, after: int
) -> WatchedStep:
    assembly, trainer = prepared.assembly, prepared.trainer(folder)
    attach_callbacks(trainer)
    trainer.prepare()
    if checkpoint is not None:
        saved.restore_assembly(assembly, checkpoint)
        vars(trainer.rounds).update(checkpoint.values["rounds"])
    current = next(trainer.rounds.each(checkpoint is not None), None)
    if current is None:
        raise CseError("needs no training round", where="positives")
    rows = trainer.rounds.begin(current)
    loop = TrainingLoop(assembly, current, rows, prepared.precision, prefetch=False)
    try:
        if checkpoint is not None:
            loop.restore(checkpoint)
        loop.engine.builder.tokenise(prepared.reporter)
        for _ in range(after):
            loop.step()
        views: dict[str, PreparedView] = {}
        build = loop.engine.builder.build

        def collect_errors(*given: Any) -> dict[str, PreparedView]:
            made = build(*given)
            views.update(made)
            return made

        vars(loop.engine.builder)["build"] = collect_errors
        losses = {name: _Listening(loss) for name, loss in assembly.losses.items()}
        assembly.losses.update(losses)
        step = loop.done
        result = loop.step(count_negatives=True)
    finally:
        loop.close()
    given = {}
    for choice in loop.engine.objectives.losses:
        both = getattr(choice.options, "directions", "one") == "both"
        # A trial for the gradient of the inputs asks the losses too, before the step itself.
        given[choice.name] = tuple(losses[choice.name].calls[-2 if both else -1 :])
    parts = {name: float(value) for name, value in result.parts.items()}
    return WatchedStep(prepared, loop, rows, step, views, given, parts)


def text_of(watched: WatchedStep, column: str, row: int) -> str | None:
    """Return the text of a corpus row in a column; None of a row that is not of this round."""
    rows = watched.rows
    if rows.pairs is not None and not isinstance(rows.pairs["text"], np.ndarray):
        place, texts = row - rows.keys.first, rows.pairs.get(column, rows.pairs["text"])
        return str(texts[place]) if 0 <= place < len(texts) else None
    named = column if column in rows.corpus.names else "text"
    return rows.corpus.column(named)[row] if 0 <= row < len(rows.corpus) else None
