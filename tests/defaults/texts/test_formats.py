"""Every kind of file gives the same rows."""

import csv
import gzip
import json
from io import BytesIO, StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cse_core.errors import CseError
from cse_core.texts import DataOptions, Seen
from cse_defaults.texts import Corpus, files, load_corpus
from cse_defaults.texts.tables import arrow_text

TEXTS = [
    "A plain sentence.",
    'Quotes "inside", and a comma',
    "Größe, naïve, 東京, \U0001f600, and a line\u2028separator",
    "  stands between spaces  ",
    "A plain sentence.",
]
POSITIVES = [f"positive {number}" for number in range(len(TEXTS))]
EXPECTED = [text.strip() for text in TEXTS]


ROWS = [{"text": a, "positive": b} for a, b in zip(TEXTS, POSITIVES, strict=True)]


def as_csv() -> str:
    file = StringIO()
    writer = csv.DictWriter(file, ["text", "positive"])
    writer.writeheader()
    writer.writerows(ROWS)
    return file.getvalue()


def as_parquet() -> bytes:
    file = BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), file)
    return file.getvalue()


CONTENTS: dict[str, bytes] = {
    "txt": "\n".join([*TEXTS, ""]).encode(),
    "tsv": "\n".join(map("\t".join, [["text", "positive"], *(r.values() for r in ROWS)])).encode(),
    "csv": as_csv().encode(),
    "jsonl": "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
    "json": json.dumps(ROWS, indent=1, ensure_ascii=False).encode(),
    "parquet": as_parquet(),
}


def load(path: Path, content: bytes) -> Corpus:
    path.write_bytes(content)
    return load_corpus(DataOptions(path=(str(path),)))


def test_every_format(tmp_path: Path) -> None:
    for ending, content in CONTENTS.items():
        for path, written in (
            (tmp_path / f"texts.{ending}", content),
            (tmp_path / f"texts.{ending}.gz", gzip.compress(content)),
            (tmp_path / f"lines.{'json' if ending == 'jsonl' else ending}", content),
        ):
            corpus = load(path, written)
            columns = ("text",) if ending == "txt" else ("text", "positive")
            assert list(corpus.column("text")) == EXPECTED, path
            assert corpus.names == columns, path
            if "positive" in columns:
                assert list(corpus.column("positive")) == POSITIVES, path
            assert corpus.documents is None
            assert len(corpus) == len(TEXTS)


def test_lines_are_told_from_the_bytes(tmp_path: Path) -> None:
    lines = [f"{'ä' * number} line {number}" for number in range(2000)]
    assert list(files.text_lines(BytesIO("\n".join(lines).encode()), "a")) == lines
    for bad in (7, 500, 1999):
        held = [line.encode() for line in lines]
        held[bad] += b"\xff"
        with pytest.raises(CseError, match=f"a, line {bad + 1}: not UTF-8"):
            list(files.text_lines(BytesIO(b"\n".join(held)), "a"))
    with pytest.raises(CseError, match="a, line 2: a line of more than 9 characters"):
        list(files.text_lines(BytesIO(b"123456\n" + b"x" * 20), "a", longest=9))


def test_fields_over_lines_and_line_ends(tmp_path: Path) -> None:
    content = 'text,title\n"two\nlines",a\n"' + "x" * 300_000 + '",b\n'
    corpus = load(tmp_path / "texts.csv", content.encode())
    assert corpus.column("text")[0] == "two\nlines"
    assert len(corpus.column("text")[1]) == 300_000
    for ending in ("txt", "tsv", "csv"):
        plain = CONTENTS[ending].replace(b"\r\n", b"\n")
        for end in (b"\r\n", b"\r"):
            content = b"\xef\xbb\xbf" + plain.replace(b"\n", end)
            corpus = load(tmp_path / f"texts.{ending}", content)
            assert list(corpus.column("text")) == EXPECTED, (ending, end)


def test_quotes_of_tsv(tmp_path: Path) -> None:
    """They have no meaning, whatever other lines hold, unless the name says so."""
    path = tmp_path / "texts.tsv"
    rows = ["text\tn", '"a ""b"" c"\t1', '"a lone one\t2', '"c"\t3']
    corpus = load(path, "\n".join(rows).encode())
    assert list(corpus.column("text")) == ['"a ""b"" c"', '"a lone one', '"c"']
    assert "?quotes=yes" in corpus.report.messages[0]
    with pytest.raises(CseError, match="line 3: broken csv"):
        load_corpus(DataOptions(path=(f"{path}?quotes=yes",)))
    del rows[2]
    load(path, "\n".join(rows).encode())
    quoted = load_corpus(DataOptions(path=(f"{path}?quotes=yes",)))
    assert list(quoted.column("text")) == ['a "b" c', "c"] and not quoted.report.messages
    with pytest.raises(CseError, match="is neither yes nor no"):
        load_corpus(DataOptions(path=(f"{path}?quotes=maybe",)))


def test_values_that_are_no_text(tmp_path: Path) -> None:
    rows = [
        {"text": "one", "document": 7, "flag": True, "score": 0.5, "tags": ["x"]},
        {"text": "two", "document": None, "late": "z"},
        {"text": None},
    ]
    corpus = load(tmp_path / "texts.jsonl", "\n".join(map(json.dumps, rows)).encode())
    assert corpus.table.to_pylist() == [
        {"text": "one", "document": "7", "flag": "true", "score": "0.5", "late": ""},
        {"text": "two", "document": "", "flag": "", "score": "", "late": "z"},
    ]
    assert corpus.documents is not None and corpus.documents.tolist() == [0, -1]
    assert corpus.report.blank_dropped == 1
    assert any("tags" in message for message in corpus.report.messages)


def test_arrow_types() -> None:
    texts = {str(t): pa.array([["a"]], pa.list_(t)) for t in (pa.large_string(), pa.string_view())}
    span = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    seen = Seen()
    read = arrow_text(pa.table({**texts, "span": span}), seen)
    assert read.to_pydict() == dict.fromkeys(texts, [["a"]])
    assert seen.left_out == {"span": "values of type month_day_nano_interval"}


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
    corpus = load_corpus(DataOptions(path=(str(path),)))
    assert list(corpus.column("text")) == ["a", "b", "a"]
    assert corpus.names == ("text", "document")
    assert corpus.documents is not None and corpus.documents.tolist() == [0, 0, -1]
