"""The cosine of graded pairs by their gold score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cse_study.measures.item_files import Cosines
from cse_study.measures.pair_scores import grouped
from cse_study.pages.charts import density_picture, scatter_picture
from cse_study.pages.drawing import Picture

GROUPS = 5
"""Groups of gold scores, where nothing else is said."""


def by_set(found: Iterable[tuple[str, Cosines]]) -> dict[str, Cosines]:
    """Return gold scores and cosines by set and label, given those of each label by set."""
    held = list(found)
    names = dict.fromkeys(name for _, cosines in held for name in cosines)
    return {
        name: {label: cosines[name] for label, cosines in held if name in cosines} for name in names
    }


def gold_scatters(sets: Mapping[str, Cosines], title: str = "", caption: str = "") -> list[Picture]:
    """Draw pairs by gold score and cosine, a picture for each set."""
    found = [
        scatter_picture(
            title or f"Cosine by gold score: {name}",
            {
                label: [(*pair, "") for pair in zip(golds.tolist(), cosines.tolist(), strict=True)]
                for label, (golds, cosines) in each.items()
            },
            "gold score", "cosine", caption,
        )
        for name, each in sets.items()
    ]  # fmt: skip
    return [picture for picture in found if picture is not None]


def gold_densities(
    sets: Mapping[str, Cosines], count: int = GROUPS, title: str = "", caption: str = ""
) -> list[Picture]:
    """Draw the density of cosines in groups of gold scores, a picture for each set."""
    found = [
        density_picture(
            title or f"Cosines in groups of gold scores: {name}",
            {
                label: {
                    f"gold {low:.3g} to {high:.3g}": held.tolist()
                    for (low, high), held in grouped(golds, cosines, count).values()
                }
                for label, (golds, cosines) in each.items()
            },
            "cosine", caption,
        )
        for name, each in sets.items()
    ]  # fmt: skip
    return [picture for picture in found if picture is not None]
