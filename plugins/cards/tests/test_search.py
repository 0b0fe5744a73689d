"""Exact neighbours in chunks, against loops."""

from __future__ import annotations

import pytest
import torch
from cse_cards.search import nearest, room
from torch import Tensor

from cse_core.functional import unit

CPU = torch.device("cpu")


def vectors(rows: int) -> Tensor:
    draws = torch.Generator().manual_seed(rows)
    return unit(torch.randn(rows, 6, generator=draws))


@pytest.mark.parametrize(("queries", "block"), [(64, 64), (7, 5), (5, 40), (40, 3), (1, 1)])
@pytest.mark.parametrize("count", [1, 4, 39])
def test_neighbours_in_loops(queries: int, block: int, count: int) -> None:
    given = vectors(40)
    done: list[tuple[int, int]] = []
    found = nearest(
        given, count, device=CPU, queries=queries, block=block,
        progress=lambda one, of: done.append((one, of)),
    )  # fmt: skip
    assert found.dtype == torch.int32 and found.shape == (40, count)
    for i in range(40):
        others = [j for j in range(40) if j != i]
        others.sort(key=lambda j: -float(given[i].double() @ given[j].double()))
        assert found[i].tolist() == others[:count]
    assert done[-1] == (40, 40) and len(done) == -(-40 // queries)


def test_vectors_beyond_the_limit_lie_in_a_file() -> None:
    given = vectors(40)
    with room(40, 6, limit=0) as mapped, room(40, 6) as held:
        assert mapped.untyped_storage().filename and not held.untyped_storage().filename
        for each in (mapped, held):
            each.copy_(given)
        assert torch.equal(nearest(mapped, 5, device=CPU), nearest(held, 5, device=CPU))
