"""``cse search``, and ``cse index``: what is encoded, kept and gone, and what is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from cse_testkit import shared_encoder
from safetensors.numpy import load_file, save_file

import cse as api
from cse_cli.api import Installed
from tests.fixtures.command_line import Cse, refused
from tests.fixtures.documents import folder_of


def test_an_index_is_searched_and_grows(cse: Cse, tmp_path: Path) -> None:
    docs, table, index = folder_of(tmp_path / "docs"), tmp_path / "t.tsv", tmp_path / "index"
    table.write_text("id\ttext\n1\tthe bell rang\n2\tThe judge spoke. Nobody heard.\n3\t\n")

    def made(*words: str) -> dict[str, Any]:
        said = cse("index", "starter", *words, "--out", str(index), "--json")
        assert said.code == 0, said.err
        found: dict[str, Any] = json.loads(said.out)
        return found

    first = made(str(docs), str(table))
    assert first == {"index": str(index), "texts": 4, "encoded": 4, "kept": 0, "gone": 0}
    vectors = np.load(index / "vectors.npy", mmap_mode="r")
    assert vectors.shape == (4, 256) and vectors.dtype == np.float32
    lines = [json.loads(line) for line in (index / "texts.jsonl").read_text().splitlines()]
    assert lines[1] == {
        "text": "The judge spoke. Nobody heard.",
        "places": [[str(docs / "c.txt"), 1], [str(table), 2]],
    }

    words = ("search", "starter", "a garden light", "who rang?", "--top", "2", "--json")
    said = json.loads(cse(*words, "--index", str(index)).out)
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": line["text"]}) + "\n" for line in lines))
    plain = json.loads(cse(*words, "--data", str(texts)).out)
    assert said["texts"] == 4
    found = api.load("starter").search(["a garden light", "who rang?"], index, top=2)
    assert found == said["queries"]
    for ours, other in zip(said["queries"], plain["queries"], strict=True):
        assert [hit["text"] for hit in ours["results"]] == [h["text"] for h in other["results"]]
        scores = [[hit["score"] for hit in each["results"]] for each in (ours, other)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-5)
    hit = said["queries"][0]["results"][0]
    assert (hit["file"], hit["row"]) == (str(docs / "sub" / "b.HTML"), 1)

    before = {line["text"]: row for line, row in zip(lines, vectors, strict=True)}
    (docs / "a.md").unlink()
    (docs / "c.txt").write_text("A new text.\n")
    assert made() == {"index": str(index), "texts": 4, "encoded": 1, "kept": 3, "gone": 1}
    after = np.load(index / "vectors.npy")
    rows = [json.loads(line)["text"] for line in (index / "texts.jsonl").read_text().splitlines()]
    kept = [row for row, text in enumerate(rows) if text in before]
    assert np.array_equal(after[kept], np.stack([before[rows[row]] for row in kept]))

    half = made("--half")
    assert half["encoded"] == 4 and np.load(index / "vectors.npy").dtype == np.float16
    refused(cse("search", "starter", "x", "--index", str(index), "--pooling", "cls"), "--pooling")
    (index / "texts.jsonl").unlink()
    refused(cse("search", "starter", "x", "--index", str(index)), "damaged")


def test_old_vectors_are_mapped_to_a_new_model(cse: Cse, tmp_path: Path) -> None:
    """From the mean of the tokens to the first one: a map is better than nothing, and says so."""
    lines = [f"the {b} {a} and the {c} {a}" for a in "abcdefgh" for b in "xyz" for c in "pqrstuvwz"]
    table, index = tmp_path / "texts.txt", tmp_path / "index"
    table.write_text("\n".join(lines))
    words = ("index", "starter", "--out", str(index), "--json")
    assert cse(*words, str(table)).code == 0
    refused(cse(*words, "--map", "100"), "--map", "whose model has changed")
    table.write_text("\n".join([*lines, "a new text"]))
    said = cse(*words, "--pooling", "cls", "--map", "100")
    assert said.code == 0, said.err
    assert json.loads(said.out)["kept"] == len(lines) and json.loads(said.out)["encoded"] == 1
    assert "up to 116 texts are mapped" in said.err
    about = json.loads((index / "index.json").read_text())
    assert about["mapped"]["encoded"] == 100 and 0.5 < about["mapped"]["recall"] <= 1
    found = np.load(index / "vectors.npy")
    exact = api.load("starter", pooling="cls").encode([*lines, "a new text"], normalize=True)
    near = (found * exact).sum(axis=1)
    assert (near > 1 - 1e-5).sum() >= 101 and near.min() > 0.8
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    again = cse(*words, "--pooling", "cls")
    assert json.loads(again.out)["encoded"] == 0 and "are mapped" in again.err
    few = tmp_path / "few.txt"
    few.write_text("one\ntwo\n")
    words = ("index", "starter", "--out", str(tmp_path / "other"))
    assert cse(*words, str(few)).code == 0
    refused(cse(*words, "--pooling", "cls", "--map", "100"), "--map", "too few")


def test_words_have_their_share_of_the_order(cse: Cse, tmp_path: Path) -> None:
    texts = ["the bell rang", "a lamp", "the lamp of the garden", "judges speak", ""]
    table, index = tmp_path / "texts.txt", tmp_path / "index"
    table.write_text("\n".join(texts))
    encoder = str(shared_encoder())
    assert cse("index", encoder, str(table), "--out", str(index)).code == 0
    words = ("search", encoder, "garden bell lamp", "nothing known", "--top", "9", "--json")
    model = api.load(encoder)

    def order(share: float, *source: str) -> list[list[str]]:
        said = cse(*words, "--bm25", str(share), *source)
        assert said.code == 0, said.err
        return [
            [hit["text"] for hit in each["results"]] for each in json.loads(said.out)["queries"]
        ]

    by_index, by_data = ("--index", str(index)), ("--data", str(table))
    assert order(0, *by_index) == order(0, *by_data) and not (index / "words").exists()
    near = order(0, *by_data)[1]
    for each in (by_data, by_index, by_index):  # the second search of an index reads saved words
        assert order(1, *each) == [
            ["the lamp of the garden", "the bell rang", "a lamp", "judges speak"], texts[:4]
        ]  # fmt: skip
        assert order(0.3, *each)[1] == near
    assert (index / "words" / "vocab.index.json").is_file()
    found = model.search("garden bell lamp", index, top=1, bm25=1)[0]["results"]
    assert found[0]["text"] == "the lamp of the garden" and 0 < found[0]["score"] <= 1
    assert found[0]["bm25"] > 0.5 and "bm25" not in cse(*words[:-1], *by_index).out
    shown = cse(*words[:-1], *by_index, "--bm25", "0.5").out
    assert "bm25" in shown and str(found[0]["bm25"]) in shown
    for name in ("vocab.index.json", "data.csc.index.npy", "units"):
        kept = (index / "words" / name).read_bytes()
        (index / "words" / name).write_bytes(kept[: len(kept) // 2])
        refused(cse(*words, *by_index, "--bm25", "1"), "words", "is damaged")
        (index / "words" / name).write_bytes(kept)
    assert cse("index", encoder, "--out", str(index)).code == 0
    assert not (index / "words").exists()
    refused(cse(*words, *by_data, "--bm25", "1.5"), "--bm25", "from 0 to 1")


def test_a_model_that_changed_is_noticed(cse: Cse, tmp_path: Path) -> None:
    index, texts = tmp_path / "index", tmp_path / "t.txt"
    texts.write_text("a boat\na lamp\n")
    model = shutil.copytree(shared_encoder(), tmp_path / "encoder")
    words = (str(model), str(texts), "--out", str(index))
    assert cse("index", *words).code == 0
    weights = model / "model.safetensors"
    tensors = {name: value * np.float16(0.9) for name, value in load_file(weights).items()}
    save_file(tensors, weights, metadata={"format": "pt"})
    search = ("search", str(model), "x", "--index", str(index))
    refused(cse(*search), "the model has changed since this index was made")
    said = cse("index", *words)
    assert said.code == 0 and "all texts are encoded again" in said.err
    assert "2 encoded, 0 kept" in said.err and cse(*search).code == 0


def test_what_an_index_refuses(cse: Cse, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "a.pdf").write_bytes(b"x")
    out = ("--out", str(tmp_path / "index"))
    refused(cse("index", "starter", str(empty), *out), "no file in it can be read (1 .pdf)")
    refused(cse("index", "starter", *out), "no texts are named")
    (empty / "a.md").write_text("A text.")
    named = ("--set", "data.columns.text=c")
    refused(cse("index", "starter", str(empty), *named, *out), "no file has a column c")
    refused(cse("index", "starter", str(empty)), "--out DIR")
    refused(cse("index", "starter", str(empty), "--out", str(empty)), "no index is here")
    refused(cse("search", "starter", "x"), "cse index MODEL FILE")
    assert not (tmp_path / "index").exists()


def test_an_index_lies_in_its_run(
    cse: Cse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, texts = tmp_path / "run", tmp_path / "saved"
    datasets.Dataset.from_dict({"text": ["a boat", "a lamp"]}).save_to_disk(texts)
    run.mkdir()
    shutil.copytree(shared_encoder(), run / "model")
    (run / "run.toml").write_text("")
    assert cse("index", str(run), str(texts)).code == 0
    assert (run / "index" / "index.json").is_file()
    said = cse("search", str(run), "boat", "--top", "1")
    assert said.code == 0 and "a boat" in said.out
    (tmp_path / "starter").mkdir()
    monkeypatch.chdir(tmp_path)

    def read(files: list[str], *_: object) -> tuple[dict[str, list[tuple[str, int]]], list[str]]:
        return {"a boat": [(file, 1) for file in files]}, []

    monkeypatch.setattr("cse_search.cli.index.read_places", read)
    assert cse("index", str(run), "starter", "./starter").code == 0, "the data set, the folder"
    (line,) = (run / "index" / "texts.jsonl").read_text().splitlines()
    assert json.loads(line)["places"] == [["starter", 1], [str(tmp_path / "starter"), 1]]


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
    table = sentences.with_name("long.txt")
    table.write_text("the " * 40 + "\nshort\n")
    words = ("search", str(shared_encoder()), "short", "--data", str(table), "--max-length", "16")
    assert "1 of 3 texts were cut at 16 tokens" in cse(*words).err


def test_python_says_where_search_is_missing() -> None:
    model = api.load("starter", plugins=Installed(["cse-search"]))
    with pytest.raises(api.CseError, match="no such command 'search'.*left out by --no-plugin"):
        model.search("a boat", ["a lamp"])
