"""Dev scores during training: what is scored, which score chooses, what is best so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from cse_core.data import Corpus
from cse_core.errors import CseError
from cse_core.evaluation.dev import AnyDevSet, DocumentDevSet, name_dev_sets, read_dev_set
from cse_core.evaluation.documents import DocumentSet
from cse_core.evaluation.pairs import PairSet, pairs_from_rows
from cse_core.evaluation.vectors import Known
from cse_core.parts import Metric
from cse_core.recipes.settings import TrainOptions
from cse_core.registry.registry import Registry
from cse_core.runtime import distributed
from cse_core.runtime.loading import load_factory

MEAN = "mean"


@dataclass
class Best:
    """A best score, where it was reached, and how many evaluations ago."""

    score: float | None = None
    step: int = 0
    round: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    waited: int = 0

    def beaten_by(self, score: float) -> bool:
        """Return whether a score is strictly better."""
        return self.score is None or score > self.score

    def as_saved(self, values: Mapping[str, Any], select: str | None) -> Best:
        """Return what the saved weights reached, of which ``values`` holds the step and all scores.

        A run that was killed may have saved better ones after the checkpoint that it went on from,
        and come no higher the second time.
        """
        if values["step"] == self.step:
            return self
        scores = {name: value for name, value in values.items() if name != "step"}
        score = scores.get(select or "", self.score)
        return replace(self, step=values["step"], scores=scores, score=score)


class Scorer:
    """Scores the model in training and keeps what is best, in the round and in the run.

    Args:
        dev: The sets to score.
        select: Name of the score that chooses, or of its set, or ``mean``.

    Raises:
        CseError: If ``select`` is no score of these sets.
    """

    def __init__(self, dev: Sequence[AnyDevSet], select: str | None) -> None:
        self.dev = list(dev)
        self.names = [f"{dev_set.name}.{dev_set.choices[0]}" for dev_set in self.dev]
        self.select = self._chosen(select)
        self.of_round = Best()
        self.of_run = Best()

    def score(
        self,
        encode: Callable[[Sequence[str]], Tensor],
        step: int,
        round_number: int,
        by: str | None,
        metrics: Mapping[str, Metric],
    ) -> tuple[dict[str, float], bool]:
        """Return all dev scores of the model, and whether it is the round's best.

        The first process scores; the others hear of it.
        """

        def measured() -> dict[str, float]:
            found: dict[str, float] = {}
            for dev_set in self.dev:
                if isinstance(dev_set, DocumentDevSet):
                    found.update(dev_set.score(lambda texts: encode(texts).numpy()))
                    continue
                known = Known(lambda texts: encode(texts).numpy(), dev_set.pairs.texts)
                found.update(dev_set.score(known))
                for name, metric in metrics.items():
                    numbers = metric.compute(known, dev_set.pairs)
                    found.update({f"{dev_set.name}.{name}.{k}": v for k, v in numbers.items()})
            return found

        scores = distributed.from_first(measured)
        select = self._chosen(by, f"score of round {round_number}") if by else self.select
        chosen = self._value(scores, select)
        if not self.of_round.beaten_by(chosen):
            self.of_round.waited += 1
            return scores, False
        self.of_round = Best(chosen, step, round_number, scores)
        return scores, True

    def end_round(self) -> None:
        """Compare the round's best with that of the run, by the score that chooses in the run.

        A round may choose its checkpoint by another score; rounds are compared by one.
        """
        if self.of_round.score is None:
            return
        value = self._value(self.of_round.scores, self.select)
        if self.of_run.beaten_by(value):
            self.of_run = replace(self.of_round, score=value)

    def _chosen(self, wanted: str | None, where: str = "train.select") -> str | None:
        if not self.names:
            return None
        if wanted in (None, MEAN):
            return self.names[0] if len(self.names) == 1 else MEAN
        choices = [f"{dev_set.name}.{score}" for dev_set in self.dev for score in dev_set.choices]
        usual = {dev_set.name: name for dev_set, name in zip(self.dev, self.names, strict=True)}
        if (found := usual.get(wanted, wanted)) in choices:
            return found
        raise CseError(
            "is no dev score of this run",
            where=where,
            value=wanted,
            hint="one of " + ", ".join([*choices, MEAN]),
        )

    def _value(self, scores: dict[str, float], name: str | None) -> float:
        if name is not None and name != MEAN:
            return scores[name]
        return sum(scores[score] for score in self.names) / len(self.names)


def dev_sets(options: TrainOptions, corpus: Corpus, registry: Registry) -> list[AnyDevSet]:
    """Return the dev sets that ``train.dev`` names: files or installed data sets.

    ``auto`` takes the pairs of an installed data set where that is what is trained on.

    Raises:
        CseError: If a name is neither.
    """
    found: list[PairSet | DocumentSet] = []
    installed = {dataset.name for dataset in registry.datasets()}
    for wanted in options.dev:
        names = []
        if wanted == "auto":
            names = [file.name for file in corpus.report.files if file.name in installed]
        elif wanted in installed and not Path(wanted).exists():
            names = [wanted]
        elif wanted != "none":
            found.append(read_dev_set(wanted))
        for name in names:
            data = load_factory(registry.dataset(name).spec.factory)()
            found.append(pairs_from_rows(f"{name}.dev", data.pairs("dev")))
    return name_dev_sets(found)
