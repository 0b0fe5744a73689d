"""What is said of the winner: by titles that chose nothing, beside the start and two recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cse import LEVEL, Difference, TextEncoder, corrected, load, questions
from cse_cli.api import Installed
from cse_tune.race import Gains, difference_of

WINNER, START, SIMCSE, ADAPT = "winner", "start", "SimCSE", "adapt"
ASKED = 200
"""Titles whose agreement with BM25 is measured, at most."""


@dataclass(frozen=True)
class Judged:
    """What titles say at the end.

    Attributes:
        means: Mean nDCG@10 x100 over seeds, of the ``winner`` and of what it is judged beside; none
            of them chose it.
        differences: Of the model from the start; of the winner from the others, corrected for both.
        agreement: Share x100 of BM25's first 10 texts among the first 10, of start and winner.
        text: One sentence.
        better: Whether the model is better than the start beyond chance.
    """

    means: Mapping[str, float]
    differences: Mapping[str, Difference]
    agreement: tuple[float, float]
    text: str
    better: bool


def agreement(
    model: str, asked: questions.Questions, plugins: Installed, *, max_length: int
) -> float:
    """Return how far the first texts of a model are those of BM25, x100."""
    some = asked._replace(asked=asked.asked[:ASKED])
    loaded = load(model, max_length=max_length, precision="auto", plugins=plugins)
    encode = TextEncoder(loaded.loaded)
    return float(100 * some.agreement(some.scores(encode, some.vectors(encode))).mean())


def judge(
    name: str,
    model: Gains,
    winner: Sequence[Gains],
    others: Mapping[str, Sequence[Gains]],
    agreements: tuple[float, float],
    *,
    ordered: bool,
    texts: int,
) -> Judged:
    """Compare a model with the start, and its composition with other recipes over all seeds.

    The model is the winner with the seed of the race, which is kept if it is better: only titles
    are drawn. Of a composition, which will be trained again, the seeds count too, by Student's t;
    that of the race, by which it won, does not.

    Args:
        name: The winner.
        model: nDCG@10 of each title with the seed of the race.
        winner: The same with each other seed.
        others: The same of others; of the start once.
        agreements: With BM25, of the start and of the model.
        ordered: Whether the words of the texts are in an order that recurs.
        texts: Texts among which titles look for their documents.
    """
    beside = {other: gains for other, gains in others.items() if other != START}
    found = [difference_of(winner, gains) for gains in beside.values()]
    differences = dict(zip(beside, corrected(found, len(found)), strict=True))
    (start,) = corrected([difference_of([model], others[START])], 1)
    means = {n: float(100 * np.mean(gains)) for n, gains in {WINNER: winner, **others}.items()}
    before, now = agreements
    agrees = now - before >= questions.LEAST_AGREEMENT
    shown = start.p < LEVEL
    better = shown and start.value > 0 and ordered and agrees
    word = "better" if better else "worse" if shown and start.value < 0 else "no better"
    word += questions.doubts(ordered=ordered, agrees=agrees, before=before, now=now)
    text = (
        f"{word}: nDCG@10 of {len(model):,} titles of documents that chose nothing, among "
        f"{texts:,} texts: {means[START]:.2f} at the start, {100 * model.mean():.2f} now "
        f"({start.value:+.2f}, 95 % interval {_interval(start)}). {name} with {len(winner)} other "
        f"seeds: {means[WINNER]:.2f}"
    )
    text += "".join(f"; {one.value:+.2f} {_interval(one)} from {other}"
                    for other, one in differences.items())  # fmt: skip
    return Judged(means, {START: start, **differences}, agreements, text, better)


def _interval(difference: Difference) -> str:
    return f"[{difference.low:+.2f}, {difference.high:+.2f}]"
