from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cse_evaluation.labelled import read_labelled
from cse_evaluation.tasks import TRANSFER_TASKS, find_classification, find_transfer, read_tasks

from cse_core.errors import CseError
from tests.shared import shared_path

Write = Callable[[str, str | bytes], Path]
ROWS = "label\ttext\n" + "".join(f"{label}\t{label} {n}\n" for n in range(4) for label in "ab")
PAIRS = "label,sentence1,sentence2\n" + "".join(f"{n % 2},one {n},two {n}\n" for n in range(8))


def test_columns_in_any_order_under_their_usual_names(write: Write) -> None:
    read = read_labelled(write("x.csv", 'Sentence,id,CLASS\n"a, b",1, yes \nc,2,no\n'))
    assert (read.name, read.labels, read.texts) == ("x", ("yes", "no"), ("a, b", "c"))
    assert read.seconds is None


def test_labels_of_jsonl_are_text_whatever_they_were(write: Write) -> None:
    lines = [{"text": "t", "label": label} for label in (1, 1.0, "1", True, -3)]
    read = read_labelled(write("x.jsonl", "\n".join(map(json.dumps, lines))))
    assert read.labels == ("1", "1", "1", "True", "-3")


def test_pairs(write: Write) -> None:
    read = read_labelled(write("x.csv", PAIRS))
    assert read.texts[:2] == ("one 0", "one 1")
    assert read.seconds is not None and read.seconds[:2] == ("two 0", "two 1")


def test_articles_are_one_text_each(write: Write) -> None:
    article = {"id": 7, "label": "sport", "title": "no", "paras": [["One.", "Two."], ["Three."]]}
    read = read_labelled(write("x.jsonl", json.dumps(article)))
    assert (read.labels, read.texts) == (("sport",), ("One. Two. Three.",))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.tsv", "label\ttext\n", r"x\.tsv: no rows below the header"),
        ("x.tsv", "score\ttext\n1\ta\n", "no column label; the columns are 'score', 'text'"),
        ("x.tsv", "label\tbody\n1\ta\n", "no column text"),
        ("x.tsv", "label\ttext\na\tone\nb\n", r"x\.tsv, line 3: 1 fields"),
        ("x.tsv", "label\ttext\n \tone\n", r"x\.tsv, line 2: no label"),
        ("x.tsv", "label\ttext\na\t \n", r"x\.tsv, line 2: no text"),
        ("x.jsonl", '{"label": 0.5, "text": "a"}', r"no label .*\(got 0\.5\)"),
        ("x.jsonl", '{"label": [1], "text": "a"}', r"no label .*\(got \[1\]\)"),
        ("x.jsonl", '{"label": 1, "text": ["a"]}', "no text"),
        ("x.jsonl", '{"label": 1, "paras": ["a"]}', "paras: must be a list of sentences"),
        ("x.jsonl", '{"label": 1, "paras": []}', "no text"),
        ("x.jsonl", '{"label": 1, "text": "\\ud800"}', "half a character"),
        ("x.txt", "a\n", "not read from this kind of file"),
    ],
)
def test_what_is_refused(write: Write, name: str, content: str, said: str) -> None:
    with pytest.raises(CseError, match=said):
        read_labelled(write(name, content))


def test_transfer_tasks_with_and_without_a_split(write: Write, tmp_path: Path) -> None:
    for name in ("mr", "sst2.train", "sst2.dev", "sst2.test", "trec.train", "trec.dev"):
        write(f"transfer/{name}.tsv", ROWS)
    for name in ("mrpc.train", "mrpc.dev", "mrpc.test"):
        write(f"transfer/{name}.csv", PAIRS)
    found = find_transfer(tmp_path)
    assert found.folder == tmp_path / "transfer"
    assert found.missing == ("cr", "subj", "mpqa", "trec (no trec.test)")
    mr, sst2, mrpc = found.tasks
    assert (mr.name, mr.dev, mr.test, len(mr.train)) == ("mr", None, None, 8)
    assert [part.name for part in sst2.parts] == ["sst2.train", "sst2.dev", "sst2.test"]
    # SentEval has no dev part of MRPC: its training part holds these rows.
    assert [len(part) for part in mrpc.parts] == [16, 8]
    assert (mrpc.pairs, mr.pairs) == (True, False)
    assert mr.fingerprint != sst2.fingerprint


