"""``cse search``, and ``cse index``: what is encoded, kept and gone, and what is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from cse_search.reading import Passage
from cse_testkit import shared_encoder
from safetensors.numpy import load_file, save_file

import cse as api
from cse_cli.api import Installed
from plugins.search.tests.answers import shortened
from tests.fixtures.command_line import Cse, refused
from tests.fixtures.documents import folder_of


def about(index: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((index / "index.json").read_text())["index"]
    return found


def vectors_of(index: Path) -> Any:
    return np.load(index / about(index)["content"] / "vectors.npy")


def lines_of(index: Path) -> list[dict[str, Any]]:
    lines = (index / about(index)["content"] / "passages.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_an_index_is_searched_and_grows(cse: Cse, tmp_path: Path) -> None:
    docs, table, index = folder_of(tmp_path / "docs"), tmp_path / "t.tsv", tmp_path / "index"
    table.write_text("id\ttext\n1\tthe bell rang\n2\t\n3\tthe bell rang\n")

    def made(*words: str) -> dict[str, Any]:
        said = cse("index", "starter", *words, "--out", str(index), "--json")
        assert said.code == 0, said.err
        found: dict[str, Any] = json.loads(said.out)
        return found

    first = made(str(docs), str(table))
    assert first == {"index": str(index), "texts": 4, "encoded": 4, "kept": 0, "gone": 0}
    vectors = vectors_of(index)
    assert vectors.shape == (4, 256) and vectors.dtype == np.float32
    lines = lines_of(index)
    place = {"title": "", "headings": "", "file": str(table), "line": None}
    assert lines[3] == {
        "text": "the bell rang",
        "places": [{**place, "row": 1}, {**place, "row": 3}],
    }

    words = ("search", "starter", "a garden light", "who rang?", "--top", "2", "--json")
    said = json.loads(cse(*words, "--index", str(index)).out)
    assert said["texts"] == 4
    model = api.load("starter")
    asked = ["a garden light", "who rang?"]
    assert model.search(asked, index, top=2) == said["queries"]
    plain = json.loads(cse(*words, "--data", str(docs)).out)["queries"]
    assert model.search(asked, [docs], top=2) == plain
    both = model.search(asked, [docs, table], top=2)
    for ours, other in zip(said["queries"], both, strict=True):
        scores = [[hit.pop("score") for hit in each["results"]] for each in (ours, other)]
        cosines = [[hit.pop("cosine") for hit in each["results"]] for each in (ours, other)]
        assert scores == cosines and scores[0] == pytest.approx(scores[1], abs=1e-5)
        assert ours == other
    hit = said["queries"][0]["results"][0]
    assert (hit["file"], hit["row"]) == (str(docs / "sub" / "b.HTML"), 1)

    def by_text() -> dict[str, Any]:
        texts = (line["text"] for line in lines_of(index))
        return dict(zip(texts, vectors_of(index), strict=True))

    before = by_text()
    (docs / "a.md").unlink()
    (docs / "c.txt").write_text("A new text.\n")
    (docs / "d.txt").write_text("Another.\n")
    found = cse(*words[:-1], "--index", str(index))
    changed = "files have changed since this index was made (1 changed, 1 gone, 1 new)"
    assert found.code == 0 and changed in found.err
    with pytest.warns(UserWarning, match="1 changed, 1 gone, 1 new"):
        model.search("x", index)
    update = cse("index", "starter", "--out", str(index), "--json")
    assert "files since the last update: 1 changed, 1 gone, 1 new" in update.err
    now = {"index": str(index), "texts": 4, "encoded": 2, "kept": 2, "gone": 2}
    assert json.loads(update.out) == now
    assert "have changed" not in cse(*words, "--index", str(index)).err
    after = by_text()
    for text in before.keys() & after.keys():
        assert np.array_equal(before[text], after[text])
    shorter = made("--truncate-dim", "32")
    assert shorter["encoded"] == 4 and vectors_of(index).shape == (4, 32)
    cut = api.load("starter", truncate_dim=32)
    said = json.loads(cse(*words, "--index", str(index), "--top", "5").out)["queries"][1]
    assert shortened(cut.search("who rang?", index)[0]) == shortened(said)
    with pytest.raises(api.CseError, match="has vectors of 32 numbers, the model 256"):
        model.search("who rang?", index)
    assert made()["encoded"] == 0, "settings that are not named stay"
    refused(cse("search", "starter", "x", "--index", str(index), "--pooling", "cls"), "--pooling")


def test_files_are_added_and_replaced(cse: Cse, tmp_path: Path) -> None:
    one, two, index = tmp_path / "one.txt", tmp_path / "two.txt", tmp_path / "index"
    one.write_text("a boat\na lamp\n")
    two.write_text("a lamp\na bell\n")
    words = ("index", "starter", "--out", str(index), "--json")
    refused(cse(*words, "--replace"), "--replace: no files are named")
    assert cse(*words, str(one)).code == 0
    said = cse(*words, str(two))
    assert f"keeps {one}; --replace leaves them out" in said.err
    assert json.loads(said.out)["texts"] == 3 and json.loads(said.out)["encoded"] == 1
    assert cse(*words, "--language", "german").code == 0
    said = cse(*words, str(two), "--replace")
    assert f"loses {one}" in said.err and json.loads(said.out)["texts"] == 2
    assert json.loads(said.out)["encoded"] == 0 and about(index)["files"] == [str(two)]
    assert about(index)["stems"] == ["german"], "only files are replaced"
    refused(cse("search", "starter", "x", "--index", str(index), "--set", "a.b=1"), "is for --data")
    said = cse(*words, "--precision", "bf16")
    assert "texts that are kept were encoded in fp32, new ones in bf16" in said.err
    assert cse(*words, str(one)).code == 0
    two.unlink()
    said = cse(*words)
    assert f"{two}: no longer there, so {index} loses their texts" in said.err
    assert about(index)["files"] == [str(one)]
    one.unlink()
    refused(cse(*words), "none of its files is there any more")
    assert len(lines_of(index)) == 2, "an update that is refused changes nothing"


def test_titles_and_headings_are_encoded_with_a_text(cse: Cse, tmp_path: Path) -> None:
    table, index = tmp_path / "t.jsonl", tmp_path / "index"
    rows = [{"title": title, "headings": "Use", "text": "It is old."} for title in ("Bell", "Lamp")]
    table.write_text("\n".join(map(json.dumps, rows)))
    words = ("index", "starter", "--out", str(index), "--json")
    assert json.loads(cse(*words, str(table)).out)["texts"] == 2
    expected = api.load("starter").encode(["Bell\nUse\nIt is old.", "Lamp\nUse\nIt is old."],
                                          normalize=True)  # fmt: skip
    np.testing.assert_allclose(vectors_of(index), expected, atol=1e-6)
    search = ("search", "starter", "lamp", "--index", str(index), "--bm25", "1")
    (hit, other) = json.loads(cse(*search, "--json").out)["queries"][0]["results"]
    assert (hit["title"], hit["headings"], hit["text"]) == ("Lamp", "Use", "It is old.")
    assert hit["row"] == 2 and hit["bm25"] > 0 == other["bm25"]
    assert "Lamp > Use" in cse(*search).out
    said = cse(*words, "--no-titles")
    assert "--titles differs since" in said.err and json.loads(said.out)["texts"] == 1
    assert cse(*words).code == 0 and not about(index)["settings"]["titles"]
    np.testing.assert_allclose(
        vectors_of(index), api.load("starter").encode(["It is old."], normalize=True), atol=1e-6
    )


@pytest.mark.parametrize(("kind", "bound"), [("float16", 1e-3), ("int8", 1e-2)])
def test_smaller_vectors_have_nearly_the_same_scores(
    cse: Cse, tmp_path: Path, kind: str, bound: float
) -> None:
    texts, index = tmp_path / "t.txt", tmp_path / "index"
    texts.write_text("a boat\na lamp in the garden\nthe bell\n")
    words = ("starter", str(texts), "--out", str(index), "--vectors", kind)
    assert cse("index", *words).code == 0
    assert vectors_of(index).dtype == kind
    found, exact = (
        api.load("starter").search("garden", data, top=3)[0]["results"] for data in (index, texts)
    )
    assert [hit["text"] for hit in found] == [hit["text"] for hit in exact]
    for ours, theirs in zip(found, exact, strict=True):
        assert ours["score"] == pytest.approx(theirs["score"], abs=bound)
    texts.write_text(texts.read_text() + "a new text\n")
    said = cse("index", "starter", "--out", str(index), "--json")
    assert json.loads(said.out)["kept"] == 3 and about(index)["settings"]["vectors"] == kind
    again = api.load("starter").search("garden", index, top=3)[0]["results"]
    assert [hit["score"] for hit in again] == pytest.approx(
        [hit["score"] for hit in found], abs=2e-6
    )


def test_words_have_their_share_of_the_order(cse: Cse, tmp_path: Path) -> None:
    texts = ["the bell rang", "a lamp", "the lamp of the garden", "judges speak", ""]
    table, index = tmp_path / "texts.txt", tmp_path / "index"
    table.write_text("\n".join(texts))
    encoder = str(shared_encoder())
    assert cse("index", encoder, str(table), "--out", str(index)).code == 0
    words = ("search", encoder, "gardens bell lamps", "nothing known", "--top", "9", "--json")
    model = api.load(encoder)

    def order(share: float, *source: str) -> list[list[str]]:
        said = cse(*words, "--bm25", str(share), *source)
        assert said.code == 0, said.err
        return [
            [hit["text"] for hit in each["results"]] for each in json.loads(said.out)["queries"]
        ]

    by_index, by_data = ("--index", str(index)), ("--data", str(table))
    assert order(0, *by_index) == order(0, *by_data)
    near = order(0, *by_data)[1]
    for each in (by_data, by_index):
        assert order(1, *each) == [
            ["the lamp of the garden", "the bell rang", "a lamp", "judges speak"], texts[:4]
        ]  # fmt: skip
        assert order(0.3, *each)[1] == near
    assert about(index)["languages"] == ["english"]
    found = model.search("garden bell lamp", index, top=1, bm25=1)[0]["results"]
    assert found[0]["text"] == "the lamp of the garden" and found[0]["score"] == 1
    assert found[0]["bm25"] > 0.5 and 0 < found[0]["cosine"] <= 1
    assert "bm25" not in cse(*words[:-1], *by_index).out
    shown = cse(*words[:-1], *by_index, "--bm25", "0.5").out
    assert "bm25" in shown and "score" in shown
    update = ("index", encoder, "--out", str(index))
    assert cse(*update, "--language", "none").code == 0 and about(index)["languages"] == []
    hits = json.loads(cse(*words, *by_index, "--bm25", "1").out)["queries"][0]["results"]
    assert [hit["text"] for hit in hits][0] == "the bell rang", "no word of it is in another"
    assert cse(*update, "--language", "auto").code == 0
    assert about(index)["languages"] == ["english"]
    refused(cse(*update, "--language", "klingon"), "--language: has no stemmer")
    refused(cse(*words, *by_data, "--bm25", "1.5"), "--bm25", "from 0 to 1")
    wrong = "--truncate-dim: the model's vectors have 32 numbers (got 257)"
    refused(cse(*words[:3], *by_data, "--truncate-dim", "257"), wrong)


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

    def read(files: list[str], *_: object) -> list[Passage]:
        return [Passage("a boat", "", "", file, 1, None) for file in files]

    monkeypatch.setattr("cse_search.reading.read_passages", read)
    words = ("index", str(run), "starter", "./starter", "--replace")
    assert cse(*words).code == 0, "the data set, the folder"
    (line,) = lines_of(run / "index")
    files = [place["file"] for place in line["places"]]
    assert files == ["starter", str(tmp_path / "starter")]


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
    assert [hit["text"] for hit in hits] == [row["text"] for row in rows]
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
