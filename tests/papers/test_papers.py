"""The table of equations: which papers it has, and that it sees a difference."""

import math
from typing import Any

import pytest
import torch

from tests.fixtures.equations import Equation
from tests.papers import __main__ as papers


def made(*pairs: tuple[Any, Any]) -> Equation:
    return Equation("HiCL", "Eq. 1", "a part", 1e-12, lambda: pairs)


def test_the_largest_difference_counts() -> None:
    exact = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert made((exact, [1.0, 2.0]), (3, 3)).difference() == 0
    assert made((exact, exact), (exact, exact + 1e-3)).difference() == pytest.approx(1e-3)
    for nothing in (made(), made(([], [])), made((exact, 1.0)), made((math.nan, 1.0))):
        assert nothing.difference() == math.inf
    with pytest.raises(AssertionError, match="float64"):
        made((exact.float(), exact)).difference()


def test_every_paper_has_its_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """None is computed here: each is a test of its plugin."""
    found = papers.equations()
    assert {each.paper for each in found} == set(papers.PAPERS.values())
    assert len({(each.paper, each.number, each.part) for each in found}) == len(found)
    assert all(each.within <= 1e-9 for each in found)
    for wrong in (0, 1):
        monkeypatch.setattr(papers, "equations", lambda end=wrong: [made((1.0, 1.0 + end))])
        assert papers.main() == wrong
        assert ("DIFFERS" in capsys.readouterr().out) == bool(wrong)
