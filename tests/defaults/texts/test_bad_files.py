"""Every mistake is one line that names the file, the place and what to do."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cse_core.texts import DataOptions
from cse_defaults.texts import load_corpus
from tests.fixtures.methods import refusal


def load_error(*names: object, **settings: object) -> str:
    options = DataOptions.model_validate({"path": tuple(map(str, names)), **settings})
    return refusal(load_corpus, options)


BAD_CONTENTS = {
    "empty": ("a.txt", b"", ["a.txt: the file is empty"]),
    "empty gz": ("a.txt.gz", gzip.compress(b""), ["a.txt.gz: contains no text"]),
    "blank": ("a.txt", b"\n  \n\t\n\xc2\xa0\n", ["a.txt: contains no text, only blank lines"]),
    "header only": ("a.tsv", b"text\tpositive\n", ["a.tsv: contains no text", "header"]),
    "blank jsonl": ("a.jsonl", b"\n\n", ["a.jsonl: contains no text"]),
    "latin-1": ("a.txt", b"one\ntwo\ncaf\xe9 x\n", ["a.txt, line 3: not UTF-8", "iconv"]),
    "latin-1 csv": ("a.csv", b"text,b\nx,y\nz,\xe9\n", ["a.csv, line 3: not UTF-8"]),
    "utf-16": ("a.txt", "one\ntwo\n".encode("utf-16"), ["UTF-16", "iconv -f UTF-16"]),
    "utf-32": ("a.txt", "one".encode("utf-32"), ["UTF-32", "iconv -f UTF-32"]),
    "binary": ("a.txt", b"BZh91AY&SY\xff", ["is not a text file"]),
    "nul": ("a.txt", b"one\ntw\0o\n", ["a.txt, line 2", "NUL byte"]),
    "nul escape": ("a.jsonl", b'{"text": "a\\u0000b"}', ["a.jsonl, row 1", "NUL byte"]),
    "surrogate": ("a.jsonl", b'{"text":"a"}\n{"text":"\\ud800"}', ["line 2", "surrogate"]),
    "broken json": ("a.jsonl", b'{"text": "a"}\n{"text": \n',
                    ["a.jsonl, line 2: not valid JSON: Expecting value: line 1 column 10"]),
    "json text": ("a.jsonl", b'"a text"\n', ["a.jsonl, line 1", "object", '{"text"']),
    "json array": ("a.json", b'[{"text": "a"}, {"text"]', ["a.json: not valid JSON"]),
    "deep json": ("a.jsonl", b"[" * 100_000, ["line 1: not valid JSON: too deeply nested"]),
    "only lists": ("a.jsonl", b'{"words": ["a"]}\n', ["no column text", "words (lists); write"]),
    "ragged tsv": ("a.tsv", b"text\tb\n1\t2\n\n3\n", ["a.tsv, line 4: 1 fields", "2 (text, b)"]),
    "ragged csv": ("a.csv", b'text,b\n"x\ny",2\n1,2,3\n', ["a.csv, line 4: 3 fields", "comma"]),
    "semicolons": ("a.csv", b"id;text\n1;A, b\n", ["a.csv, line 1: fields stand apart by ';'"]),
    "tabs": ("a.csv", b"id\ttext\n1\tA\n", ["fields stand apart by '\\t'", "*.tsv"]),
    "open quote": ("a.csv", b'text,b\nx,y\n"abc,2\n', ["a.csv, line 3: broken csv"]),
    "two headers": ("a.tsv", b"text\ttext\na\tb\n", ["line 1: the header has the column 'text'"]),
    "no header": ("a.tsv", b"A first sentence, no head.\nA second.\n", ["not a header", ".txt"]),
    "no text": ("a.csv", b"src,tgt\na,b\n", ["a.csv: no column text", "src, tgt", "--set data."]),
    "ending": ("a.docx", b"abc", ["a.docx: unknown file type", "'.docx'", ".jsonl"]),
    "no ending": ("./texts", b"abc", ["texts: unknown file type", ".parquet"]),
    "not parquet": ("a.parquet", b"PAR1 no parquet", ["a.parquet: not a complete parquet file"]),
    "sections": ("a.jsonl", b'{"id": 1, "sections": ["x"]}', ["line 1: sections", "sentence"]),
    "paras": ("a.jsonl", b'{"id": 1, "paras": ["a text"]}', ["line 1: paras", "sentence"]),
}  # fmt: skip


def test_bad_contents(tmp_path: Path) -> None:
    for case, (name, content, parts) in BAD_CONTENTS.items():
        path = tmp_path / name
        path.write_bytes(content)
        line = load_error(path)
        for part in parts:
            assert part in line, (case, line)
        path.unlink()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["txt.gz", "jsonl.gz", "csv.gz", "parquet.gz", "parquet"])
def test_cut_short(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{ending}"
    rows = [f"text number {number * 7919 % 10007}" for number in range(5000)]
    if ending.startswith("parquet"):
        pq.write_table(pa.table({"text": rows}), tmp_path / "whole")
        data = (tmp_path / "whole").read_bytes()
    elif ending.startswith("jsonl"):
        data = "".join(f'{{"text": "{row}"}}\n' for row in rows).encode()
    else:
        data = "\n".join(["text", *rows]).encode()
    if ending.endswith("gz"):
        data = gzip.compress(data)
    path.write_bytes(data[: len(data) // 2])
    line = load_error(path)
    assert path.name in line
    assert ("cut short" if ending.endswith("gz") else "not a complete parquet file") in line
    path.write_bytes(data[:-20] + bytes(20))
    assert path.name in load_error(path)


def test_missing_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sentences.txt").write_text("a text\n")
    assert "did you mean sentences.txt?" in load_error(tmp_path / "sentence.txt")
    assert f"folder {tmp_path}/nowhere does not exist" in load_error(tmp_path / "nowhere" / "a.txt")
    monkeypatch.chdir(tmp_path)
    assert "sentences.txt" in load_error("sentences")
    assert "no such file" in load_error("sentences.text")
    assert "the name is empty" in load_error(" ")
    assert "data.path" in load_error()
    assert "File name too long" in load_error("x" * 5000 + "/a.txt")
    (tmp_path / "folder").mkdir()
    assert "is a folder, not a file" in load_error("folder")
    (tmp_path / "folder/a.csv.gz").write_bytes(b"")
    assert "name a file in it: a.csv.gz" in load_error("folder")
