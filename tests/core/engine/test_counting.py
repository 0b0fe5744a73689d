"""What is counted of negatives, and which are the anchor's sentence, against slow loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_testkit.batches import make_batch

from cse_core.data import Corpus
from cse_core.engine.counting import counts
from cse_core.engine.negatives import of_loss
from cse_core.options import LossOptions
from cse_core.tokenization.training_rows import TrainingRows
from cse_core.types import Batch, Negatives

TEXTS = ["a b", "c", "a b", "A  b", "d", "e"]
STORED = [0, 2, 3, -1, 4, 1]
"""Corpus rows of what the store ``queue`` holds; -1 is a random key."""
AGES = [1, 1, 2, 3, 2, 4]


def batch() -> Batch:
    """Six sentences with a view of hard negatives and a queue of positives."""
    made = make_batch(sentences=6, views={"positive": "positive", "negative": "negative"})
    stored = Negatives.of(
        torch.randn(6, 8, dtype=torch.float64), 6, name="queue",
        row=torch.tensor(STORED), age=torch.tensor(AGES),
    )  # fmt: skip
    rows = TrainingRows(Corpus.from_columns({"text": TEXTS}), 8)
    return replace(made, stored={"queue": stored}, corpus=rows.keys)


def once_more(anchor: int, source: str, row: int) -> bool:
    """Return whether a negative is the anchor's sentence again, not its own row in the batch."""
    if row < 0 or source == "negative" or (source == "in-batch" and row == anchor):
        return False
    return TEXTS[row] == TEXTS[anchor]


def places() -> list[tuple[str, int, int]]:
    """Return source, corpus row and age of each negative."""
    rows = [("in-batch", row, 0) for row in range(6)] + [("negative", row, 0) for row in range(6)]
    return rows + [("queue", row, age) for row, age in zip(STORED, AGES, strict=True)]


@pytest.mark.parametrize("how", ["keep", "mask"])
def test_counts_and_masks_are_those_of_a_slow_loop(how: Any) -> None:
    options, given = LossOptions(same_text=how), batch()
    found = of_loss(given, options, ("queue",))
    numbers = counts(given, found, options, ("queue",))
    seen = {"in-batch": 0, "negative": 0, "queue": 0}
    ages, masked, kept = 0, 0, 0
    for anchor in range(6):
        for place, (source, row, age) in enumerate(places()):
            own = source == "in-batch" and row == anchor
            again = once_more(anchor, source, row)
            is_masked = own or (again and how == "mask")
            assert bool(found.mask[anchor, place]) == is_masked, (anchor, source, row)
            seen[source] += not is_masked
            ages += age * (source == "queue" and not is_masked)
            masked += again and is_masked
            kept += again and not is_masked
    assert float(numbers["negatives"]) == pytest.approx(sum(seen.values()) / 6)
    for source, count in seen.items():
        assert float(numbers[f"negatives.{source}"]) == pytest.approx(count / 6)
    assert float(numbers["negatives.queue.age"]) == pytest.approx(ages / seen["queue"])
    assert (float(numbers["same_text.masked"]), float(numbers["same_text.seen"])) == (masked, kept)
    assert masked + kept > 0 and (kept == 0) == (how == "mask")
    assert {name for name in numbers if name.endswith("age")} == {"negatives.queue.age"}


def test_weight_zero_is_counted_and_a_block_that_nobody_sees_has_age_zero() -> None:
    given, options = batch(), LossOptions()
    found = of_loss(given, options, ("queue",))
    weights = found.log_weights.clone()
    weights[:, 12:] = -torch.inf
    numbers = counts(given, replace(found, log_weights=weights), options, ("queue",))
    assert numbers["negatives.weight_zero"] == numbers["negatives.queue"] > 0
    blocks = sum(float(numbers[f"negatives.{n}"]) for n in ("in-batch", "negative", "queue"))
    assert float(numbers["negatives"]) == pytest.approx(blocks)
    mask = found.mask.clone()
    mask[:, 12:] = True
    numbers = counts(given, replace(found, mask=mask), options, ("queue",))
    assert float(numbers["negatives.queue"]) == float(numbers["negatives.queue.age"]) == 0
