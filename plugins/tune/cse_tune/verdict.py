"""What is said of the winner: by titles that chose nothing, beside the start and two recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cse import LEVEL, Difference, TextEncoder, corrected, load, questions
from cse_cli.api import Installed
from cse_tune.race import Gains, difference_of

START, SIMCSE, ADAPT = "start", "SimCSE", "adapt"
LEAST_AGREEMENT = -5.0
"""How far agreement with BM25 may fall, in points, for a model to be called better."""
ASKED = 200
"""Titles whose agreement with BM25 is measured, at most."""
_SPREAD = 20.0
"""Standard deviation of the change of nDCG@10 of a title, about, in points."""


@dataclass(frozen=True)
class Judged:
    """What titles say at the end.

    Attributes:
        means: Mean nDCG@10 x100 of the winner and of what it is judged beside, by name.
        differences: Of the winner from each, corrected for all three.
        agreement: Share x100 of BM25's first 10 texts among the first 10, of start and winner.
        text: One sentence.
        better: Whether the winner is better than the start beyond chance.
    """

    means: Mapping[str, float]
    differences: Mapping[str, Difference]
    agreement: tuple[float, float]
    text: str
    better: bool


def least_gain(count: int) -> float:
    """Return the smallest gain that so many titles are likely to show, in points."""
    return float(2.8 * _SPREAD / count**0.5)  # of a two-sided test at 5 %, in four of five races


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
    winner: Sequence[Gains],
    others: Mapping[str, Sequence[Gains]],
    agreements: tuple[float, float],
    *,
    ordered: bool,
    texts: int,
) -> Judged:
    """Compare the winner with the start and other recipes, trained with the same seeds.

    Args:
        name: The winner.
        winner: nDCG@10 of each title with each seed.
        others: The same of others; of the start once.
        agreements: With BM25, of the start and of the winner.
        ordered: Whether the words of the texts are in an order that recurs.
        texts: Texts among which titles look for their documents.
    """
    every = {other: [*gains] * (len(winner) if len(gains) == 1 else 1)
             for other, gains in others.items()}  # fmt: skip
    found = [difference_of(winner, gains) for gains in every.values()]
    differences = dict(zip(every, corrected(found, len(found)), strict=True))
    means = {n: float(100 * np.mean(gains)) for n, gains in {name: winner, **every}.items()}
    start = differences[START]
    before, now = agreements
    agrees = now - before >= LEAST_AGREEMENT
    shown = start.p < LEVEL
    better = shown and start.value > 0 and ordered and agrees
    word = "better" if better else "worse" if shown and start.value < 0 else "no better"
    if not ordered:
        word += " (words in random order: finding them says nothing about real queries)"
    elif not agrees:
        word += f" (agreement with BM25 fell from {before:.0f} % to {now:.0f} %)"
    beside = [f"{differences[other].value:+.2f} {_interval(differences[other])} from {other}"
              for other in (SIMCSE, ADAPT) if other in differences]  # fmt: skip
    text = (
        f"{word} than the start: nDCG@10 of {len(winner[0]):,} titles of documents that chose "
        f"nothing, among {texts:,} texts, mean of {len(winner)} seeds: {means[START]:.2f} at the "
        f"start, {means[name]:.2f} with {name} ({start.value:+.2f}, 95 % interval "
        f"{_interval(start)}); {', '.join(beside)}"
    )
    return Judged(means, differences, agreements, text, better)


def _interval(difference: Difference) -> str:
    return f"[{difference.low:+.2f}, {difference.high:+.2f}]"
