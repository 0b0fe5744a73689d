"""Tables of 25 shapes with 12 contents of the second column: what is given is used, named or
refused; no run trains on one column in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import cse
from tests.fixtures.tiny import sentences

ROWS = 48
PAIRS = {
    "text,positive": "csv", "anchor,positive": "jsonl", "anchor,positives": "jsonl",
    "query,answer": "csv", "question,answer": "tsv", "query,pos": "jsonl", "query,passage": "tsv",
    "question,context": "jsonl", "query,document": "jsonl", "query,response": "json",
    "instruction,response": "jsonl", "prompt,completion": "json", "sentence1,sentence2": "csv",
    "premise,hypothesis": "tsv", "question1,question2": "csv", "sent0,sent1": "csv",
    "text1,text2": "parquet", "sentence_a,sentence_b": "csv", "query,pos,neg": "jsonl",
    "sentence1,sentence2,score": "csv", "premise,hypothesis,label": "tsv",
}  # fmt: skip
"""Second columns whose name says that they are the first one's positive."""
OTHERS = {"text,summary": "csv", "title,text": "csv", "en,de": "tsv", "content,query": "jsonl"}
TEXTS = sentences(3 * ROWS)
CONTENTS: dict[str, Callable[[int], Any]] = {
    "texts": lambda row: TEXTS[ROWS + row],
    "recurring": lambda row: TEXTS[ROWS + row % 3],
    "words": lambda row: ("Rome", "Paris", "Oslo")[row % 3],
    "numbers": lambda row: str(row),
    "ids": lambda row: f"d{row}",
    "long": lambda row: " ".join(TEXTS[row : row + 30]),
    "lists": lambda row: [TEXTS[ROWS + row], TEXTS[row]],
    "lists as texts": lambda row: str([TEXTS[ROWS + row], "b"]),
    "bytes as texts": lambda row: str(TEXTS[ROWS + row].encode()),
    "blank": lambda row: "",
    "half blank": lambda row: "" if row % 2 else TEXTS[ROWS + row],
    "the first again": lambda row: TEXTS[row],
}
THIRD = {"score": lambda row: str(row % 5), "label": lambda row: ("entailment", "neutral")[row % 2],
         "neg": lambda row: TEXTS[2 * ROWS + row]}  # fmt: skip


def write(path: Path, names: list[str], second: Callable[[int], Any]) -> None:
    cells = [(TEXTS[row], second(row), *(THIRD[n](row) for n in names[2:])) for row in range(ROWS)]
    rows = [dict(zip(names, line, strict=True)) for line in cells]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        mark = {".csv": ",", ".tsv": "\t"}[path.suffix]
        lines = [names, *([str(row[name]) for name in names] for row in rows)]
        quoted = [[f'"{cell}"' if mark == "," else cell for cell in line] for line in lines]
        path.write_text("".join(mark.join(line) + "\n" for line in quoted))


def outcome(path: Path, names: list[str]) -> str:
    """Plan a run without a recipe and tell what becomes of the second column."""
    second = names[1]
    try:
        plan = cse.plan(data=path, dev="none", options={"train.batch_size": 8})
    except cse.CseError as error:
        said = str(error)
        assert path.name in said or "data." in said, said
        return "refused"
    made = plan.composition
    read = {view.column for view in made.views}
    said = "\n".join(plan.warnings)
    # What a source's column is called here is said, where that is another name.
    called = {"positive" if f"positive = {second}" in said else second}
    called |= {"text"} if f"text = {second}" in said else set()
    if called & read:
        return "used"
    (data,) = (line for line in plan.run.lines() if line.startswith("data: "))
    unread = data.partition("(not read: ")[2].rstrip(")").split(", ")
    assert second in said or called & {*unread}, (data, said)
    return "named"


def tables() -> list[tuple[str, str]]:
    return [*product({**PAIRS, **OTHERS}, CONTENTS)]


def check(folder: Path, cases: list[tuple[str, str]]) -> None:
    wrong = []
    for number, (shape, content) in enumerate(cases):
        names = shape.split(",")
        path = folder / f"{number}.{ {**PAIRS, **OTHERS}[shape] }"
        write(path, names, CONTENTS[content])
        try:
            came = outcome(path, names)
        except AssertionError as error:
            wrong.append((shape, content, str(error)))
            continue
        if shape in PAIRS and content in ("texts", "recurring", "words", "long"):
            graded = names[2:] in (["score"], ["label"])
            an_id = (names[1], content) == ("document", "words")
            if came != ("named" if graded or an_id else "used"):
                wrong.append((shape, content, came))
    assert not wrong, wrong


def test_some_tables(tmp_path: Path) -> None:
    assert len(tables()) == 300
    check(tmp_path, tables()[::11])


@pytest.mark.slow
def test_every_table(tmp_path: Path) -> None:
    check(tmp_path, tables())
