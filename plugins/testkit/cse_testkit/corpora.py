"""A made-up corpus with the columns that parts may require."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from pathlib import Path

from cse_core.data import Corpus

NAMES = ("anna", "ben", "clara", "dora", "emil", "frida", "gustav", "hanna")
VERBS = ("paints", "sells", "repairs", "hides", "finds", "carries")
THINGS = ("boat", "lamp", "clock", "basket", "ladder", "kite", "drum", "bell")
PLACES = ("harbour", "garden", "attic", "market", "station", "bridge")
LINKS = ("the", "near", "and", "then", "not", "while", "in", "a", "it", "is", "old", "red")
WORDS = (*NAMES, *VERBS, *THINGS, *PLACES, *LINKS)
"""The words of the English columns."""
GERMAN = ("der", "die", "das", "malt", "findet", "boot", "lampe", "uhr", "garten", "brücke")
COLUMNS = ("text", "positive", "negative", "fraternal", "document", "title")
"""Columns that ``tiny_corpus`` can make; it makes any other as plain sentences."""


def tiny_corpus(
    rows: int = 24, columns: Sequence[str] = ("text",), *, sentences: int = 4, seed: int = 0
) -> Corpus:
    """Make a corpus of short sentences, the same for the same arguments.

    Among the texts are one of a single word (row 1), one longer than 32 tokens (row 2) and one that
    comes twice (rows 3 and 4), since parts must take them.

    Args:
        rows: How many rows.
        columns: Its columns; ``text`` is always there.
        sentences: Sentences of a document.
        seed: Of the draws.
    """
    names = tuple(dict.fromkeys(["text", *columns]))
    texts = _texts(rows, seed)
    made: dict[str, Sequence[str]] = {}
    for name in names:
        draws = random.Random(f"{seed} {name}")
        if name == "text":
            made[name] = texts
        elif name == "positive":
            made[name] = [_swapped(text, draws) for text in texts]
        elif name == "fraternal":
            made[name] = [
                " ".join(draws.choice(GERMAN) for _ in range(draws.randint(3, 8))) for _ in texts
            ]
        elif name == "document":
            made[name] = [f"document {row // sentences}" for row in range(rows)]
        elif name == "title":
            made[name] = [f"The {THINGS[row // sentences % len(THINGS)]}" for row in range(rows)]
        else:
            made[name] = [_sentence(draws) for _ in texts]
    return Corpus.from_columns(made, name="tiny corpus")


def write_corpus(corpus: Corpus, path: Path) -> Path:
    """Write a corpus as the csv file that ``--data`` takes."""
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(corpus.names)
        writer.writerows(zip(*(corpus.column(name) for name in corpus.names), strict=True))
    return path


def _texts(rows: int, seed: int) -> list[str]:
    draws = random.Random(f"{seed} text")
    texts = [_sentence(draws) for _ in range(rows)]
    if rows > 4:
        texts[1] = "Boat"
        texts[2] = " and then ".join(_sentence(draws).rstrip(".") for _ in range(5)) + "."
        texts[4] = texts[3]
    return texts


def _sentence(draws: random.Random) -> str:
    text = (
        f"{draws.choice(NAMES).title()} {draws.choice(VERBS)} the {draws.choice(THINGS)} "
        f"near the {draws.choice(PLACES)}"
    )
    if draws.random() < 0.5:
        text += f" and {draws.choice(VERBS)} {draws.randint(2, 99)} old {draws.choice(THINGS)}s"
    return f"{text}."


def _swapped(text: str, draws: random.Random) -> str:
    return f"It is {draws.choice(NAMES)}: {text[0].lower()}{text[1:]}"
