"""``cse search`` among the texts of a file, and the same from Python."""

import json
from pathlib import Path

import pytest
from cse_testkit import shared_encoder

import cse as api
from cse_cli.api import Installed
from tests.fixtures.command_line import Cse


def test_search_finds_the_sentence_itself_first(cse: Cse, sentences: Path) -> None:
    words = ("search", "starter", "the boat is green", "--data", str(sentences), "--top", "3")
    said = cse(*words, "--json")
    answer = json.loads(said.out)
    hits = answer["queries"][0]["results"]
    assert [hit["rank"] for hit in hits] == [1, 2, 3]
    assert hits[0]["text"] == "the boat is green"
    assert hits[0]["row"] == 7, "blank lines count"
    assert hits[0]["score"] == pytest.approx(1, abs=1e-5)
    assert hits[0]["score"] >= hits[1]["score"] >= hits[2]["score"]
    assert "the boat is green" in cse(*words).out
    table = sentences.with_name("table.jsonl")
    rows = {"text": "it is green", "title": "The boat"}, {"text": "电机 泵 漏 so", "title": None}
    table.write_text("\n".join(map(json.dumps, rows)))
    said = cse("search", "starter", "the boat", "--data", str(table), "--json")
    assert "33 % of the tokens are unknown to starter: choose a model" in said.err
    hits = json.loads(said.out)["queries"][0]["results"]
    assert [hit["text"] for hit in hits] == ["The boat it is green", rows[1]["text"]]
    column = ("--set", "data.columns.text=title")
    assert "The boat" in cse("search", "starter", "boat", "--data", str(table), *column).out


def test_texts_that_are_cut_are_counted(cse: Cse, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text(f"{'the ' * 40}\nshort\n", encoding="utf-8")
    said = cse("search", str(shared_encoder()), "short", "--data", str(texts), "--max-length", "16")
    assert "1 of 3 texts were cut at 16 tokens" in said.err


def test_python_says_where_search_is_missing() -> None:
    model = api.load("starter", plugins=Installed(["cse-search"]))
    with pytest.raises(api.CseError, match="no such command 'search'.*left out by --no-plugin"):
        model.search("a boat", ["a lamp"])
