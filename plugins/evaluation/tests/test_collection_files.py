"""Forms in which collections are handed on: parts, the hub's folders, XML topics, padded ids."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from cse_evaluation.collection_files import DEV_SPLITS, files_in, find_collections, is_collection
from cse_evaluation.collections import read_collection

from cse_core.errors import CseError

DOCUMENTS = [{"_id": f"d{n}", "title": f"Title {n}", "text": f"text {n}"} for n in range(7)]
QUERIES = [{"_id": f"q{n}", "title": "", "text": f"query {n}"} for n in range(4)]
JUDGED = [{"query-id": f"q{n}", "corpus-id": f"d{n}", "score": 1} for n in range(3)]


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".tsv":
        lines = [list(rows[0]), *(map(str, row.values()) for row in rows)]
        path.write_text("".join("\t".join(line) + "\n" for line in lines))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def judged(folder: Path, lines: str) -> Path:
    write(folder / "corpus.jsonl", [{"_id": n, "text": f"text {n}"} for n in (1, "2", "0003")])
    write(folder / "queries.jsonl", [{"_id": str(n), "text": f"query {n}"} for n in (1, 2, 3)])
    (folder / "qrels.txt").write_text(lines)
    return folder


@pytest.mark.parametrize("end", ["parquet", "jsonl"])
@pytest.mark.parametrize("qrels", ["qrels", "data"])
def test_the_hubs_folders(tmp_path: Path, end: str, qrels: str) -> None:
    folder = tmp_path / "scifact"
    write(folder / f"corpus/corpus-00000-of-00002.{end}", DOCUMENTS[:4])
    write(folder / f"corpus/corpus-00001-of-00002.{end}", DOCUMENTS[4:])
    write(folder / f"queries/queries-00000-of-00001.{end}", QUERIES)
    test = write(folder / f"{qrels}/test-00000-of-00002.{end}", JUDGED[:2])
    write(folder / f"{qrels}/test-00001-of-00002.{end}", JUDGED[2:])
    dev = write(folder / f"{qrels}/validation-00000-of-00001.{end}", JUDGED[:1])
    (folder / "README.md").write_text("about")
    assert find_collections(tmp_path) == {"scifact": folder} and len(files_in(folder)) == 6
    found = read_collection(folder)
    assert (found.name, len(found.documents), len(found.queries)) == ("scifact.test", 7, 3)
    assert found.documents["d6"] == "Title 6 text 6" and found.judgements["q2"] == {"d2": 1}
    assert is_collection(test) and read_collection(test).fingerprint == found.fingerprint
    assert len(read_collection(dev).queries) == 1
    assert read_collection(folder, DEV_SPLITS).name == "scifact.validation"


def test_parts_beside_each_other(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / f"corpus-0000{number}.jsonl", DOCUMENTS[number::3])
    write(tmp_path / "queries.jsonl", QUERIES)
    write(tmp_path / "qrels/test.tsv", JUDGED)
    assert len(read_collection(tmp_path).documents) == 7
    (tmp_path / "corpus-00001.jsonl").unlink()
    with pytest.raises(CseError, match=r"part 1 of corpus.jsonl is not there.*fetch all"):
        read_collection(tmp_path)


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_missing_part_is_named(tmp_path: Path, missing: int) -> None:
    write(tmp_path / "corpus/0000.parquet", DOCUMENTS)
    write(tmp_path / "queries/queries-00000-of-00001.parquet", QUERIES)
    paths = [write(tmp_path / f"qrels/test-0000{n}-of-00003.parquet", JUDGED) for n in range(3)]
    assert len(read_collection(tmp_path).documents) == 7
    paths[missing].unlink()
    with pytest.raises(CseError, match=f"part {missing} of test.parquet is not there"):
        read_collection(tmp_path)


def test_two_formats_of_one_table_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "corpus/corpus-00000-of-00001.parquet", DOCUMENTS)
    write(tmp_path / "corpus/corpus.jsonl", DOCUMENTS)
    write(tmp_path / "queries.jsonl", QUERIES)
    write(tmp_path / "qrels/test.tsv", JUDGED)
    with pytest.raises(CseError, match=r"its files are .jsonl and .parquet.*keep those of one"):
        read_collection(tmp_path)


def test_a_folder_that_is_called_data(tmp_path: Path) -> None:
    folder = judged(tmp_path / "data", "1 0 1 1\n")
    assert is_collection(folder / "qrels.txt")
    assert read_collection(folder / "qrels.txt").name == "data.test"


def test_leading_zeros_are_read_or_refused(tmp_path: Path) -> None:
    found = read_collection(judged(tmp_path / "read", "01 0 0001 1\n2 0 3 1\n3 0 2 2\n"))
    assert found.judgements == {"1": {"1": 1}, "2": {"0003": 1}, "3": {"2": 2}}
    assert found.counts == {"ids of judgements read without regard to leading zeros": 3}
    for name, lines in (("twice", "01 0 1 1\n1 0 2 1\n"), ("both", "1 0 02 1\n1 0 002 1\n")):
        with pytest.raises(CseError, match="ids that differ by leading zeros only"):
            read_collection(judged(tmp_path / name, lines))
    folder = judged(tmp_path / "corpus", "1 0 001 1\n")
    write(folder / "corpus.jsonl", [{"_id": n, "text": n} for n in ("1", "01")])
    with pytest.raises(CseError, match=r"got '001, 1, 01'"):
        read_collection(folder)


TOPICS = """<?xml version="1.0" encoding="UTF-8"?>
<topics task="COVIDSearch 2020" batch="5">
  <topic number="1">
    <query>coronavirus origin</query>
    <question>what is the origin of
      COVID-19 &amp; its kin</question>
    <narrative>seeking a range of information</narrative>
  </topic>
  <topic number="2"><query>masks</query></topic>
