"""Labelled texts: reading them, the tasks that files make, and where suites look for them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cse_evaluation.labelled import TRANSFER_TASKS, Task, read_labelled, read_tasks
from cse_evaluation.suites import Classify, Transfer

from cse_core.errors import CseError
from tests.shared import shared_path

Write = Callable[[str, str | bytes], Path]
ROWS = "label\ttext\n" + "".join(f"{label}\t{label} {n}\n" for n in range(4) for label in "ab")
PAIRS = "label,sentence1,sentence2\n" + "".join(f"{n % 2},one {n},two {n}\n" for n in range(8))


def found(suite: Classify | Transfer, folder: Path) -> list[Task]:
    return suite.read(suite.locate(folder).there)


def test_columns_labels_pairs_and_articles(write: Write) -> None:
    read = read_labelled(write("x.csv", 'Sentence,id,CLASS\n"a, b",1, yes \nc,2,no\n'))
    assert (read.name, read.labels, read.texts) == ("x", ("yes", "no"), ("a, b", "c"))
    assert read.seconds is None
    lines = [{"text": "t", "label": label} for label in (1, 1.0, "1", True, -3)]
    read = read_labelled(write("x.jsonl", "\n".join(map(json.dumps, lines))))
    assert read.labels == ("1", "1", "1", "True", "-3")
    read = read_labelled(write("x.csv", PAIRS))
    assert read.texts[:2] == ("one 0", "one 1")
    assert read.seconds is not None and read.seconds[:2] == ("two 0", "two 1")
    article = {"id": 7, "label": "sport", "title": "no", "paras": [["One.", "Two."], ["Three."]]}
    for more in ({}, {"text": "not this"}):
        read = read_labelled(write("x.jsonl", json.dumps(article | more)))
        assert (read.labels, read.texts) == (("sport",), ("One. Two. Three.",))


def test_what_is_refused(write: Write) -> None:
    for name, content, said in (
        ("x.tsv", "label\ttext\n", r"x\.tsv: the file contains only blank lines or a header"),
        ("x.tsv", "score\ttext\n1\ta\n", "no column label; the columns are 'score', 'text'"),
        ("x.tsv", "label\tbody\n1\ta\n", "no column text"),
        ("x.tsv", "label\ttext\na\tone\nb\n", r"x\.tsv, line 3: 1 fields"),
        ("x.tsv", "label\ttext\n \tone\n", r"x\.tsv, line 2: no label"),
        ("x.tsv", "label\ttext\na\t \n", r"x\.tsv, line 2: no text"),
        ("x.jsonl", '{"label": 0.5, "text": "a"}', r"no label .*\(got 0\.5\)"),
        ("x.jsonl", '{"label": [1], "text": "a"}', r"no label .*\(got \[1\]\)"),
        ("x.jsonl", '{"label": 1, "text": ["a"]}', "'text' is not a text"),
        ("x.jsonl", '{"label": 1, "paras": ["a"]}', "paras: not lists of sentences"),
        ("x.jsonl", '{"label": 1, "paras": []}', "no text"),
        ("x.jsonl", '{"label": 1, "text": "\\ud800"}', "half a character"),
        ("x.txt", "a\n", "not read from this kind of file"),
    ):
        with pytest.raises(CseError, match=said):
            read_labelled(write(name, content))


def test_transfer_tasks_with_and_without_a_split(write: Write, tmp_path: Path) -> None:
    for name in ("mr", "sst2.train", "sst2.dev", "sst2.test", "trec.train", "trec.dev"):
        write(f"transfer/{name}.tsv", ROWS)
    for name in ("mrpc.train", "mrpc.dev", "mrpc.test"):
        write(f"transfer/{name}.csv", PAIRS)
    missing = Transfer().locate(tmp_path).missing
    assert missing == ("cr", "subj", "mpqa", "trec (no trec.test)")
    mr, sst2, mrpc = found(Transfer(), tmp_path)
    assert (mr.name, mr.dev, mr.test, len(mr.train)) == ("mr", None, None, 8)
    assert [part.name for part in sst2.parts] == ["sst2.train", "sst2.dev", "sst2.test"]
    # SentEval has no dev part of MRPC: its training part holds these rows.
    assert [len(part) for part in mrpc.parts] == [16, 8]
    assert (mrpc.pairs, mr.pairs) == (True, False)
    assert mr.fingerprint != sst2.fingerprint
    assert (mr.note, sst2.note) == ("", "sst2: 8 of 8 test texts also train the classifier")
    for name in TRANSFER_TASKS:
        write(f"{name}.tsv", ROWS)
    assert tuple(task.name for task in found(Transfer(), tmp_path)) == TRANSFER_TASKS
    assert Transfer().locate(tmp_path).missing == ()


def test_every_task_of_a_folder(write: Write, tmp_path: Path) -> None:
    """Tables of another kind are left out; of one name the table that fits is taken."""
    write("yelp.train.tsv", ROWS)
    write("yelp.validation.csv", ROWS.replace("\t", ","))
    write("yelp.test.tsv", ROWS)
    write("topics.tsv", ROWS)
    write("topics.csv", "broken, since the tsv file is taken")
    write("README.md", "no table")
    topics, yelp = found(Classify(), tmp_path)
    assert (topics.name, topics.test) == ("topics", None)
    assert [part.name for part in yelp.parts] == ["yelp.train", "yelp.validation", "yelp.test"]
    articles = [{"label": label, "title": "t", "paras": [[label]]} for label in "ab" * 3]
    write("docs/bbc.jsonl", "\n".join(map(json.dumps, articles)))
    write("docs/wiki.jsonl", json.dumps({"title": "t", "sections": [["", ["a"]]]}))
    write("news.tsv", "score\ttext\n1\ta\n")
    write("news.csv", ROWS.replace("\t", ","))
    names = [task.name for task in found(Classify(), tmp_path)]
    assert names == ["bbc", "news", "topics", "yelp"]
    write("yelp.train.tsv", "text\nno label\n")
    with pytest.raises(CseError, match=r"yelp\.train is missing"):
        found(Classify(), tmp_path)
    write("docs/damaged.parquet", "no parquet")
    (error,) = Classify().locate(tmp_path).broken
    assert "damaged.parquet" in str(error)
    write("classify/own.tsv", ROWS)
    assert [task.name for task in found(Classify(), tmp_path)] == ["own"]
    for suite in (Classify(), Transfer()):
        assert not suite.locate(tmp_path / "nowhere").there


def test_files_that_make_no_task(write: Write, tmp_path: Path) -> None:
    mistakes: list[tuple[dict[str, str], str]] = [
        ({"q.train.tsv": ROWS}, r"q\.test is missing"),
        ({"q.test.tsv": ROWS}, r"q\.train is missing"),
        ({"q.tsv": ROWS, "q.train.tsv": ROWS, "q.test.tsv": ROWS}, r"q\.tsv"),
        ({"q.tsv": ROWS, "b/q.csv": ROWS}, r"same name q as .*q\.tsv"),
        ({"q.train.tsv": ROWS, "q.test.csv": PAIRS}, "some parts have one text per row"),
        ({"q.train.tsv": ROWS, "q.test.tsv": ROWS + "c\tx\n"}, r"q\.test.*'c' stands in no row"),
        ({"q.tsv": "label\ttext\na\tx\na\ty\n"}, "every row has the label 'a'"),
        ({"q.tsv": "label\ttext\n0.1\tx\n0.2\ty\n"}, "2 labels in 2 rows"),
    ]
    for files, said in mistakes:
        with pytest.raises(CseError, match=said):
            read_tasks([write(name, content) for name, content in files.items()])


def test_the_shared_tasks() -> None:
    tasks = found(Transfer(), shared_path("data"))
    sizes = {task.name: [len(part) for part in task.parts] for task in tasks}
    known = {"mr": [10662], "sst2": [6920, 872, 1821], "trec": [5452, 500], "mrpc": [4076, 1725]}
    assert known.items() <= sizes.items()
    (news,) = found(Classify(), shared_path("data"))
    assert (news.name, len(news.train), len(set(news.labels))) == ("bbc_news", 2103, 5)