def test_all_seven_tasks_put_beside_are_taken(write: Write, tmp_path: Path) -> None:
    for name in TRANSFER_TASKS:
        write(f"{name}.tsv", ROWS)
    found = find_transfer(tmp_path)
    assert tuple(task.name for task in found.tasks) == TRANSFER_TASKS
    assert found.missing == ()


def test_no_task_at_all(tmp_path: Path) -> None:
    with pytest.raises(CseError, match=r"no transfer task .*sst2\.train.*--data-dir DIR"):
        find_transfer(tmp_path)
    with pytest.raises(CseError, match=r"no file of labelled texts .*--labelled FILE"):
        find_classification(tmp_path)
    with pytest.raises(CseError, match="no such directory"):
        find_classification(tmp_path / "nowhere")


def test_every_task_of_a_folder(write: Write, tmp_path: Path) -> None:
    write("yelp.train.tsv", ROWS)
    write("yelp.validation.csv", ROWS.replace("\t", ","))
    write("yelp.test.tsv", ROWS)
    write("news.tsv", ROWS)
    write("news.csv", "broken, since the tsv file is taken")
    write("README.md", "no table")
    news, yelp = find_classification(tmp_path).tasks
    assert (news.name, news.test) == ("news", None)
    assert [part.name for part in yelp.parts] == ["yelp.train", "yelp.validation", "yelp.test"]
    write("classify/own.tsv", ROWS)
    found = find_classification(tmp_path)
    assert [task.name for task in found.tasks] == ["own"]
    assert found.folder == tmp_path / "classify"


def test_tables_of_another_kind_are_left_out(write: Write, tmp_path: Path) -> None:
    """They are reported wherever they stand; of one name the table that fits is taken."""
    articles = [{"label": label, "title": "t", "paras": [[label]]} for label in "ab" * 3]
    write("docs/bbc.jsonl", "\n".join(map(json.dumps, articles)))
    write("docs/wiki.jsonl", json.dumps({"title": "t", "sections": [["", ["a"]]]}))
    write("news.tsv", "score\ttext\n1\ta\n")
    write("news.csv", ROWS.replace("\t", ","))
    write("pairs.csv", PAIRS)
    found = find_classification(tmp_path)
    assert [task.name for task in found.tasks] == ["bbc", "news", "pairs"]
    assert found.left_out == ("wiki.jsonl", "news.tsv")
    assert found.folder == tmp_path
    assert [t.name for t in find_classification(tmp_path / "docs").tasks] == ["bbc"]
    write("yelp.test.tsv", ROWS)
    write("yelp.train.tsv", "text\nno label\n")
    with pytest.raises(CseError, match=r"yelp\.train\.tsv: no column label"):
        find_classification(tmp_path)
    write("docs/damaged.parquet", "no parquet")
    with pytest.raises(CseError, match=r"damaged\.parquet"):
        find_classification(tmp_path)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"q.train.tsv": ROWS}, r"q\.test is missing"),
        ({"q.test.tsv": ROWS}, r"q\.train is missing"),
        ({"q.tsv": ROWS, "q.train.tsv": ROWS, "q.test.tsv": ROWS}, r"q\.tsv"),
        ({"q.tsv": ROWS, "b/q.csv": ROWS}, r"same name q as .*q\.tsv"),
        ({"q.train.tsv": ROWS, "q.test.csv": PAIRS}, "some parts have one text per row"),
        ({"q.train.tsv": ROWS, "q.test.tsv": ROWS + "c\tx\n"}, r"q\.test.*'c' stands in no row"),
        ({"q.tsv": "label\ttext\na\tx\na\ty\n"}, "every row has the label 'a'"),
        ({"q.tsv": "label\ttext\n0.1\tx\n0.2\ty\n"}, "2 labels in 2 rows"),
    ],
)
def test_files_that_make_no_task(write: Write, files: dict[str, str], said: str) -> None:
    with pytest.raises(CseError, match=said):
        read_tasks([write(name, content) for name, content in files.items()])


def test_the_shared_tasks() -> None:
    found = find_transfer(shared_path("data"))
    sizes = {task.name: [len(part) for part in task.parts] for task in found.tasks}
    known = {"mr": [10662], "sst2": [6920, 872, 1821], "trec": [5452, 500], "mrpc": [4076, 1725]}
    assert known.items() <= sizes.items()
    (news,) = read_tasks([shared_path("data/docs/bbc_news.jsonl.gz")])
    assert len(news.train) == 2103
    assert [task.fingerprint for task in find_classification(shared_path("data")).tasks] == [
        news.fingerprint
    ]
    assert len(set(news.labels)) == 5
