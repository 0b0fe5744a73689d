from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cse_evaluation.pairs import ScoredPair, pairs_from_rows, read_pairs

from cse_core.errors import CseError

Write = Callable[[str, str | bytes], Path]

TSV = "subset\tscore\tsentence1\tsentence2\nnews\t5.0\tA cat.\tThe cat.\nweb\t0\tOne\tTwo\n"
EXPECTED = (ScoredPair("A cat.", "The cat.", 5.0, "news"), ScoredPair("One", "Two", 0.0, "web"))


def parquet(rows: list[dict[str, Any]], path: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def rows() -> list[dict[str, Any]]:
    return [
        {"sentence2": pair.sentence2, "score": pair.score, "x": 1, "sentence1": pair.sentence1}
        | {"subset": pair.subset}
        for pair in EXPECTED
    ]


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl", "parquet"])
def test_every_format_gives_the_same_pairs(tmp_path: Path, form: str, zipped: bool) -> None:
    path = tmp_path / f"small.dev.{form}"
    if form == "tsv":
        path.write_text(TSV)
    elif form == "csv":
        path.write_text(
            "score,sentence2,extra,sentence1,subset\n5.0,The cat.,7,A cat.,news\n0,Two,,One,web\n"
        )
    elif form == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows())) + "\n\n")
    else:
        parquet(rows(), path)
    if zipped:
        path = path.with_name(path.name + ".gz")
        path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))
    pairs = read_pairs(path)
    assert pairs.pairs == EXPECTED
    assert (pairs.name, pairs.scale) == ("small.dev", (0.0, 5.0))
    assert pairs.file == path.name
    assert pairs.texts == ("A cat.", "The cat.", "One", "Two")


def test_tsv_has_no_quoting_and_only_newlines_end_lines(write: Write) -> None:
    content = (
        'score\tsentence1\tsentence2\r\n1\t"Quoted" he said\t"open\r\n\r\n2\ta\u2028b\tc\x85d\r\n'
    )
    pairs = read_pairs(write("q.tsv", "\ufeff" + content)).pairs
    assert pairs[0] == ScoredPair('"Quoted" he said', '"open', 1.0)
    assert pairs[1] == ScoredPair("a\u2028b", "c\x85d", 2.0)


def test_csv_has_ordinary_quoting(write: Write) -> None:
    content = 'score,sentence1,sentence2\n1,"a, ""b""","two\nlines"\n0.5,c,d\n'
    pairs = read_pairs(write("q.csv", content)).pairs
    assert pairs[0] == ScoredPair('a, "b"', "two\nlines", 1.0)


def test_columns_and_scales(write: Write) -> None:
    """Common names of columns; the scale is the smallest usual one that holds every score."""
    for header in (
        "text1,text2,label",
        "sentence_A,sentence_B,relatedness_score",
        "Sentence1,Sentence2,similarity_score",
        "sentence_1,sentence_2,gold",
    ):
        pairs = read_pairs(write("names.csv", f"{header}\na,b,0\nc,d,1\n"))
        assert pairs.pairs == (ScoredPair("a", "b", 0.0), ScoredPair("c", "d", 1.0)), header
        assert pairs.scale == (0.0, 1.0)
    content = "label\tscore\tsentence1\tsentence2\n1\t3.5\ta\tb\n0\t2\tc\td\n"
    assert read_pairs(write("two.tsv", content)).gold == (3.5, 2.0)
    for scores, scale in (
        ((0, 1), (0, 1)),
        ((-0.5, 1), (-1, 1)),
        ((0.2, 4), (0, 5)),
        ((1, 7), (0, 10)),
        ((3, 88), (0, 100)),
        ((-3, 400), (-3, 400)),
    ):
        made = [{"sentence1": "a", "sentence2": "b", "score": score} for score in scores]
        assert pairs_from_rows("made", made).scale == scale
    content = "entailment\tscore\tsentence1\tsentence2\nNEUTRAL\t3.6\ta\tb\nYES\t5\tc\td\n"
    pairs = read_pairs(write("sickr.dev.tsv", content))
    assert pairs.scale == (1.0, 5.0)  # SICK's, from 1 to 5
    assert {pair.subset for pair in pairs.pairs} == {""}


HEAD = "score\tsentence1\tsentence2\n"