</topics>
"""


def test_topics_in_xml(tmp_path: Path) -> None:
    folder = judged(tmp_path, "1 0.5 1 2\n2 1 2 1\n")
    (folder / "queries.jsonl").unlink()
    topics = folder / "topics-rnd5.xml"
    topics.write_text(TOPICS)
    found = read_collection(folder)
    assert found.queries == {"1": "what is the origin of COVID-19 & its kin", "2": "masks"}
    topics.write_text("<xml>\n<top>\n<num> 1</num><title>\nof wings .\n</title></top></xml>")
    assert read_collection(folder).queries == {"1": "of wings ."}
    for text, said in (
        (TOPICS[:300], "not XML: no element|not XML: unclosed token|not XML: mismatched"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]>" + TOPICS.partition("\n")[2], "declares a document type"),
        (TOPICS.replace("query>", "narrative>"), "no text of the query"),
        (TOPICS.replace(' number="2"', ""), "no id"),
        ("<topics><theme number='1'>x</theme></topics>", "no query is in it"),
    ):  # fmt: skip
        topics.write_text(text)
        with pytest.raises(CseError, match=said) as refused:
            read_collection(folder)
        assert "topics-rnd5.xml" in str(refused.value)


def test_a_query_with_the_id_of_a_document_among_queries_that_are_documents(tmp_path: Path) -> None:
    """One text of ArguAna's differs: its id still says that it is a document itself."""
    documents = [{"_id": f"a-{n}", "text": f"argument {n}"} for n in range(4)]
    write(tmp_path / "corpus.jsonl", documents)
    changed = [*documents[:3], {"_id": "a-3", "text": "another reading of argument 3"}]
    write(tmp_path / "queries.jsonl", changed)
    rows = [{"query-id": f"a-{n}", "corpus-id": f"a-{(n + 1) % 4}", "score": 1} for n in range(4)]
    write(tmp_path / "qrels/test.tsv", rows)
    assert read_collection(tmp_path).own_documents == {f"a-{n}" for n in range(4)}
    write(tmp_path / "queries.jsonl", [{"_id": f"a-{n}", "text": "else"} for n in range(4)])
    assert not read_collection(tmp_path).own_documents
