import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cse_evaluation.pairs import ScoredPair, pairs_from_rows, read_pairs

from cse_core.errors import CseError
from tests.fixtures.methods import refusal

Write = Callable[[str, str | bytes], Path]

TSV = "subset\tscore\tsentence1\tsentence2\nnews\t5.0\tA cat.\tThe cat.\nweb\t0\tOne\tTwo\n"
EXPECTED = (ScoredPair("A cat.", "The cat.", 5.0, "news"), ScoredPair("One", "Two", 0.0, "web"))


def test_every_format_gives_the_same_pairs(tmp_path: Path) -> None:
    rows = [
        {"sentence2": pair.sentence2, "score": pair.score, "x": 1, "sentence1": pair.sentence1}
        | {"subset": pair.subset}
        for pair in EXPECTED
    ]
    (tmp_path / "small.dev.tsv").write_text(TSV)
    (tmp_path / "small.dev.csv").write_text(
        "score,sentence2,extra,sentence1,subset\n5.0,The cat.,7,A cat.,news\n0,Two,,One,web\n"
    )
    (tmp_path / "small.dev.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "small.dev.parquet")
    for plain in list(tmp_path.iterdir()):
        zipped = plain.with_name(f"{plain.name}.gz")
        zipped.write_bytes(gzip.compress(plain.read_bytes()))
        for path in (plain, zipped):
            pairs = read_pairs(path)
            assert pairs.pairs == EXPECTED
            assert (pairs.name, pairs.scale, pairs.file) == ("small.dev", (0.0, 5.0), path.name)
            assert pairs.texts == ("A cat.", "The cat.", "One", "Two")
    made = pairs_from_rows("starter.dev", rows)
    assert (made.pairs, made.file, made.path) == (EXPECTED, "starter.dev", None)
    with pytest.raises(CseError, match="starter.dev: there are no pairs"):
        pairs_from_rows("starter.dev", [])


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


# Mistakes of files as such are those of training data: tests/core/data.
MISTAKES: list[tuple[str, str | bytes, str]] = [
    ("e.tsv", "", "the file is empty"),
    ("e.tsv.gz", gzip.compress(b"", mtime=0), "blank lines"),
    ("u.tsv", HEAD.encode() + b"1\ta\tb\n2\tcaf\xe9\td\n", "u.tsv, line 3: not UTF-8"),
    ("m.tsv", "score\tpremise\tsentence2\n1\ta\tb\n", "no column sentence1; the columns are"),
    ("m.tsv", "a\tb\n1\t2\n", "no column sentence1, sentence2, score"),
    ("m.jsonl", '{"sentence1": "a", "sentence2": "b"}\n', "no column score"),
    ("m.csv", HEAD + "1\ta\tb\n", "name the file *.tsv"),
    ("s.tsv", HEAD + "1\ta\tb\nhigh\tc\td\n", "line 3: 'score' is not a number (got 'high')"),
    ("s.tsv", HEAD + "1\ta\tb\n\tc\td\n", "line 3: 'score' is not a number (got '')"),
    ("s.tsv", HEAD + "nan\ta\tb\n2\tc\td\n", "line 2: 'score' is not a number"),
    ("s.jsonl", '{"sentence1":"a","sentence2":"b","score":null}', "line 1: 'score' is not a"),
    ("w.tsv", HEAD + "1\ta\n", "w.tsv, line 2: 2 fields where the header has 3"),
    ("t.tsv", HEAD + "1\ta\t \n", "t.tsv, line 2: no text in the column 'sentence2'"),
    ("t.jsonl", '{"sentence1":3,"sentence2":"b","score":1}', "'sentence1' is not a text"),
    ("t.jsonl", '{"sentence1":"\\ud800","sentence2":"b","score":1}', "half a character"),
    ("one.tsv", HEAD + "1\ta\tb\n", "1 scored pair: Spearman"),
    ("same.tsv", HEAD + "3\ta\tb\n3.0\tc\td\n", "every one of 2 pairs has the score 3:"),
    ("notes.txt", "x", "not read from this kind of file; write them as *.tsv"),
]


def test_mistakes_are_one_line_that_names_the_file(write: Write) -> None:
    for name, content, said in MISTAKES:
        path = write(name, content)
        line = refusal(read_pairs, path)
        assert said in line
        assert line.startswith((f"{path}: ", f"{path}, line "))
