"""Dev scores during training: which score chooses, what is best so far, what the end keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cse_core.parts import Metric
from cse_core.suites import DevSet, Encode, Role
from cse_engine.compose.settings import TrainOptions
from cse_engine.run.checkpoint import Checkpoint, averaged
from cse_engine.run.dev_sets import MEAN, by_name, choosing_score
from cse_engine.runtime.sharing import run_on_rank_zero

BESTS = ("of_round", "of_run", "start")
"""Those that a :class:`Scorer` keeps."""


@dataclass
class Best:
    """A best score, where it was reached, and how many evaluations ago."""

    score: float | None = None
    step: int = 0
    round: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    evals_since_best: int = 0

    def is_improved_by(self, score: float | None) -> bool:
        """Check whether a score is strictly better; one that is not defined never is."""
        return score is not None and (self.score is None or score > self.score)

    @property
    def place(self) -> tuple[int, int]:
        """Return the round and step of its checkpoint."""
        return self.round, self.step


@dataclass(frozen=True)
class _DevEncoder:
    """The encoder that dev sets are scored with, of queries or documents where it has a role."""

    encode: Callable[..., Tensor]
    similarity: str
    role: tuple[Role, ...] = ()

    def with_role(self, role: Role) -> Encode:
        return replace(self, role=(role,))

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self.encode(texts, *self.role).numpy()
        return vectors


class Scorer:
    """Scores the model in training and keeps what is best, in the round and in the run.

    Args:
        dev: The sets to score; of equal names the second becomes ``name-2``.
        select: Name of the score that chooses, or of its set, or ``mean``; any other is refused.
        similarity: What the saved model's vectors are compared by.

    Attributes:
        of_round, of_run: The best of the round that is trained, and of those that are over.
        start: The scores before the first step.
    """

    def __init__(
        self, dev: Sequence[DevSet], select: str | None, similarity: str = "cosine"
    ) -> None:
        self.similarity = similarity
        self.dev = by_name(dev)
        self.names = [f"{name}.{dev_set.choices[0]}" for name, dev_set in self.dev.items()]
        self.select = choosing_score(self.dev, select)
        self.of_round, self.of_run, self.start = Best(), Best(), Best()

    def score(
        self,
        encode: Callable[..., Tensor],
        step: int,
        round_number: int,
        metrics: Mapping[str, Metric],
    ) -> tuple[dict[str, float], bool]:
        """Return the dev scores that the model defines, and whether it is the round's best.

        Those of step 0 are what training starts from: they choose nothing.
        """
        scores = self.measure(encode, metrics)
        best = Best(self.value(scores), step, round_number, scores)
        better = step > 0 and self.of_round.is_improved_by(best.score)
        if not step:
            self.start = best
        elif better:
            self.of_round = best
        else:
            self.of_round.evals_since_best += 1
        return scores, better

    def measure(
        self, encode: Callable[..., Tensor], metrics: Mapping[str, Metric]
    ) -> dict[str, float]:
        """Return the dev scores that the model defines.

        The first process scores, the others encode their share of the texts and hear of the scores.
        """

        def measured(encode: Callable[..., Tensor]) -> dict[str, float]:
            scores: dict[str, float] = {}
            for name, dev_set in self.dev.items():
                values = dev_set.measure(_DevEncoder(encode, self.similarity), metrics)
                scores |= {f"{name}.{k}": float(v) for k, v in values.items() if isfinite(v)}
            return scores

        return run_on_rank_zero(measured, encode)

    def answers(self, encode: Callable[..., Tensor]) -> dict[str, list[Any]]:
        """Return the answers of the dev sets that judge the model, by name."""

        def answered(encode: Callable[..., Tensor]) -> dict[str, list[Any]]:
            encoder = _DevEncoder(encode, self.similarity)
            given = {name: dev_set.answers(encoder) for name, dev_set in self.dev.items()}
            return {name: part.tolist() for name, part in given.items() if part is not None}

        return run_on_rank_zero(answered, encode)

    def end_round(self) -> None:
        """Compare the round's best with that of the run."""
        if self.of_run.is_improved_by(self.of_round.score):
            self.of_run = self.of_round

    def value(self, scores: dict[str, float]) -> float | None:
        """Return the score that chooses, None where the model defines none."""
        names = [self.select] if self.select and self.select != MEAN else self.names
        values = [scores[name] for name in names if name in scores]
        return sum(values) / len(values) if len(values) == len(names) else None


class Choice(NamedTuple):
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
    reject: Callable[[str], None],
    encode: Callable[..., Tensor],
    metrics: Mapping[str, Metric],
) -> Choice:
    """Put the weights back that a run keeps, of which the dev sets scored some.

    Where the start counts, averages of it with the best weights are scored too. The dev sets
    then judge by what chose nothing, and unless one finds the run better the start is kept: what
    chooses may stand at its ceiling. Sets that cannot tell leave the choice to the scores of
    others, where there are some.

    ``read`` returns the weights of a score, ``restore`` puts weights into the model, ``reject``
    saves it with the reason, and ``encode`` encodes by it; the first process has the vectors.
    """
    best, start = scorer.of_run, scorer.start
    kept = read(best)
    restore(kept)
    why = f"step {best.step} by {scorer.select} = {best.score:.2f}"
    if not options.select_start or start.score is None:
        return Choice(best, why)
    no_better = f"the start, {scorer.select} = {start.score:.2f}"
    chosen = kept
    for share in options.merge:
        mixed = averaged(read(start), chosen, share)
        restore(mixed)
        scores = scorer.measure(encode, metrics)
        value = scorer.value(scores)
        if best.is_improved_by(value):
            best, kept = replace(best, score=value, scores=scores), mixed
            why = f"{share:g} of step {best.step}, {1 - share:g} of the start"
            why += f" by {scorer.select} = {value:.2f}"
    restore(kept)
    end = scorer.answers(encode)
    restore(read(start))
    begin = scorer.answers(encode) if end else {}
    verdicts = [
        scorer.dev[name].verdict(np.array(begin[name]), np.array(end[name])) for name in end
    ]
    known = [verdict.better for verdict in verdicts if verdict.better is not None]
    untold = verdicts and not known and len(verdicts) == len(scorer.dev)
    above = not untold and start.is_improved_by(best.score)
    said = tuple(verdict.text for verdict in verdicts)
    if len(scorer.names) > 1:
        said += tuple(
            f"{name}: {start.scores[name]:.2f} at the start, {best.scores[name]:.2f} now"
            for name in scorer.names
            if name in start.scores and name in best.scores
        )
    if not (any(known) if known else above):
        if not verdicts:
            return Choice(start, no_better, (f"no better: no step scores above {no_better}",))
        restore(kept)
        reject(f"rejected: {why}")
        restore(read(start))
        return Choice(start, no_better, (*said, f"kept {no_better}"))
    restore(kept)
    return Choice(best, why, said)
