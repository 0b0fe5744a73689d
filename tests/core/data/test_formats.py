"""Every kind of file gives the same rows."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cse_core.data import files, load_corpus, peek_columns
from cse_core.errors import CseError
from cse_core.recipes.settings import DataOptions

TEXTS = [
    "A plain sentence.",
    'Quotes "inside", and a comma',
    "Größe, naïve, 東京, \U0001f600, and a line\u2028separator",
    "  stands between spaces  ",
    "A plain sentence.",
]
POSITIVES = [f"positive {number}" for number in range(len(TEXTS))]
EXPECTED = [text.strip() for text in TEXTS]


def write_txt(path: Path) -> None:
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")


def write_tsv(path: Path) -> None:
    rows = ["text\tpositive", *(f"{a}\t{b}" for a, b in zip(TEXTS, POSITIVES, strict=True))]
    path.write_text("\n".join(rows), encoding="utf-8")


def write_csv(path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "positive"])
        writer.writerows(zip(TEXTS, POSITIVES, strict=True))


def objects() -> list[dict[str, str]]:
    return [{"text": a, "positive": b} for a, b in zip(TEXTS, POSITIVES, strict=True)]


def write_jsonl(path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in objects()), encoding="utf-8")


def write_json(path: Path) -> None:
    path.write_text(json.dumps(objects(), indent=1, ensure_ascii=False), encoding="utf-8")


def write_parquet(path: Path) -> None:
    pq.write_table(pa.table({"text": TEXTS, "positive": POSITIVES}), path)


WRITERS = {
    "txt": write_txt,
    "tsv": write_tsv,
    "csv": write_csv,
    "jsonl": write_jsonl,
    "json": write_json,
    "parquet": write_parquet,
}


@pytest.mark.parametrize("gzipped", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("ending", WRITERS)
def test_every_format(ending: str, gzipped: bool, tmp_path: Path) -> None:
    path = tmp_path / f"texts.{ending}"
    WRITERS[ending](path)
    if gzipped:
        packed = path.with_name(path.name + ".gz")
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path = packed
    options = DataOptions(path=(str(path),))
    corpus = load_corpus(options, datasets={})
    columns = ("text",) if ending == "txt" else ("text", "positive")
    assert list(corpus.column("text")) == EXPECTED
    assert corpus.names == columns == peek_columns(options, datasets={})
    if "positive" in columns:
        assert list(corpus.column("positive")) == POSITIVES
    assert corpus.documents is None
    assert [file.rows for file in corpus.report.files] == [len(corpus)] == [len(TEXTS)]


def test_json_lines_in_a_json_file(tmp_path: Path) -> None:
    path = tmp_path / "texts.json"
    write_jsonl(path)
    corpus = load_corpus(DataOptions(path=(str(path),)), datasets={})
    assert list(corpus.column("positive")) == POSITIVES


@pytest.mark.parametrize("write", [write_txt, write_tsv, write_csv])
def test_line_ends_and_byte_order_mark(write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / f"texts.{write.__name__.removeprefix('write_')}"
    write(path)
    plain = path.read_bytes().replace(b"\r\n", b"\n")
    for end in (b"\r\n", b"\r"):
        path.write_bytes(b"\xef\xbb\xbf" + plain.replace(b"\n", end))
        corpus = load_corpus(DataOptions(path=(str(path),)), datasets={})
        assert list(corpus.column("text")) == EXPECTED


def test_blocks_smaller_than_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{'ä' * number} line {number}" for number in range(200)]
    for block in (1, 7, 64, 1 << 16):
        monkeypatch.setattr(files, "_BLOCK", block)
        assert list(files.text_lines(BytesIO("\n".join(lines).encode()), "a")) == lines
        with pytest.raises(CseError, match="a, line 201: not UTF-8"):
            list(files.text_lines(BytesIO("\n".join([*lines, "x"]).encode() + b"\xff"), "a"))
    monkeypatch.setattr(files, "_BLOCK", 8)
    with pytest.raises(CseError, match="a, line 2: a line of more than 9 bytes"):
        list(files.text_lines(BytesIO(b"123456\n" + b"x" * 20), "a", longest=9))


def test_csv_field_over_lines_and_very_long(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text('text,title\n"two\nlines",a\n"' + "x" * 300_000 + '",b\n', encoding="utf-8")
    corpus = load_corpus(DataOptions(path=(str(path),)), datasets={})
    assert corpus.column("text")[0] == "two\nlines"
    assert len(corpus.column("text")[1]) == 300_000


def test_values_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    rows = [
        {"text": "one", "document": 7, "flag": True, "score": 0.5, "tags": ["x"]},
        {"text": "two", "document": None, "late": "z"},
        {"text": None},
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    corpus = load_corpus(DataOptions(path=(str(path),)), datasets={})
    assert corpus.table.to_pylist() == [
        {"text": "one", "document": "7", "flag": "true", "score": "0.5", "late": ""},
        {"text": "two", "document": "", "flag": "", "score": "", "late": "z"},
    ]
    assert corpus.documents is not None and corpus.documents.tolist() == [0, -1]
    assert corpus.report.blank_dropped == 1
    assert any("tags" in message for message in corpus.report.messages)


def test_parquet_types(tmp_path: Path) -> None:
    path = tmp_path / "texts.parquet"
    table = pa.table(
        {
            "text": pa.array(["a", "b", "a"]).dictionary_encode(),
            "document": [3, 3, None],
            "vector": [[0.1], [0.2], [0.3]],
        }
    )
    pq.write_table(table, path)
    corpus = load_corpus(DataOptions(path=(str(path),)), datasets={})
    assert list(corpus.column("text")) == ["a", "b", "a"]
    assert corpus.names == ("text", "document")
    assert corpus.documents is not None and corpus.documents.tolist() == [0, 0, -1]
