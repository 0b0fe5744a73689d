"""The corpus itself: columns, documents, duplicates, fingerprint, facts, where rows come from."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pytest

from cse_core.errors import CseError
from cse_core.records import SourceSpec
from cse_core.registry.registry import Registered, Registry
from cse_core.texts import DataOptions, NeededColumns, Wanted
from cse_defaults.texts import Corpus, load_corpus
from cse_defaults.texts.plugin import cse_sources
from tests.fixtures.parts import WORDS_OF_PLUGINS


class MadeUpTexts:
    """A data set as a plugin brings it."""

    def rows(self, name: str, wanted: Wanted) -> Iterator[tuple[str, dict[str, str]]]:
        for document in ("one", "two"):
            for number in range(3):
                row = {
                    "text": f"sentence {number} of {document}",
                    "document": document,
                    "title": f"title {document}",
                    "fraternal": f"Satz {number} von {document}",
                }
                yield f"{name}, row {number}", row


SPEC = SourceSpec(
    name="made-up",
    summary="six sentences of two documents",
    factory=f"{__name__}:MadeUpTexts",
    synthetic=True,
)
INSTALLED = Registry(
    Registered(each, "made-up", "1", "made-up:p")
    for each in [SPEC, *cse_sources(), *WORDS_OF_PLUGINS]
)


def write(path: Path, *lines: str) -> str:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def load(*names: str, **settings: Any) -> Corpus:
    return load_corpus(DataOptions(path=names, **settings), registry=INSTALLED)


def test_columns_stay_in_arrow_and_equal_texts_have_one_id() -> None:
    texts = [f"text {number}" for number in range(25_000)]
    corpus = Corpus.from_columns({"text": texts})
    column = corpus.column("text")
    assert len(column) == len(corpus) == 25_000
    assert (column[3], column[-1], column[np.int64(7)]) == ("text 3", "text 24999", "text 7")
    assert column[9_998:10_003] == texts[9_998:10_003]
    assert column[::5000] == texts[::5000]
    assert list(column) == texts
    rows = np.array([20_000, 0, 0, 9_999])
    assert column.take(rows) == [texts[row] for row in rows]
    with pytest.raises(IndexError):
        column[25_000]
    with pytest.raises(CseError, match="no column positive; its columns: text"):
        corpus.column("positive")
    draw = random.Random(0)
    texts = [str(draw.randrange(3000)) for _ in range(30_000)]
    first: dict[str, int] = {}
    expected = [first.setdefault(text, row) for row, text in enumerate(texts)]
    assert Corpus.from_columns({"text": texts}).text_ids.tolist() == expected


def test_texts_lie_in_memory_once(tmp_path: Path) -> None:
    """What a file of lines takes is its own size: no copy stays, and none is made on the way."""
    (file := tmp_path / "many.txt").write_text(
        "".join(f"line {n} of them\n" for n in range(90_000))
    )
    before = pa.total_allocated_bytes()
    corpus = load_corpus(DataOptions(path=(str(file),)))
    assert corpus.text_ids.tolist() == list(range(90_000))
    assert pa.total_allocated_bytes() - before < 1.5 * file.stat().st_size


def test_fingerprint(tmp_path: Path) -> None:
    one = write(tmp_path / "one.txt", "a", "bc", "d")
    same = write(tmp_path / "same.tsv", "text", "a", "bc", "d")
    base = load(one).fingerprint
    assert base == load(same).fingerprint
    parts = write(tmp_path / "x.txt", "a"), write(tmp_path / "y.txt", "bc", "d")
    assert base == load(*parts).fingerprint
    others = [
        load(write(tmp_path / "b.txt", "ab", "c", "d")),
        load(write(tmp_path / "c.txt", "bc", "a", "d")),
        load(one, limit=2),
        load(one, one),
        load(write(tmp_path / "d.tsv", "text\ttitle", "a\t", "bc\t", "d\t")),
        load(write(tmp_path / "e.tsv", "text\ttopic", "a\t", "bc\t", "d\t")),
    ]
    assert len({base, *(corpus.fingerprint for corpus in others)}) == len(others) + 1
    document = write(tmp_path / "f.tsv", "text\tdocument", "a\t1")
    other = write(tmp_path / "g.tsv", "text\tdocument", "b\t1")
    together = write(tmp_path / "h.tsv", "text\tdocument", "a\t1", "b\t1")
    assert load(document, other).fingerprint != load(together).fingerprint
    columns = {"text": ["a", "b"], "title": ["c", "d"]}
    turned = dict(reversed(columns.items()))
    assert Corpus.from_columns(columns).fingerprint == Corpus.from_columns(turned).fingerprint
    corpus = load(write(tmp_path / "a.txt", "Größe", "two"))
    assert corpus.fingerprint == (
        "sha256:db371a226df18edce51095fc2a492265ca469059c87b10162ed56d8a06eb493b"
    )


def test_limit_stops_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    lines = [f"{'word ' * 20}{number}\n\n" for number in range(100_000)]
    path.write_bytes("".join(lines).encode() + b"\xff\n")
    corpus = load(str(path), limit=1_000)
    assert len(corpus) == corpus.report.blank_dropped == 500, "a blank line is a row"
    assert corpus.column("text")[499].endswith(" 499")
    with pytest.raises(CseError, match="line 200001: not UTF-8"):
        load(str(path))
    other = write(tmp_path / "b.txt", "b")
    corpus = load(other, str(path), other, limit=5)
    assert list(corpus.column("text"))[0] == "b" and len(corpus) == 3
    assert f"{other}: not read, because data.limit is reached first" in corpus.report.messages


def test_installed_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = load("made-up")
    assert corpus.names == ("text", "fraternal", "document", "title")
    assert corpus.report.made_up
    assert "made-up: synthetic texts" in corpus.report.lines[-1]
    assert len(corpus) == 6
    options = DataOptions(path=("made-up",))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made-up").mkdir()
    assert len(load("made-up")) == 6
    plain = write(tmp_path / "plain.txt", "real")
    assert load("made-up", plain).report.made_up
    assert not load(plain).report.made_up
    with pytest.raises(CseError, match="did you mean made-up?"):
        load("madeup")
    spec = replace(SPEC, factory=f"{__name__}:Other")
    broken = Registry([Registered(spec, "made-up", "1", "made-up:p")])
    with pytest.raises(CseError, match="test_corpus has no Other"):
        load_corpus(options, registry=broken)


def test_the_hub_is_not_asked_by_chance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(datasets, "load_dataset", lambda *names, **_: asked.append(names))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name in ("wiki", "data/wiki", "./a/b", "owner/wiki.txt", "/tmp/none/b", "a/b/c", "~/x"):
        with pytest.raises(CseError):
            load(name)
    assert not asked


def test_data_sets_with_weights_prompts_and_their_places(tmp_path: Path) -> None:
    one = write(tmp_path / "a.csv", "text,positive", *(f"a{i},b{i}" for i in range(4)))
    other = write(tmp_path / "b.csv", "text,positive", "c0,d0", "c1,d1")
    settings = {"weights": (2.5, 0.5), "columns": {"group": "@source"}}
    mixed = load(one, other, **settings)
    texts = list(mixed.column("text"))
    counts = [texts.count(f"a{i}") for i in range(4)]
    assert sorted(counts) == [2, 2, 3, 3] and len(texts) == 11
    assert {*texts[10:]} < {"c0", "c1"}
    assert list(mixed.column("group")) == ["0"] * 10 + ["1"]
    assert load(one, other, **settings).fingerprint == mixed.fingerprint, "the same draw each time"
    assert any("4 rows, of which an epoch takes 10" in line for line in mixed.report.messages)
    assert len(load(other, weights=(0.01,))) == 1, "some row is left of each"
    prompted = load_corpus(
        DataOptions(path=(one, other), prompts=("q: ", "")),
        needed=NeededColumns(("positive",), ("positive",)),
    )
    assert list(prompted.column("text"))[3:5] == ["q: a3", "c0"]
    assert list(prompted.column("positive"))[3:5] == ["q: b3", "d0"]
    for name in ("weights", "prompts"):
        with pytest.raises(CseError, match=f"data.{name}: 1 of 2 data sets have one"):
            load(one, other, **{name: (1.0,) if name == "weights" else ("",)})
        values = (2.0, 1.0) if name == "weights" else ("q: ", "")
        with pytest.raises(CseError, match=f"data.{name}: changes the texts that data.held_out"):
            load(one, other, **{name: values, "held_out": 1})
