"""The function of ``cse study`` for Python."""

import json
from pathlib import Path

import pytest
from cse_study.calling import study
from cse_study.definition.schema import Scores
from cse_study.planning.composing import Inputs, Wish
from cse_study.planning.scoring import plan_scoring

from cse_cli.api import Installed
from cse_core.errors import CseError
from tests.fixtures.tiny import make_encoder

STUDY = """
summary = "two points"
[settings]
model = "@model"
data = "@texts"
dev = "none"
[[axes]]
values = { recipe = ["simcse", "cosent"] }
[scores]
shown = ["@questions"]
[scores.options]
collections = "@questions"
"""


def test_points_that_cannot_be_composed_are_left_out_or_all_are_refused(tmp_path: Path) -> None:
    file, texts = tmp_path / "two.toml", tmp_path / "texts.txt"
    file.write_text(STUDY)
    texts.write_text("".join(f"ba be bi {n}\n" for n in range(20)))
    model, plugins = make_encoder(tmp_path / "tiny"), Installed()
    given = {"model": model, "data": {"texts": str(texts)}, "out": tmp_path / "s", "run": False}
    made = study(plugins, str(file), leave_out=True, **given)  # type: ignore[arg-type]
    assert [point["label"] for point in made["points"]] == ["simcse", "cosent"]
    assert [*made["left_out"]] == [2] and "score" in made["left_out"][2][0]
    (row,) = made["rows"]
    assert (row["number"], row["status"], row["items"]) == (1, "missing", {})
    for options in ({}, {"points": [2], "leave_out": True}):
        with pytest.raises(CseError, match="score"):
            study(plugins, str(file), **given, **options)  # type: ignore[arg-type]
    file.write_text('summary = "s"\nkind = "command"\ncommand = ["list-plugins", "--json"]\n')
    with pytest.raises(CseError, match="does not train"):
        study(plugins, str(file), **given)  # type: ignore[arg-type]


def test_scores_of_a_folder_belong_to_its_contents(tmp_path: Path) -> None:
    folder = tmp_path / "asked"
    (folder / "qrels").mkdir(parents=True)
    row = json.dumps({"_id": "1", "text": "one"})
    for name in ("corpus.jsonl", "queries.jsonl"):
        (folder / name).write_text(f"{row}\n")
    file = folder / "qrels" / "test.tsv"
    scores = Scores(options={"collections": "@questions"})
    wish = Wish(inputs=Inputs(data={"questions": [str(folder)]}))
    keys = []
    for text in ("1\t1\t1\n", "1\t1\t2\n", "1\t1\t1\n"):
        file.write_text(text)
        keys.append(plan_scoring(scores, wish, Installed()).key)
    assert keys[0] == keys[2] != keys[1]
