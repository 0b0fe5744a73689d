"""Settings of a recipe for encoders that are not there, and cosines by gold score."""

from __future__ import annotations

from pathlib import Path

import pytest
from cse_study.measures.pair_scores import by_gold
from cse_study.measures.settings import settings

from cse_core.errors import CseError

POINT = {"recipe": "is-cse", "options": ["train.batch_size", "train.lr", "loss.smoothed.weight"]}


@pytest.mark.parametrize(
    ("family", "hidden", "values"),
    [
        ("bert", 768, [64, 3e-5, 0.1]),
        ("bert", 1024, [64, 1e-5, "quarter-cosine(0.005,0.05)"]),
        ("roberta", 768, [512, 1e-5, 0.1]),
    ],
)
def test_settings_are_those_of_the_encoder(family: str, hidden: int, values: list[object]) -> None:
    found = settings({**POINT, "family": family, "hidden": hidden})
    assert list(found.values()) == values


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(CseError, match="no such setting.*train.batchsize.*did you mean"):
        settings({**POINT, "family": "bert", "hidden": 768, "options": ["train.batchsize"]})


def test_cosines_in_groups_of_the_gold_score(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    rows = [("a", 0, 0.1), ("a", 0.9, 0.3), ("a", 2.5, 0.5), ("a", 4.1, 0.8), ("a", 5, 1.0)]
    lines = [f'{name}\t{gold}\t{cosine}\t"' for name, gold, cosine in rows]
    file.write_text("\n".join(["set\tgold\tcosine\tsentence1", *lines]) + "\n", encoding="utf-8")
    found = by_gold({"pairs": str(file), "groups": 5})
    assert found["range of cosines"] == pytest.approx(0.9)
    assert found["group 1: mean"] == pytest.approx(0.2)
    assert found["group 1: variance"] == pytest.approx(0.01)
    assert found["group 5: variance"] == pytest.approx(0.01)
    assert found["group 3: variance"] == 0
    assert "group 2: mean" not in found
    assert by_gold({"pairs": str(tmp_path / "none.tsv"), "groups": 5}) == {}