MISTAKES: list[tuple[str, str | bytes, str]] = [
    ("e.tsv", "", "the file is empty"),
    ("e.tsv.gz", gzip.compress(b"", mtime=0), "blank lines"),
    ("b.tsv", "\n  \n\t\n", "blank lines"),
    ("b.jsonl", "\n\n", "blank lines"),
    ("u.tsv", HEAD.encode() + b"1\ta\tb\n2\tcaf\xe9\td\n", "u.tsv, line 3: not UTF-8"),
    ("u.csv", b"score,sentence1,sentence2\n1,\xff,b\n", "u.csv, line 2: not UTF-8"),
    ("m.tsv", "score\tpremise\tsentence2\n1\ta\tb\n", "no column sentence1; the columns are"),
    ("m.tsv", "a\tb\n1\t2\n", "no column sentence1, sentence2, score"),
    ("m.jsonl", '{"sentence1": "a", "sentence2": "b"}\n', "no column score"),
    ("m.csv", HEAD + "1\ta\tb\n", "name the file *.tsv"),
    ("d.tsv", "score\tscore\tsentence1\tsentence2\n", "the column 'score' twice"),
    (
        "s.tsv",
        HEAD + "1\ta\tb\nhigh\tc\td\n",
        "s.tsv, line 3: 'score' is not a number (got 'high')",
    ),
    ("s.tsv", HEAD + "1\ta\tb\n\tc\td\n", "line 3: 'score' is not a number (got '')"),
    ("s.tsv", HEAD + "nan\ta\tb\n2\tc\td\n", "line 2: 'score' is not a number"),
    ("s.jsonl", '{"sentence1":"a","sentence2":"b","score":null}', "line 1: 'score' is not a"),
    (
        "s.jsonl",
        '{"sentence1":"a","sentence2":"b","score":1}\n{"sentence1":"a","sentence2":"b"}',
        "line 2: 'score' is not a number",
    ),
    ("w.tsv", HEAD + "1\ta\n", "w.tsv, line 2: 2 fields where the header has 3"),
    ("w.csv", "score,sentence1,sentence2\n1,a\n", "w.csv, line 2: 2 fields where"),
    ("t.tsv", HEAD + "1\ta\t \n", "t.tsv, line 2: no text in the column 'sentence2'"),
    ("t.jsonl", '{"sentence1":3,"sentence2":"b","score":1}', "'sentence1' is not a text"),
    ("t.jsonl", '{"sentence1":"\\ud800","sentence2":"b","score":1}', "half a character"),
    ("one.tsv", HEAD + "1\ta\tb\n", "1 scored pair: Spearman"),
    ("none.tsv", HEAD, "0 scored pairs: Spearman"),
    ("same.tsv", HEAD + "3\ta\tb\n3.0\tc\td\n", "every one of 2 pairs has the score 3:"),
    ("j.jsonl", "{oops}\n", "j.jsonl, line 1: not valid JSON"),
    ("j.jsonl", "[1, 2]\n", "j.jsonl, line 1: not an object"),
    ("q.csv", 'score,sentence1,sentence2\n1,"a"b,c\n', "broken csv"),
    ("z.tsv.gz", "not gzip", "not compressed with gzip"),
    ("z.tsv.gz", gzip.compress(TSV.encode(), mtime=0)[:-9], "cut short or damaged"),
    ("p.parquet", "PAR1 no", "not a complete parquet file"),
    ("notes.txt", "x", "not read from this kind of file; name it *.tsv"),
]


def test_mistakes_are_one_line_that_names_the_file(write: Write) -> None:
    for name, content, said in MISTAKES:
        path = write(name, content)
        with pytest.raises(CseError) as caught:
            read_pairs(path)
        line = str(caught.value)
        assert said in line
        assert line.startswith((f"{path}: ", f"{path}, line "))
        assert "\n" not in line


def test_missing_file_directory_and_unreadable_file(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CseError, match="no such file"):
        read_pairs(tmp_path / "gone.tsv")
    with pytest.raises(CseError, match="no such file"):
        read_pairs(tmp_path / "gone")
    for name in ("folder", "folder.tsv"):
        (tmp_path / name).mkdir()
        with pytest.raises(CseError, match="is a folder, not a file"):
            read_pairs(tmp_path / name)
    path = write("locked.tsv", TSV)
    path.chmod(0)
    if os.access(path, os.R_OK):  # the superuser reads everything

        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(CseError, match="permission denied"):
        read_pairs(path)


def test_rows_of_a_plugin(write: Write) -> None:
    made = [dict(row) for row in rows()]
    pairs = pairs_from_rows("starter.dev", made)
    assert pairs.pairs == EXPECTED
    assert (pairs.file, pairs.path) == ("starter.dev", None)
    with pytest.raises(CseError, match="starter.dev: there are no pairs"):
        pairs_from_rows("starter.dev", [])
