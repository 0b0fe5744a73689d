"""Functions behind the paper's studies."""

from pathlib import Path

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
    found = definition("ifcl/figure-4a").study.axes[0].values["lexicon"][3]
    synonyms = scores({**point, "aug": "synonym", "lexicon": found})
    assert synonyms["spearman"] != plain["spearman"]
    twin = scores({**point, "dropout": True})
    assert twin["spearman"] != plain["spearman"]
    assert scores({**point, "dropout": True}) == twin


def test_fusion_meets_each_sentences_own_translation(tmp_path: Path) -> None:
    """A sentence that comes twice is changed once, with the translation of the first."""
    rows = ["score\tsentence1\tsentence2\tfraternal"]
    things = ("boat", "lamp", "garden", "old clock", "bell", "train", "red horse", "judge")
    rows += [f"{n}\tthe {a}\tthe {a} in May\tim mai {a}" for n, a in enumerate(things)]
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "\n".join([*rows, "0\tthe dog\tthe lamp in May\tandere"]) + "\n", encoding="utf-8"
    )
    point = {"model": "starter", "pairs": str(path)}
    fused = scores({**point, "aug": "fusion"})
    assert fused["pairs"] == 9 and fused["spearman"] != scores(point)["spearman"]
    path.write_text("\n".join([*rows, "0\tthe dog\tthe lamp in May\tdie"]) + "\n")
    assert scores({**point, "aug": "fusion"}) == fused
