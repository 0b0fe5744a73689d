"""Rows of large files are mapped: the same rows, reports and errors."""

import gc
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cse_core.errors import CseError
from cse_core.texts import DataOptions, NeededColumns
from cse_defaults.texts import Corpus, files, load_corpus, sources, tables

MANY = 4_000
BOTH = NeededColumns(("positive",), ("positive",))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache where every file and table is large, and read some hundred rows at a time."""
    monkeypatch.setenv("CSE_CACHE", str(tmp_path / "cache"))
    for module in (tables, sources):
        monkeypatch.setattr(module, "LARGE", 1)
    for module in (tables, files):
        monkeypatch.setattr(module, "ROWS", 300)
    return tmp_path / "cache"


def cells(row: int) -> dict[str, Any]:
    """A row with white space around texts, blanks, equal texts, and lists where asked for."""
    text = "" if row % 97 == 5 else f"  a text of row {row % 3_000}" + " \u3000" * (row % 3)
    return {
        "text": text,
        "positive": f"its positive {row}" if row % 50 else " ",
        "document": row // 9,
    }


def written(folder: Path, form: str) -> Path:
    """A file of many rows in a format; of ``lists`` positives are several."""
    rows = [cells(row) for row in range(MANY)]
    path = folder / f"a.{form}"
    if form == "txt":
        path.write_text("\n".join(row["text"] for row in rows), encoding="utf-8")
    elif form == "csv.gz":
        lines = ["text,positive,document", *(",".join(map(str, row.values())) for row in rows)]
        path.write_bytes(gzip.compress("\n".join(lines).encode()))
    elif form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        for number, row in enumerate(rows):
            row["more"] = {"no": "text"}
            if number % 3:
                row["positive"] = [row["positive"], "another"][: number % 3]
            if number > 2_000:
                row["title"] = f"title {number}"
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


FORMS = ("txt", "csv.gz", "parquet", "jsonl")
READ: list[tuple[dict[str, Any], NeededColumns]] = [
    ({}, NeededColumns()),
    ({"limit": 1_234}, NeededColumns()),
    ({"weights": (2.25,), "prompts": ("query: ",)}, NeededColumns()),
    ({"prompts": ("query: ",)}, BOTH),
]


def same(one: Corpus, other: Corpus) -> None:
    assert one.table.equals(other.table) and one.report == other.report
    assert one.fingerprint == other.fingerprint
    assert one.text_ids.tolist() == other.text_ids.tolist()
    if one.documents is None or other.documents is None:
        assert one.documents is other.documents is None
    else:
        assert one.documents.tolist() == other.documents.tolist()


@pytest.mark.parametrize("form", FORMS)
def test_mapped_rows_are_those_in_memory(
    form: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the texts is held in memory, and no file stays."""
    path = str(written(tmp_path, form))
    for options, needed in READ:
        if form == "txt" and needed is BOTH:
            continue

        def load(options: dict[str, Any] = options, needed: NeededColumns = needed) -> Corpus:
            return load_corpus(DataOptions(path=(path,), **options), needed=needed)

        with monkeypatch.context() as patch:
            patch.setenv("CSE_CACHE", "off")
            plain = load()
        gc.collect()  # what earlier tests left behind goes before the memory is counted
        held = pa.total_allocated_bytes()
        rows = load()
        held = pa.total_allocated_bytes() - held
        same(plain, rows)
        assert held == 0 and not [*cache.iterdir()]


def load(path: Path, **options: Any) -> Corpus:
    return load_corpus(DataOptions(path=(str(path),), **options))


def test_a_mistake_in_a_file_is_told(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n' * 1_000 + "{\n")
    with pytest.raises(CseError, match="not valid JSON") as found:
        load(path)
    assert found.value.where == f"{path}, line 1001"
    path.chmod(0)
    if not os.access(path, os.R_OK):
        with pytest.raises(CseError, match="permission denied"):
            load(path)
    bad = tmp_path / "b.parquet"
    pq.write_table(pa.table({"text": ["a"] * 700 + ["b\0"]}), bad)
    with pytest.raises(CseError, match="NUL byte") as found:
        load(bad)
    assert found.value.where == f"{bad}, row 701"


def test_what_cannot_be_mapped_is_held_in_memory_and_said(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "csv.gz")

    def said(why: str, folder: Path) -> None:
        corpus = load(path)
        line = f"{path}: its texts are held in memory, not in {folder}: {why}"
        assert corpus.report.messages.count(line) == 1
        assert corpus.table.equals(plain.table) and corpus.report.blank_dropped == dropped

    with monkeypatch.context() as patch:
        patch.setenv("CSE_CACHE", "off")
        plain = load(path)
        dropped = plain.report.blank_dropped
        assert not cache.exists()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pa.ipc, "new_stream", full)
        said("No space left on device", cache)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("CSE_CACHE", str(tmp_path / "file"))
    said("File exists", tmp_path / "file")
