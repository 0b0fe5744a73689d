"""What is held, step by step, beside a list that one can read."""

from typing import Any

import pytest
import torch

from cse_core.memory import Fifo, Held
from cse_core.parts import Part


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_trace_beside_a_list(newest_first: bool) -> None:
    """Order, rows, ages and size of many steps; what was held before stays; the state too."""
    fifo, draws = Fifo(newest_first=newest_first), torch.Generator().manual_seed(0)
    assert not len(fifo) and fifo.state_dict() == {}
    slow: list[list[Any]] = []
    earlier: list[tuple[Held, list[list[Any]]]] = []
    for step in range(60):
        size, count = 3 if step % 17 == 16 else 20, 1 + step % 5
        new = torch.randn(count, 3, generator=draws, requires_grad=True)
        row = torch.arange(count) + 10 * step
        entering = [[v, r, 1] for v, r in zip(new.tolist(), row.tolist(), strict=True)]
        aged = [[v, r, age + 1] for v, r, age in slow]
        slow = [*entering, *aged][:size] if newest_first else [*aged, *entering][-size:]
        seen = fifo.after(new, row, size) if step % 3 == 0 else None
        held = fifo.push(new, row, size)
        assert seen is None or torch.equal(seen.vectors, held.vectors)
        assert held is fifo.held and len(fifo) == len(held) and not held.vectors.requires_grad
        earlier.append((held, slow))
        if step == 30:
            state = fifo.state_dict()
            fifo = Fifo(newest_first=newest_first)
            fifo.load_state_dict(state)
    for held, wanted in earlier:
        assert held.vectors.tolist() == [vector for vector, _, _ in wanted]
        assert held.row.tolist() == [row for _, row, _ in wanted]
        assert held.age.tolist() == [age for _, _, age in wanted]
    assert held.part(1, 3).row.tolist() == held.row.tolist()[1:3]
    fifo.load_state_dict({})
    assert fifo.held is None


def test_what_is_kept_beside_goes_with_its_rows() -> None:
    for newest_first, slots, teacher in (
        (True, [3, 4, -1], [1.0, 2.0]), (False, [-1, 3, 4], [1.0, 2.0]),
    ):  # fmt: skip
        fifo = Fifo(newest_first=newest_first)
        fifo.push(torch.zeros(2, 3), torch.tensor([7, 8]), 3)
        beside = {"slot": torch.tensor([3, 4]), "teacher": torch.tensor([[1.0], [2.0]])}
        held = fifo.push(torch.ones(2, 3), torch.tensor([9, 5]), 3, beside)
        again = Fifo(newest_first=newest_first)
        again.load_state_dict(fifo.state_dict())
        assert again.held is not None and again.held.beside["slot"].tolist() == slots
        kept = held.negatives(4, name="queue", view="positive")
        assert kept.slot.tolist() == slots and kept.views == {"queue": "positive"}
        side = kept.side["queue", "teacher"].flatten()
        assert side[~side.isnan()].tolist() == teacher and int(side.isnan().sum()) == 1


class Remembers(Part):
    remembers = ("memory", "seen", "centre")

    def __init__(self) -> None:
        self.memory = Fifo()
        self.seen: list[int] = []
        self.centre: torch.Tensor | None = None


def test_a_part_keeps_what_it_remembers() -> None:
    """A memory beside tensors and JSON values; what is None is not written."""
    part, again = Remembers(), Remembers()
    assert part.state_dict() == {"seen": []}
    part.seen = [4, 2]
    part.memory.push(torch.eye(2), torch.tensor([7, 3]), 2)
    state = part.state_dict()
    assert state.keys() == {"vectors", "row", "age", "seen"}
    again.centre = torch.ones(2)
    again.load_state_dict(state)
    assert again.seen == [4, 2] and again.centre is None
    assert again.memory.held is not None and again.memory.held.row.tolist() == [7, 3]
