"""Dev scores during training: what is scored, which score chooses, what is best so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import NonNegativeInt
from torch import Tensor

from cse_core.errors import CseError
from cse_core.evaluation.suites import DevSet, NoDevSet, Suite
from cse_core.parts import Metric
from cse_core.recipes.settings import TrainOptions
from cse_core.registry.registry import Registry
from cse_core.runtime import distributed
from cse_core.runtime.loading import load_factory

MEAN = "mean"
DEV = "dev"
"""What a suite provides whose files may be dev sets, in the list of known parts."""
_UNREAD = "no suite that is installed reads this dev set"


@dataclass
class Best:
    """A best score, where it was reached, and how many evaluations ago."""

    score: float | None = None
    step: NonNegativeInt = 0
    round: NonNegativeInt = 0
    scores: dict[str, float] = field(default_factory=dict)
    waited: NonNegativeInt = 0

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
            return {
                f"{name}.{key}": value
                for name, each in self.dev.items()
                for key, value in each.measure(lambda texts: encode(texts).numpy(), metrics).items()
            }

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
        if wanted in (None, MEAN):
            if not self.names:
                return None
            return self.names[0] if len(self.names) == 1 else MEAN
        choices = [f"{name}.{score}" for name, each in self.dev.items() for score in each.choices]
        usual = dict(zip(self.dev, self.names, strict=True))
        if (found := usual.get(wanted, wanted)) in choices:
            return found
        hint = "one of " + ", ".join([*choices, MEAN])
        raise CseError("is no dev score of this run", where=where, value=wanted, hint=hint)

    def _value(self, scores: dict[str, float], name: str | None) -> float:
        if name is not None and name != MEAN:
            return scores[name]
        return sum(scores[score] for score in self.names) / len(self.names)


def dev_sets(
    options: TrainOptions, data: Sequence[str], registry: Registry, warn: Callable[[str], None]
) -> list[DevSet]:
    """Return the dev sets that ``train.dev`` names: files or installed data sets.

    ``auto`` takes the pairs of the installed data sets among ``data``, what is trained on; without
    a suite that reads pairs it warns and takes none.

    Raises:
        CseError: If a name is neither, or no suite reads it.
    """
    found: list[DevSet] = []
    installed = {dataset.name for dataset in registry.datasets()}
    readers = [suite.spec for suite in registry.suites() if suite.spec.dev]
    readers.sort(key=lambda spec: spec.dev == "pairs")
    suites: list[Suite] = [load_factory(spec.factory)() for spec in readers]
    of_pairs = [suite for suite, spec in zip(suites, readers, strict=True) if spec.dev == "pairs"]
    for wanted in options.dev:
        names = []
        if wanted == "auto":
            names = [name for name in data if name in installed]
        elif wanted in installed and not Path(wanted).exists():
            names = [wanted]
        elif wanted != "none":
            found.append(_read(wanted, suites, registry))
        if names and not of_pairs:
            error = _no_dev_set(registry, NoDevSet(_UNREAD, where=f"{names[0]}.dev"))
            if wanted != "auto":
                raise error
            warn(str(error))
        for name, suite in product(names, of_pairs[:1]):
            source = load_factory(registry.dataset(name).spec.factory)()
            found.append(suite.dev_of_pairs(f"{name}.dev", source.pairs("dev")))
    return found


def _read(path: str, suites: Sequence[Suite], registry: Registry) -> DevSet:
    """Read a file as a dev set of the first suite that takes it."""
    why = NoDevSet(_UNREAD, where=path)
    for suite in suites:
        try:
            if (read := suite.read_dev(path)) is not None:
                return read
        except NoDevSet as error:
            why = error
    raise _no_dev_set(registry, why)


def _no_dev_set(registry: Registry, why: NoDevSet) -> NoDevSet:
    """Return the error with the suites that would read more."""
    others: dict[str, list[str]] = {}
    for kind, name, _ in registry.providers_elsewhere(DEV):
        others.setdefault(registry.how_to_get(kind, name), []).append(name)
    hints = [f"be one of suite {' or '.join(names)} ({how})" for how, names in others.items()]
    start = f"{why.hint}, or " if why.hint else "it may "
    hint = start + ", or ".join(hints) if hints else why.hint
    return NoDevSet(why.what, where=why.where, hint=hint)
