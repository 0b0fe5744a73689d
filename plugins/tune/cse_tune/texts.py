"""Documents that train, others that race, and others that judge; questions as test collections."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cse import questions
from cse_cli.api import Installed
from cse_core.errors import CseError
from cse_core.files import atomic_file
from cse_core.protocols import Corpus
from cse_core.texts import DataOptions

HELD_OUT = 1_000
"""Documents that train nothing, at most; of fewer than five times as many, a fifth."""
RACE, JUDGES = 300, 700
"""Titles that race and that judge, at most."""
LEAST = 10
"""Titles that each need."""
RACE_POOL, POOL = 500, 2_000
"""Texts among which each look for their documents, about."""
COLUMNS = ("text", "title", "document")
"""Columns that are written for training: no others say what a text is about."""


class Split(NamedTuple):
    """The texts of a race.

    Attributes:
        trained: Rows that train.
        race: Titles that decide who goes on, and the texts that they look among.
        judge: Those that are looked at once, at the end.
        messages: What was noticed in reading, a line each.
    """

    trained: Corpus
    race: questions.Questions
    judge: questions.Questions
    messages: tuple[str, ...]

    @property
    def ordered(self) -> bool:
        """Whether the words of the texts are in an order that recurs."""
        return questions.in_order(self.judge.texts[:1_000])


def split_texts(files: Sequence[str], plugins: Installed) -> Split:
    """Hold documents out of training; a third of those with titles of their own race.

    Raises:
        CseError: If the texts cannot be read, or too few have titles.
    """
    options = DataOptions(path=tuple(files), held_out=HELD_OUT)
    corpus = plugins.read(options).corpus()
    held_out = corpus.held_out
    assert held_out is not None
    parts = questions.some_of_each(questions.parts_of(held_out))
    titled = questions.by_titles(parts, {part.document for part in parts}, corpus)
    first = {part.document: part.body for part in reversed(parts)}
    order = sorted((number for number, _ in titled.asked), key=lambda n: questions.draw(first[n]))
    racing, judging = {*order[::3][:RACE]}, {*order} - {*order[::3]}
    judging = {*[number for number in order if number in judging][:JUDGES]}
    if min(len(racing), len(judging)) < LEAST:
        what = f"{len(order)} of {len(first):,} documents held out have a title of their own, and "
        hint = "cse train --recipe adapt trains without judging; a table has a column title"
        raise CseError(f"{what}{3 * LEAST} are needed", where="FILE", value=files[0], hint=hint)
    of_race = [part for part in parts if part.document in racing]
    race = questions.by_titles(of_race, racing, corpus, max(200, RACE_POOL - len(of_race)))
    judge = questions.by_titles(parts, judging, corpus, max(200, POOL - len(parts)))
    return Split(corpus, race, judge, corpus.report.messages)


def write_rows(corpus: Corpus, file: Path) -> None:
    """Write rows as parquet, whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [*corpus.column(name)] for name in COLUMNS if name in corpus.names}
    with atomic_file(file) as beside:
        pq.write_table(pa.table(columns), beside)


def write_collection(asked: questions.Questions, folder: Path) -> None:
    """Write questions as a test collection in BEIR's layout."""
    documents: dict[int, list[int]] = {}
    for text, document in enumerate(asked.owners):
        documents.setdefault(document, []).append(text)
    judgements = [
        f"{number}\t{text}\t1"
        for number, (document, _) in enumerate(asked.asked)
        for text in documents[document]
    ]
    texts = [text for _, text in asked.asked]
    for name, lines in (
        ("corpus.jsonl", _lines(asked.texts)),
        ("queries.jsonl", _lines(texts)),
        ("qrels/test.tsv", ["query-id\tcorpus-id\tscore", *judgements]),
    ):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file) as beside:
            beside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _lines(texts: Sequence[str]) -> list[str]:
    rows = ({"_id": str(number), "text": text} for number, text in enumerate(texts))
    return [json.dumps(row, ensure_ascii=False) for row in rows]
