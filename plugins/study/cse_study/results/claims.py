"""Claims of a study: those that its runs show, those that they contradict, and the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cse_study.definition.points import Point
from cse_study.definition.reading import Definition
from cse_study.definition.schema import Claim
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Scoring
from cse_study.results.bootstrap import LEVEL, Difference, holm
from cse_study.results.draws import Draws
from cse_study.results.rows import Row
from cse_study.results.scores import columns_of
from cse_study.results.table import difference_of, scored_points

HOLDS, CONTRADICTED, OPEN = "holds", "does not hold", "cannot be decided"


@dataclass(frozen=True)
class Verdict:
    """What the runs say of a claim.

    Attributes:
        score: The full name of what decides; empty without runs.
        difference: Of the point that should be better to the other one; None without runs.
        p: Corrected for the number of claims.
        words: ``holds``, ``does not hold`` or ``cannot be decided``.
    """

    claim: Claim
    score: str
    difference: Difference | None
    p: float | None
    words: str

    @property
    def said(self) -> str:
        """Return the claim with its source."""
        source = f" ({self.claim.source})" if self.claim.source else ""
        return f"{self.claim.says}{source}"

    def to_json(self) -> dict[str, Any]:
        """Return it as data that JSON can hold."""
        found = self.difference
        return {
            "says": self.claim.says,
            "source": self.claim.source,
            "score": self.score,
            "difference": found and found.value,
            "interval": found and [found.low, found.high],
            "seeds": found and found.seeds,
            "p_corrected": self.p,
            "words": self.words,
        }


def verdicts_of(
    definition: Definition,
    points: Sequence[Point],
    rows: Sequence[Row],
    folder: StudyFolder,
    scoring: Scoring | None,
) -> list[Verdict]:
    """Return what the runs say of each claim of the study.

    A claim holds, or does not, where its corrected p is below the level of all tables; one seed
    decides nothing, since of other seeds nothing is known. No other score stands in for one that
    was not measured, and claims without runs count in the correction: which of them are decided
    does not depend on what else was run.
    """
    study = definition.study
    draws = Draws(folder, scoring)
    of_label = {point.label_without(study.tuned): point.number for point in points}
    names: list[str] = []
    differences: list[Difference | None] = []
    for claim in study.claims:
        scored = scored_points(claim.score or columns_of(study.scores.columns)[0], rows)
        better, than = (scored.get(of_label.get(x, 0), {}) for x in (claim.better, claim.than))
        names.append(next((shown.name for _, shown in better.values()), ""))
        differences.append(difference_of(better, than, draws) if better and than else None)
    corrected = holm([1.0 if found is None else found.p for found in differences])
    verdicts = []
    for claim, name, found, p in zip(study.claims, names, differences, corrected, strict=True):
        words = OPEN
        if found is not None and found.seeds > 1 and p < LEVEL:
            words = HOLDS if (found.value < 0) == claim.lower else CONTRADICTED
        verdicts.append(Verdict(claim, name, found, None if found is None else p, words))
    return verdicts
