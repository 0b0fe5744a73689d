"""Dev scores during training: what is scored, which score chooses, what is best so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeInt
from torch import Tensor

from cse_core.parts import Metric
from cse_core.suites import DevSet, Encode, Role
from cse_engine.run.dev_sets import MEAN, by_name, choosing_score, usual_scores
from cse_engine.runtime.sharing import run_on_rank_zero


@dataclass
class Best:
    """A best score, where it was reached, how many evaluations ago, and what dev sets judge by."""

    score: float | None = None
    step: NonNegativeInt = 0
    round: NonNegativeInt = 0
    scores: dict[str, float] = field(default_factory=dict)
    evals_since_best: NonNegativeInt = 0
    answers: dict[str, list[float]] = field(default_factory=dict)

    def is_improved_by(self, score: float) -> bool:
        """Check whether a score is strictly better."""
        return self.score is None or score > self.score

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
    known: dict[tuple[object, ...], NDArray[np.float32]] = field(default_factory=dict)

    def with_role(self, role: Role) -> Encode:
        return replace(self, role=(role,))

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        key = self.role, tuple(texts)
        if key not in self.known:  # a set that judges asks for the same texts again
            self.known[key] = self.encode(texts, *self.role).numpy()
        return self.known[key]


class Scorer:
    """Scores the model in training and keeps what is best, in the round and in the run.

    Args:
        dev: The sets to score; of equal names the second becomes ``name-2``.
        select: Name of the score that chooses, or of its set, or ``mean``; any other is refused.
        similarity: What the saved model's vectors are compared by.

    Attributes:
        start: The scores before the first step.
    """

    def __init__(
        self, dev: Sequence[DevSet], select: str | None, similarity: str = "cosine"
    ) -> None:
        self.similarity = similarity
        self.dev = by_name(dev)
        self.names = list(usual_scores(self.dev).values())
        self.select = choosing_score(self.dev, select)
        self.of_round = Best()
        self.of_run = Best()
        self.start = Best()

    @property
    def bests(self) -> dict[str, Best]:
        """The best of the ``round`` and of the ``run``, and the ``start``."""
        return {"round": self.of_round, "run": self.of_run, "start": self.start}

    @bests.setter
    def bests(self, bests: Mapping[str, Best]) -> None:
        self.of_round, self.of_run = bests["round"], bests["run"]
        self.start = bests["start"]

    def score(
        self,
        encode: Callable[..., Tensor],
        step: int,
        round_number: int,
        by: str | None,
        metrics: Mapping[str, Metric],
    ) -> tuple[dict[str, float], bool]:
        """Return the dev scores that the model defines, and whether it is the round's best.

        Those of step 0 are what training starts from: they choose nothing.
        """
        scores, answers = self.measure(encode, metrics)
        if not step:
            start = self.value(scores, self.select)
            self.start = Best(start, 0, round_number, scores, answers=answers)
            return scores, False
        where = f"score of round {round_number}"
        select = choosing_score(self.dev, by, where) if by else self.select
        chosen = self.value(scores, select)
        if chosen is None or not self.of_round.is_improved_by(chosen):
            self.of_round.evals_since_best += 1
            return scores, False
        self.of_round = Best(chosen, step, round_number, scores, answers=answers)
        return scores, True

    def measure(
        self, encode: Callable[..., Tensor], metrics: Mapping[str, Metric]
    ) -> tuple[dict[str, float], dict[str, list[float]]]:
        """Return the dev scores that the model defines, and the answers of sets that judge it.

        The first process scores, the others encode their share of the texts and hear of the scores.
        """

        def measured(
            encode: Callable[..., Tensor],
        ) -> tuple[dict[str, float], dict[str, list[float]]]:
            scores: dict[str, float] = {}
            answers: dict[str, list[float]] = {}
            for name, dev_set in self.dev.items():
                encoder = _DevEncoder(encode, self.similarity)
                values = dev_set.measure(encoder, metrics)
                scores |= {f"{name}.{k}": float(v) for k, v in values.items() if isfinite(v)}
                if (said := dev_set.answers(encoder)) is not None:
                    answers[name] = said.tolist()
            return scores, answers

        return run_on_rank_zero(measured, encode)

    def end_round(self) -> None:
        """Compare the round's best with that of the run, by the score that chooses in the run.

        A round may choose its checkpoint by another score; rounds are compared by one.
        """
        if self.of_round.score is None:
            return
        value = self.value(self.of_round.scores, self.select)
        if value is not None and self.of_run.is_improved_by(value):
            self.of_run = replace(self.of_round, score=value)

    def value(self, scores: dict[str, float], name: str | None) -> float | None:
        """Return the score that chooses, None where the model defines none."""
        names = [name] if name is not None and name != MEAN else self.names
        values = [scores[key] for key in names if key in scores]
        return sum(values) / len(values) if len(values) == len(names) else None
