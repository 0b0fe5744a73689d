"""Dev scores during training: what is scored, which score chooses, what is best so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from cse_core.data import Corpus
from cse_core.errors import CseError
from cse_core.evaluation.dev import PairDevSet
from cse_core.evaluation.pairs import NoPairs, pairs_from_rows, read_pairs
from cse_core.evaluation.suites import DevSet
from cse_core.evaluation.vectors import EncodedTexts
from cse_core.parts import Metric
from cse_core.recipes.settings import TrainOptions
from cse_core.registry.registry import Registry
from cse_core.runtime import distributed
from cse_core.runtime.loading import load_factory

MEAN = "mean"
DEV = "dev"
"""What a suite provides whose files may be dev sets, in the list of known parts."""


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
        dev: The sets to score; of equal names the second becomes ``name-2``.
        select: Name of the score that chooses, or of its set, or ``mean``.

    Raises:
        CseError: If ``select`` is no score of these sets.
    """

    def __init__(self, dev: Sequence[DevSet], select: str | None) -> None:
        self.dev: dict[str, DevSet] = {}
        for dev_set in dev:
            name, number = dev_set.name, 1
            while name in self.dev:
                number += 1
                name = f"{dev_set.name}-{number}"
            self.dev[name] = dev_set
        self.names = [f"{name}.{dev_set.choices[0]}" for name, dev_set in self.dev.items()]
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
            for name, dev_set in self.dev.items():
                pairs = dev_set.pairs if isinstance(dev_set, PairDevSet) else None
                texts = pairs.texts if pairs else ()
                known = EncodedTexts(lambda texts: encode(texts).numpy(), texts)
                found.update({f"{name}.{k}": value for k, value in dev_set.score(known).items()})
                for metric_name, metric in metrics.items() if pairs else ():
                    numbers = metric.compute(known, pairs)
                    found.update({f"{name}.{metric_name}.{k}": v for k, v in numbers.items()})
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
        choices = [f"{name}.{score}" for name, each in self.dev.items() for score in each.choices]
        usual = dict(zip(self.dev, self.names, strict=True))
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


def dev_sets(options: TrainOptions, corpus: Corpus, registry: Registry) -> list[DevSet]:
    """Return the dev sets that ``train.dev`` names: files or installed data sets.

    ``auto`` takes the pairs of an installed data set where that is what is trained on.

    Raises:
        CseError: If a name is neither.
    """
    found: list[DevSet] = []
    installed = {dataset.name for dataset in registry.datasets()}
    for wanted in options.dev:
        names = []
        if wanted == "auto":
            names = [file.name for file in corpus.report.files if file.name in installed]
        elif wanted in installed and not Path(wanted).exists():
            names = [wanted]
        elif wanted != "none":
            found.append(_read(wanted, registry))
        for name in names:
            data = load_factory(registry.dataset(name).spec.factory)()
            found.append(PairDevSet.of(pairs_from_rows(f"{name}.dev", data.pairs("dev"))))
    return found


def _read(path: str, registry: Registry) -> DevSet:
    """Read a file as a dev set of the first suite that takes it, else as graded pairs."""
    for suite in registry.suites():
        read = load_factory(suite.spec.factory)().read_dev(path) if suite.spec.dev else None
        if read is not None:
            return cast(DevSet, read)
    try:
        return PairDevSet.of(read_pairs(path))
    except NoPairs as error:
        others = [
            f"be one of suite {name} ({registry.how_to_get(kind, name)})"
            for kind, name, _ in registry.providers_elsewhere(DEV)
        ]
        hint = ", or ".join([error.hint or "", *others])
        raise CseError(error.what, where=error.where, hint=hint) from None
