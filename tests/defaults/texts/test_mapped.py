"""Rows of large files are mapped: the same rows, reports and errors, and nothing half-written."""

import gzip
import json
import os
import time
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
    return tmp_path / "cache" / "rows"


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
    """Read first, read again, and without a cache; nothing of the texts is held in memory."""
    path = str(written(tmp_path, form))
    for options, needed in READ:
        if form == "txt" and needed is BOTH:
            continue

        def load(options: dict[str, Any] = options, needed: NeededColumns = needed) -> Corpus:
            return load_corpus(DataOptions(path=(path,), **options), needed=needed)

        with monkeypatch.context() as patch:
            patch.setenv("CSE_CACHE", "off")
            plain = load()
        first = load()
        there = sorted(cache.iterdir())
        with monkeypatch.context() as patch:
            patch.setattr(sources.TextSource, "read", lambda *_: pytest.fail("read again"))
            held = pa.total_allocated_bytes()
            again = load()
            held = pa.total_allocated_bytes() - held
        same(plain, first)
        same(plain, again)
        assert held == 0
        assert sorted(cache.iterdir()) == there
    assert len(there) == 2, "of all rows and of some"
    assert all(file.stat().st_mode & 0o077 == 0 for file in there)


def load(path: Path, **options: Any) -> Corpus:
    return load_corpus(DataOptions(path=(str(path),), **options))


def test_a_file_is_read_again_where_its_content_changed_or_what_is_kept_is_damaged(
    cache: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text('text\tn\n"a one"\t1\n \t\n"two"\t2\n')
    first = load(path)
    (kept,) = cache.iterdir()
    assert "a.tsv: fields stand in quotes" in first.report.messages[0]
    path = path.rename(tmp_path / "moved.tsv")
    os.utime(path, (1, 1))
    moved = load(path)
    assert [*cache.iterdir()] == [kept] and moved.table.equals(first.table)
    assert moved.report.blank_dropped == first.report.blank_dropped == 1
    assert moved.report.messages == tuple(
        line.replace("a.tsv", "moved.tsv") for line in first.report.messages
    )
    right = kept.read_bytes()
    for wrong in (b"", right[:100], right[: len(right) // 2], right[:-100], b"x" * len(right)):
        kept.unlink()
        kept.write_bytes(wrong)
        assert load(path).table.equals(first.table) and kept.read_bytes() == right
    before = path.stat()
    path.write_text(path.read_text().replace("one", "eno"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert list(load(path).column("text")) == ['"a eno"', '"two"']
    assert len([*cache.iterdir()]) == 2


def test_a_mistake_in_a_file_keeps_nothing(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n' * 1_000 + "{\n")
    with pytest.raises(CseError, match="not valid JSON") as found:
        load(path)
    assert found.value.where == f"{path}, line 1001" and not [*cache.iterdir()]
    path.chmod(0)
    if not os.access(path, os.R_OK):
        with pytest.raises(CseError, match="permission denied"):
            load(path)
    bad = tmp_path / "b.parquet"
    pq.write_table(pa.table({"text": ["a"] * 700 + ["b\0"]}), bad)
    with pytest.raises(CseError, match="NUL byte") as found:
        load(bad)
    assert found.value.where == f"{bad}, row 701"


def test_what_cannot_be_kept_is_held_in_memory_and_said(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "csv.gz")

    def said(why: str) -> None:
        corpus = load(path)
        line = f"{path}: its texts are held in memory, not in {cache}: {why}"
        assert corpus.report.messages.count(line) == 1
        assert corpus.table.equals(plain.table) and corpus.report.blank_dropped == dropped
        assert not cache.is_dir() or not [*cache.iterdir()]

    with monkeypatch.context() as patch:
        patch.setenv("CSE_CACHE", "off")
        plain = load(path)
        dropped = plain.report.blank_dropped
        assert not cache.exists()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        said("No space left on device")
    with monkeypatch.context() as patch:
        patch.setattr(sources, "write_tables", full)
        said("No space left on device")
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("CSE_CACHE", str(tmp_path / "file"))
    cache = tmp_path / "file" / "rows"
    said("Not a directory")


def test_what_a_killed_process_left_is_removed(cache: Path, tmp_path: Path) -> None:
    """Not what another one may be writing."""
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    cache.mkdir(parents=True)
    killed, writing = cache / ".a.arrow-01234567", cache / ".b.arrow-01234567"
    for left, age in ((killed, 4_000), (writing, 3_000)):
        left.touch()
        os.utime(left, (time.time() - age,) * 2)
    load(path)
    assert not killed.exists() and writing.exists() and len([*cache.iterdir()]) == 2
