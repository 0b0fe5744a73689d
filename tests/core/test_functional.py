"""Unit vectors, draws inside rows, positions in their order, and schedules."""

import math

import pytest
import torch

from cse_core.functional import owner_means, sample_in_rows, unit
from cse_core.schedule import CURVES, Schedule
from cse_core.token_batch import offsets_of, positions_in_order
from cse_core.types import Embeddings
from tests.fixtures.parts import rising

LENGTHS = torch.tensor([3, 0, 1, 6, 4])
ROW = torch.repeat_interleave(torch.arange(5), LENGTHS)


def draws(seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.rand(14, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_unit_vectors_and_positions() -> None:
    vectors = torch.tensor([[3.0, 4.0], [0.0, -0.5], [0.0, 0.0]], dtype=torch.float64)
    wanted = torch.tensor([[0.6, 0.8], [0.0, -1.0], [0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(unit(vectors), wanted)
    offsets = offsets_of(torch.tensor([4, 0, 3]))
    places = torch.tensor([7, 2, 2, 0, 5, 1, 9])
    assert positions_in_order(places, offsets).tolist() == [3, 1, 2, 0, 1, 0, 2]
    assert positions_in_order(places[:0], offsets_of(torch.tensor([0]))).tolist() == []


def test_means_of_owners() -> None:
    """Weighted or not, of owners in any order; weights that are all zero are none."""
    owner, length = torch.tensor([5, 5, 5, 2, 9, 9]), torch.tensor([1, 0, 2, 4, 0, 0])
    slot, vectors = torch.tensor([0, 1, 2, 0, 0, 1]), torch.eye(6)
    rows = Embeddings(vectors, owner, slot, length)
    thirds, halves = [1 / 3, 1 / 3, 1 / 3, 0, 0, 0], [0, 0, 0, 0, 0.5, 0.5]
    weighted = [[1 / 3, 0, 2 / 3, 0, 0, 0], [0, 0, 0, 1.0, 0, 0], halves]
    for weights, wanted in ((None, [thirds, weighted[1], halves]), (length, weighted)):
        found = owner_means(rows, weights)
        torch.testing.assert_close(found.vectors, torch.tensor(wanted))
        assert found.owner.tolist() == [5, 2, 9] and not found.slot.any()
        assert found.length.tolist() == [3, 4, 0]
    assert len(owner_means(rows.take(owner < 0))) == 0
    half = owner_means(Embeddings(vectors.bfloat16(), owner, slot, length))
    assert half.vectors.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_least_draws_of_each_row_are_taken(dtype: torch.dtype) -> None:
    count = torch.tensor([2, 5, 0, 3, 9])
    numbers = draws(dtype=dtype)
    among = torch.arange(14) % 4 != 0
    for allowed in (None, among):
        taken = sample_in_rows(ROW, count, numbers, allowed)
        for row in range(5):
            places = [t for t in range(14) if ROW[t] == row and (allowed is None or allowed[t])]
            wanted = sorted(places, key=lambda t: float(numbers[t]))[: int(count[row])]
            assert {t for t in range(14) if ROW[t] == row and taken[t]} == set(wanted)
    assert len(sample_in_rows(ROW[:0], count[:0], numbers[:0])) == 0


VALUES = {
    "0.3": (0.3, 0.3, 0.3, 0.3, 0.3),
    "linear(0,0.2)": (0.0, 0.05, 0.1, 0.15, 0.2),
    "linear(1,0)": (1.0, 0.75, 0.5, 0.25, 0.0),
    "cosine(0.5,1)": (0.5, 0.5 + 0.25 * (1 - math.sqrt(0.5)), 0.75,
                      0.5 + 0.25 * (1 + math.sqrt(0.5)), 1.0),
    "rising(0,1)": (0.0, 0.5, 1.0, 1.0, 1.0),
}  # fmt: skip


def test_schedules() -> None:
    curves = {**CURVES, "rising": rising}
    for text, wanted in VALUES.items():
        schedule = Schedule.parse(text, curves)
        assert [schedule.at(step, 8) for step in (0, 2, 4, 6, 8)] == pytest.approx(wanted), text
        assert (schedule.at(-1, 8), schedule.at(9, 8)) == pytest.approx((wanted[0], wanted[-1]))
        assert schedule.at(0, 0) == pytest.approx(wanted[-1])
        assert schedule.bounds == pytest.approx((min(wanted), max(wanted)))
        assert str(schedule) == text and Schedule.parse(str(schedule), curves) == schedule
    for value in (True, None, "linear(1)", "cosine(a,b)", "nan", math.inf, "linear(0,inf)", "x",
                  "rising(1,0)", "falling(1,0)"):  # fmt: skip
        with pytest.raises(ValueError, match=r"expects|needs a <= b"):
            Schedule.parse(value, {**CURVES, "rising": rising})
