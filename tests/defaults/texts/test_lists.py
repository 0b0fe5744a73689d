"""Lists in cells, of texts and of numbers beside them, from every format that holds some."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import cse
from cse_cli.plugins.installed import Installed
from cse_core.texts import DataOptions, NeededColumns
from cse_defaults.texts import Corpus, load_corpus
from cse_defaults.texts.corpus import hold_out
from cse_engine.run.prepare import training_corpus
from tests.fixtures.methods import refusal

ROWS: list[dict[str, Any]] = [
    {"query": "who eats", "answers": ["a man", "a dog", "a cat"], "scores": [0.9, 0.5, -1]},
    {"query": "who sleeps", "answers": [], "scores": []},
    {"query": "who runs", "answers": ["the horse"], "scores": [1e-3]},
    {"query": "", "answers": ["nobody"], "scores": [1]},
]
BOTH = ("answers", "scores")
ALL = NeededColumns(BOTH, ("answers",), {"scores": "float"}, lists={"answers": "all"},
                    beside={"scores": "answers"})  # fmt: skip
DRAW = ALL._replace(lists={"answers": "draw"})
AS_ROWS = ALL._replace(lists={})


def write(folder: Path, rows: list[dict[str, Any]], name: str = "a.jsonl") -> DataOptions:
    path = folder / name
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    return DataOptions(path=(str(path),))


def cells(corpus: Corpus, name: str) -> list[list[str]]:
    texts, offsets = list(corpus.texts_of(name)), corpus.offsets(name)
    assert offsets is not None
    return [texts[start:stop] for start, stop in zip(offsets, offsets[1:], strict=False)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet"])
def test_all_of_a_list_one_or_rows(name: str, tmp_path: Path) -> None:
    options = write(tmp_path, ROWS, name)
    whole = load_corpus(options, needed=ALL)
    assert list(whole.column("text")) == ["who eats", "who sleeps", "who runs"]
    assert cells(whole, "answers") == [row["answers"] for row in ROWS[:3]]
    assert whole.offsets("text") is None
    assert whole.values("scores", "float").tolist() == [0.9, 0.5, -1, 1e-3]
    drawn = load_corpus(options, needed=DRAW)
    assert list(drawn.column("text")) == ["who eats", "who runs"]
    assert drawn.report.messages[-1].endswith("1 row dropped: answers blank")
    unfolded = load_corpus(options, needed=AS_ROWS)
    assert list(unfolded.column("answers")) == ["a man", "a dog", "a cat", "the horse"]
    assert unfolded.values("scores", "float").tolist() == [0.9, 0.5, -1, 1e-3]
    plain = load_corpus(options)
    assert plain.names == ("text",)
    messages = [line for line in plain.report.messages if "holds lists" in line]
    assert messages == [f"{options.path[0]}: column scores is ignored: it holds lists"]
    fingerprints = {c.fingerprint for c in (whole, drawn, unfolded, plain)}
    assert len(fingerprints) == 4
    assert load_corpus(options, needed=ALL).fingerprint == whole.fingerprint


def test_lists_that_are_cut_elsewhere_have_another_fingerprint() -> None:
    one = Corpus.from_columns({"text": ["a", "b"], "other": [["c", "d"], ["e"]]})
    two = Corpus.from_columns({"text": ["a", "b"], "other": [["c"], ["d", "e"]]})
    assert one.fingerprint != two.fingerprint


def test_what_lists_may_hold(tmp_path: Path) -> None:
    """Blank texts go with their numbers, and single texts are lists of one."""
    rows: list[dict[str, Any]] = [
        {"text": "a", "answers": ["b", "", None, " c "], "scores": [1, 2, 3, 4]},
        {"text": "d", "answers": "e", "scores": 5},
        {"text": "f", "answers": None, "scores": None},
        {"text": "g", "answers": [{"title": "T", "text": "h"}], "scores": [6]},
    ]
    found = load_corpus(write(tmp_path, rows), needed=ALL)
    assert cells(found, "answers") == [["b", "c"], ["e"], [], ["T\nh"]]
    assert found.values("scores", "float").tolist() == [1, 4, 5, 6]
    other = write(tmp_path, [{"text": "i", "answers": "j", "scores": 7}], "b.jsonl")
    options = DataOptions(
        path=(str(tmp_path / "a.jsonl"), *other.path), prompts=("q: ", ""), weights=(1, 2)
    )
    found = load_corpus(options, needed=ALL)
    assert cells(found, "answers") == [
        ["q: b", "q: c"], ["q: e"], [], ["q: T\nh"], ["j"], ["j"]
    ]  # fmt: skip
    assert list(found.column("text"))[-3:] == ["q: g", "i", "i"]
    assert found.values("scores", "float").tolist() == [1, 4, 5, 6, 7, 7]


def test_held_out_rows_take_their_lists(tmp_path: Path) -> None:
    rows = [{"text": f"t{n}", "answers": [f"a{n}"] * (n % 3), "scores": [n] * (n % 3)}
            for n in range(20)]  # fmt: skip
    found = load_corpus(write(tmp_path, rows), needed=ALL)
    trained = hold_out(found, 4)
    assert trained.held_out is not None and len(trained) == 16
    for corpus in (trained, trained.held_out):
        for text, answers in zip(corpus.column("text"), cells(corpus, "answers"), strict=True):
            assert answers == [f"a{text[1:]}"] * (int(text[1:]) % 3)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "too few": ({"scores": [1]},
                "row 2: column scores has 1 numbers for 2 texts in column answers"),
    "too many": ({"scores": [1, 2, 3]}, "row 2: column scores has 3 numbers for 2 texts"),
    "none": ({"scores": None}, "row 2: column scores has 0 numbers for 2 texts"),
    "one missing": ({"scores": [1, None]},
                    "row 2: column scores must hold finite numbers (got '')"),
    "no number": ({"scores": [1, "x"]}, "row 2: column scores must hold finite numbers (got 'x')"),
    "not finite": ({"scores": [1, float("nan")]}, "row 2: column scores must hold finite numbers"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_lists_are_one_line_with_their_row(case: str, tmp_path: Path) -> None:
    changed, says = WRONG[case]
    rows = [{"text": "a", "answers": ["b"], "scores": [1]},
            {"text": "c", "answers": ["d", "e"], "scores": [1, 2]} | changed]  # fmt: skip
    options = write(tmp_path, rows)
    assert f"a.jsonl, {says}" in refusal(load_corpus, options, needed=ALL)
    if case != "one missing":  # a row without a number is dropped
        assert f"a.jsonl, {says}" in refusal(load_corpus, options, needed=AS_ROWS)


def test_a_list_that_is_too_long(tmp_path: Path) -> None:
    options = write(tmp_path, [{"text": "a", "answers": ["b"] * n} for n in (1, 257)])
    needed = ALL._replace(required=("answers",), types={}, beside={})
    assert f"{options.path[0]}, row 2: a list of 257 texts in column answers, of at most 256" in (
        refusal(load_corpus, options, needed=needed)
    )


def test_numbers_beside_nothing(tmp_path: Path) -> None:
    """A vector in a row is not a list of scores, and a part that reads one number says so."""
    rows: list[dict[str, Any]] = [{"text": "a", "vector": [0.5] * 257, "few": [1, 2]}] * 2
    for name in ("a.jsonl", "a.parquet"):
        options = write(tmp_path, rows, name)
        found = load_corpus(options)
        assert found.names == ("text",)
        said = "\n".join(found.report.messages)
        assert "column vector is ignored: it holds lists of more than 256 numbers" in said
        assert "column few is ignored: it holds lists" in said
        needed = NeededColumns(("few",), (), {"few": "float"})
        assert "takes a number of each row" in refusal(load_corpus, options, needed=needed)


def test_a_column_of_lists_of_any_name_in_a_plan(tmp_path: Path) -> None:
    """The form of MS MARCO with scores of a cross-encoder."""
    options = write(tmp_path, ROWS[:3] * 3)
    given: dict[str, Any] = {
        "views.positive.column": "answers", "views.positive.lists": "all", "train.batch_size": 2,
        "loss.kl.candidates": "list", "loss.kl.scores": ["scores"],
    }  # fmt: skip
    plan = cse.plan(data=options.path[0], dev="none", loss="kl", options=given)
    (view,) = (view for view in plan.composition.views if view.name == "positive")
    assert (view.column, view.lists) == ("answers", "all")
    corpus = training_corpus(plan.composition, Installed().registry, Installed().read)
    assert len(corpus) == 9 and not any("holds lists" in line for line in plan.warnings)
    assert corpus.offsets("answers") is not None
    assert "holds lists" in refusal(corpus.column, "answers")
    said = cse.plan(data=options.path[0], dev="none").warnings
    assert any("--set views.positive.column=answers" in line for line in said)
