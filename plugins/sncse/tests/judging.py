"""Sentences of real data whose negations were judged by hand, and the script that judges them.

``judged.tsv`` names a sentence by its file and row, and holds hashes of the sentence and of the
negation that was judged, no text. Draw, read and judge with

    python -m plugins.sncse.tests.judging draw SEED 75
    python -m plugins.sncse.tests.judging show
    python -m plugins.sncse.tests.judging record NUMBER right|wrong "why"

``show`` prints the sentences without a verdict and those whose negation is not the judged one.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from cse_sncse.rules import negate

from tests.shared import shared_path

JUDGED = Path(__file__).with_name("judged.tsv")
LEFT_OUT = "left out"
COLUMNS = ("kind", "file", "row", "field", "sentence", "negation", "verdict", "reason")
STS = ("sts/stsb.train.tsv.gz", "sts/stsb.dev.tsv.gz", "sts/stsb.test.tsv.gz")
KINDS = {
    "headlines": {"headlines"},
    "captions": {"images", "MSRvid"},
    "forums": {"deft-forum", "answers-forums", "answer-answer", "question-question"},
}
"""Subsets of the STS files by kind of text."""
WIKIPEDIA = "sentences/wiki_en_300k.txt.gz"


@dataclass(frozen=True)
class Judged:
    """A row of the file.

    Attributes:
        kind: headlines, captions, forums or wikipedia.
        file: Path below the data folder.
        row: Line of it, counted from 0, a header too.
        field: Which field of the line, counted from 0.
        sentence: Hash of the sentence.
        negation: Hash of its negation, or ``left out``.
        verdict: right, wrong or nothing yet; ``-`` where it was left out.
        reason: Why it is wrong, in a few words.
    """

    kind: str
    file: str
    row: int
    field: int
    sentence: str
    negation: str = ""
    verdict: str = ""
    reason: str = ""


def hashed(text: str | None) -> str:
    """Return the beginning of a text's sha256, or that it was left out."""
    return LEFT_OUT if text is None else hashlib.sha256(text.encode()).hexdigest()[:20]


@lru_cache
def lines(file: str) -> Sequence[str]:
    """Return the lines of a file of the data folder; skips the test where it is not there."""
    with gzip.open(shared_path(f"data/{file}"), "rt", encoding="utf-8") as stream:
        return stream.read().splitlines()


def text_of(judged: Judged) -> str:
    """Return the sentence of a row."""
    return lines(judged.file)[judged.row].split("\t")[judged.field]


def read() -> list[Judged]:
    """Return the rows of the file."""
    with JUDGED.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    return [
        Judged(
            row["kind"],
            row["file"],
            int(row["row"]),
            int(row["field"]),
            *(row[column] for column in COLUMNS[4:]),
        )
        for row in rows
    ]


def write(rows: Iterable[Judged]) -> None:
    """Write the rows of the file."""
    with JUDGED.open("w", encoding="utf-8", newline="") as stream:
        out = csv.writer(stream, delimiter="\t", lineterminator="\n")
        out.writerow(COLUMNS)
        out.writerows([getattr(row, column) for column in COLUMNS] for row in rows)


def draw(seed: str, count: int) -> list[Judged]:
    """Return ``count`` different sentences of each kind, without verdicts."""
    drawn = []
    for kind in (*KINDS, "wikipedia"):
        distinct = {text: place for place, text in reversed(list(_pool(kind)))}
        generator = random.Random(f"{seed} {kind}")
        for text in generator.sample(sorted(distinct), count):
            drawn.append(Judged(kind, *distinct[text], hashed(text)))
    return drawn


def _pool(kind: str) -> Iterator[tuple[tuple[str, int, int], str]]:
    if kind == "wikipedia":
        yield from (((WIKIPEDIA, row, 0), text) for row, text in enumerate(lines(WIKIPEDIA)))
        return
    for file in (*STS, "sts/sts16.test.tsv.gz"):
        for row, line in enumerate(lines(file)):
            fields = line.split("\t")
            if row and set(fields[0].split("/")) & KINDS[kind]:
                yield from (((file, row, field), fields[field]) for field in (2, 3))


def changed(rows: Sequence[Judged]) -> list[int]:
    """Return the places of rows without a verdict, or whose negation is not the judged one."""
    return [
        place
        for place, row in enumerate(rows)
        if not row.verdict or hashed(negate(text_of(row))) != row.negation
    ]


def main(command: str, *arguments: str) -> None:
    """Draw, show or record."""
    if command == "draw":
        write(draw(arguments[0], int(arguments[1])))
        rows = read()
        for place, row in enumerate(rows):
            if negate(text_of(row)) is None:
                rows[place] = replace(row, negation=LEFT_OUT, verdict="-")
        write(rows)
    elif command == "show":
        rows = read()
        for place in changed(rows):
            text = text_of(rows[place])
            print(f"{place} {rows[place].kind}\n    {text}\n    {negate(text)}")
    else:
        rows, place = read(), int(arguments[0])
        negated = negate(text_of(rows[place]))
        verdict, reason = ("-", "") if negated is None else (arguments[1], " ".join(arguments[2:]))
        rows[place] = replace(rows[place], negation=hashed(negated), verdict=verdict, reason=reason)
        write(rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
