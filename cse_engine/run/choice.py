"""What a run keeps at its end: its best weights, an average with the start's, or the start's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from cse_core.parts import Metric
from cse_engine.compose.settings import TrainOptions
from cse_engine.run.checkpoint import Checkpoint, averaged
from cse_engine.run.selection import Best, Scorer


@dataclass(frozen=True)
class Choice:
    """The weights that a run keeps.

    Attributes:
        best: Their scores, and where they were reached.
        why: How the model's card says what chose them.
        verdicts: What they are beside the start, a sentence each.
    """

    best: Best
    why: str
    verdicts: tuple[str, ...] = ()


def choose(
    scorer: Scorer,
    options: TrainOptions,
    *,
    read: Callable[[Best], Checkpoint],
    restore: Callable[[Checkpoint], None],
    encode: Callable[..., Tensor],
    metrics: Mapping[str, Metric],
) -> Choice:
    """Put the weights back that a run keeps, of which the dev sets scored some.

    Where the start counts, averages of it with the best weights are scored too. The dev sets
    then judge by what chose nothing, and unless one finds the run better the start is kept.

    ``read`` returns the weights of a score, ``restore`` puts weights into the model, and ``encode``
    encodes by it; the first process has the vectors.
    """
    best, start = scorer.of_run, scorer.start
    kept = read(best)
    restore(kept)
    why = f"step {best.step} by {scorer.select} = {best.score:.2f}"
    if not options.select_start or start.score is None:
        return Choice(best, why)
    no_better = f"the start, {scorer.select} = {start.score:.2f}"
    if start.place == best.place:
        return Choice(best, no_better, (f"no better: no step scores above {no_better}",))
    chosen = kept
    for share in options.merge:
        mixed = averaged(read(start), chosen, share)
        restore(mixed)
        scores, answers = scorer.measure(encode, metrics)
        value = scorer.value(scores, scorer.select)
        if value is not None and best.is_improved_by(value):
            best, kept = replace(best, score=value, scores=scores, answers=answers), mixed
            why = f"{share:g} of step {best.step}, {1 - share:g} of the start"
            why += f" by {scorer.select} = {value:.2f}"
    verdicts = [
        scorer.dev[name].verdict(np.array(start.answers[name]), np.array(end))
        for name, end in best.answers.items()
    ]
    said = tuple(verdict.text for verdict in verdicts)
    if len(scorer.names) > 1:
        said += tuple(
            f"{name}: {start.scores[name]:.2f} at the start, {best.scores[name]:.2f} now"
            for name in scorer.names
            if name in start.scores and name in best.scores
        )
    if verdicts and not any(verdict.better for verdict in verdicts):
        restore(read(start))
        return Choice(start, no_better, (*said, f"no better: kept {no_better}"))
    restore(kept)
    return Choice(best, why, said)
