"""Functions behind the paper's studies."""

from __future__ import annotations

import pytest
from cse_ifcl import changed
from cse_ifcl.changed import scores

from tests.fixtures.studies import definition


def test_second_sentences_are_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = list(changed._installed("starter"))
    assert len(rows) == 1200
    monkeypatch.setattr(changed, "_installed", lambda name: rows[:60])
    point = {"model": "starter", "pairs": "starter"}
    plain = scores(point)
    assert plain["pairs"] == 60
    assert scores({**point, "aug": "fusion"}) == plain  # each is its own translation
    found = definition("ifcl/figure-4a").study.axes[0].values["options"][3]
    synonyms = scores({**point, "aug": "synonym", "options": found})
    assert synonyms["spearman"] != plain["spearman"]
