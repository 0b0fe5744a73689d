"""Questions that texts answer, made of the texts: a title or a sentence, and the rest."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence, Set
from itertools import pairwise
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cse_cli.models.encoding import similarities
from cse_cli.models.geometry import unit
from cse_core.errors import CseError
from cse_core.protocols import Corpus
from cse_core.suites import Encode, in_role, similarity_of
from cse_core.words import lacks_word_spaces
from cse_defaults.words.bm25 import Bm25, units_of

FIRST = 10
"""Texts that are looked at for each question."""
LEAST_AGREEMENT = -5.0
"""How far agreement with BM25 may fall, in points, for a model to be called better."""
PASSAGES = 2
"""Parts of a document that its questions may find: one of many is found too easily to show a gain,
and each has to be encoded."""
_SPREAD = 20.0
"""Standard deviation of the change of nDCG@10 of a title, about, in points."""
_EQUAL = 1e-9
"""Similarities that differ by no more are equal: sums of floats differ by their order."""
LEAST_WORDS = 4
"""Words of what can ask; in scripts without spaces, a third of its characters."""
_LENGTH, _WORDS, _RECURRING = 200, 5000, 0.97
_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")


class Pair(NamedTuple):
    """A question and its answer."""

    question: str
    answer: str


def without_title(title: str, text: str) -> str:
    """Return a text without the title at its start; the whole text where nothing else is there."""
    rest = text[len(title) :]
    ends = not rest[:1].isalnum() or lacks_word_spaces([title])  # not inside a word
    if title and ends and text[: len(title)].casefold() == title.casefold():
        return rest.lstrip(" \t\n.:-–—|") or text
    return text


def asking(titles: Sequence[str], documents: Sequence[str]) -> list[str]:
    """Return titles, empty ones for those that are their file's name alone: these ask for nothing.

    Args:
        titles: One for each text.
        documents: The file of each text, or what else stands for its document; may be empty.
    """
    pairs = zip(titles, documents, strict=True)
    return [
        "" if PurePath(name).suffix and title == PurePath(name).stem else title
        for title, name in pairs
    ]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [sentence for part in _END.split(text) if (sentence := part.strip())]


def by_title(title: str, text: str) -> Pair | None:
    """Return the title and the text without it; None where one of them is missing."""
    body = without_title(title, text)
    return Pair(title, body) if title and body != title else None


def by_sentence(title: str, text: str, draw: float, *, keep: bool = False) -> Pair | None:
    """Return a sentence and the text without it, behind the title; None of a single sentence.

    Args:
        title: The title; may be empty.
        text: The text.
        draw: From [0, 1), which sentence asks.
        keep: Whether it also stays in the text.
    """
    pieces = sentences(without_title(title, text))
    able = [place for place, piece in enumerate(pieces) if _words(piece) >= LEAST_WORDS]
    if len(pieces) < 2 or not able:
        return None
    place = able[int(draw * len(able))]
    rest = pieces if keep else pieces[:place] + pieces[place + 1 :]
    return Pair(pieces[place], " ".join([title, *rest] if title else rest))


def by_half(text: str) -> Pair | None:
    """Return the first half of a text's words and the second; None of a text with few words."""
    words, space = _split(text)
    half = len(words) // 2
    if _words(text) < 2 * LEAST_WORDS:
        return None
    return Pair(space.join(words[:half]), space.join(words[half:]))


def by_words(text: str, draws: tuple[float, float]) -> Pair:
    """Return two spans of half of a text's words, each beginning anywhere; of one word the text."""
    words, space = _split(text)
    size = -(-len(words) // 2)
    starts = (int(draw * (len(words) - size + 1)) for draw in draws)
    return Pair(*(space.join(words[start : start + size]) or text for start in starts))


def in_order(texts: Sequence[str]) -> bool:
    """Check whether neighbouring words recur, as in language; True for fewer than 5,000 words.

    Texts of language hold at most 0.95 times as many distinct pairs of neighbours as the same words
    shuffled inside each text, shuffled texts 0.99 times: measured on abstracts, news, titles,
    questions and captions. From 0.97 up, the words are in random order.
    """
    units = units_of(texts)[0]
    rows = [units(text)[:_LENGTH] for text in texts]
    if sum(map(len, rows)) < _WORDS:
        return True
    pairs = len({pair for words in rows for pair in pairwise(words)})
    draws = random.Random(0)
    for words in rows:
        draws.shuffle(words)
    return pairs < _RECURRING * len({pair for words in rows for pair in pairwise(words)})


def _split(text: str) -> tuple[list[str], str]:
    """Return a text's words, or its characters in scripts without spaces, and what joins them."""
    return ([*text], "") if lacks_word_spaces([text]) else (text.split(), " ")


def _words(text: str) -> int:
    return max(len(text.split()), len(text) // 3 if lacks_word_spaces([text]) else 0)


class Part(NamedTuple):
    """A row that can be asked for.

    Attributes:
        document: Number of its document, from 0; of a row without one, a number of its own.
        title: Its title; empty where that is missing or the name of its file.
        text: Its text.
        body: The text without the title at its start.
    """

    document: int
    title: str
    text: str
    body: str


class Questions(NamedTuple):
    """Texts, and questions that documents among them answer.

    Attributes:
        texts: Answers.
        owners: Document of each text; -1 of those that answer no question.
        asked: Document and text of each question.
    """

    texts: tuple[str, ...] = ()
    owners: tuple[int, ...] = ()
    asked: tuple[tuple[int, str], ...] = ()

    def vectors(self, encode: Encode) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the vectors of questions ``[Q, D]`` and texts ``[N, D]``.

        Raises:
            CseError: If they are not finite.
        """
        texts = finite(in_role(encode, "document")(self.texts))
        return finite(in_role(encode, "query")([text for _, text in self.asked])), texts

    def scores(self, encode: Encode, vectors: tuple[NDArray[Any], NDArray[Any]]) -> NDArray[Any]:
        """Return the similarity of each question to each text, ``[Q, N]``."""
        kind: Any = similarity_of(encode)
        one, other = vectors
        if kind == "cosine":
            kind, one, other = "dot", unit(one), unit(other)
        return similarities(kind, one, other)

    def ranks(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Return the rank from 0 of the first answer to each question, ``[Q]``.

        A text that is as similar as the best answer counts as before it.
        """
        paired = np.array([[document] for document, _ in self.asked]) == np.array(self.owners)
        best = np.where(paired, scores, -np.inf).max(axis=1, keepdims=True)
        return np.asarray((~paired & (scores >= best - _EQUAL)).sum(axis=1), np.int64)

    def agreement(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return how many of BM25's first 10 texts are among the first 10 by scores ``[Q]``."""
        words = Bm25.of(self.texts).of_queries([question for _, question in self.asked])
        tops = (np.argsort(-s, axis=1, kind="stable")[:, :FIRST].tolist() for s in (scores, words))
        return np.array([len({*a} & {*b}) for a, b in zip(*tops, strict=True)]) / FIRST


def least_gain(count: int) -> float:
    """Return the smallest gain of nDCG@10 that so many titles are likely to show, in points."""
    return float(2.8 * _SPREAD / count**0.5)  # of a two-sided test at 5 %, in four of five runs


def doubts(*, ordered: bool, agrees: bool = True, before: float = 0.0, now: float = 0.0) -> str:
    """Say why what titles find proves no model better; empty where nothing is in doubt.

    Args:
        ordered: Whether the words of the texts are in an order that recurs.
        agrees: Whether the model agrees with BM25 about as much as before.
        before: Agreement with BM25, x100.
        now: The same of the model.
    """
    mixed = " (words in random order: finding them says nothing about real queries)"
    fell = f" (agreement with BM25 fell from {before:.0f} % to {now:.0f} %)"
    return mixed * (not ordered) + fell * (not agrees)


def measures(ranks: NDArray[np.int64]) -> Mapping[str, NDArray[np.float64]]:
    """Return nDCG@10 with one relevant document, and the reciprocal rank, of each question."""
    gains = np.where(ranks < FIRST, 1 / np.log2(ranks + 2), 0.0)
    return {f"ndcg@{FIRST}": gains, "mrr": 1 / (ranks + 1)}


def parts_of(corpus: Corpus) -> list[Part]:
    """Return the rows as what can be asked for."""
    every = range(len(corpus))
    documents = [*every] if corpus.documents is None else corpus.documents.tolist()
    keys = [-2 - row if documents[row] < 0 else documents[row] for row in every]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    titles, texts = _titled(corpus, every)
    return [
        Part(numbers[key], title, text, without_title(title, text))
        for key, title, text in zip(keys, titles, texts, strict=True)
    ]


def some_of_each(parts: Sequence[Part], most: int = PASSAGES) -> list[Part]:
    """Return at most so many parts of each document, drawn by their texts, in order."""
    rows: dict[int, dict[str, int]] = {}
    for row in sorted(range(len(parts)), key=lambda row: draw(parts[row].body)):
        rows.setdefault(parts[row].document, {}).setdefault(parts[row].body, row)
    drawn = (row for some in rows.values() for row in [*some.values()][:most])
    return [parts[row] for row in sorted(drawn)]


def by_title_or_sentence(parts: Sequence[Part]) -> Questions:
    """Ask for each row by its title, or by a sentence."""
    # Any encoder finds a text that repeats what asks for it.
    repeated = {part.document for part in parts
                if part.title and part.title.casefold() in part.body.casefold()}  # fmt: skip
    asked: dict[tuple[int, str], None] = {}
    answers: list[str] = []
    for number, title, text, body in parts:
        pair = None if number in repeated else by_title(title, text)
        pair = pair or by_sentence("", body, draw(text)) or by_half(body)
        answers.append(body if pair is None else pair.answer)
        if pair is not None:
            asked[number, pair.question] = None
    return Questions(tuple(answers), tuple(part.document for part in parts), tuple(asked))


def by_titles(
    parts: Sequence[Part], asking: Set[int], rows: Corpus | None = None, most: int = 0
) -> Questions:
    """Ask for each document by its title, if no other document has it, among all texts.

    Args:
        parts: The rows of the documents.
        asking: Numbers of the documents that are asked for.
        rows: Other rows, whose titles count as of other documents.
        most: Texts of these rows that stand beside those of the documents, at most.
    """
    named: dict[str, set[int]] = {}
    for number, title, text, body in parts:
        if title and body != title and text:
            named.setdefault(title.casefold(), set()).add(number)
    titles = () if rows is None else _titled(rows, range(len(rows)))[0]
    others = {*map(str.casefold, titles)}
    asked = {
        number: title
        for number, title, _, _ in parts
        if number in asking and title.casefold() not in others
        and len(named.get(title.casefold(), ())) == 1
    }  # fmt: skip
    beside = () if rows is None else without_titles(rows, most)
    owners = (*(number if number in asked else -1 for number, *_ in parts), *[-1] * len(beside))
    return Questions((*(part.body for part in parts), *beside), owners, tuple(asked.items()))


def without_titles(rows: Corpus, most: int) -> tuple[str, ...]:
    """Return texts of rows spread evenly, without the titles at their start."""
    some = range(0, len(rows) if most else 0, max(1, -(-len(rows) // max(1, most))))
    return tuple(map(without_title, *_titled(rows, some)))


def draw(text: str) -> float:
    """Return a number from [0, 1) by a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big") / 2**48


def _titled(corpus: Corpus, rows: Sequence[int]) -> tuple[list[str], list[str]]:
    """Return the titles, which may be empty, and texts of some rows."""
    titles = [""] * len(rows)
    if "title" in corpus.names:
        titles = corpus.column("title").take(rows)
        if "document" in corpus.names:
            titles = asking(titles, corpus.column("document").take(rows))
    return titles, corpus.column("text").take(rows)


def finite(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors as they are.

    Raises:
        CseError: If they are not finite.
    """
    if not np.isfinite(vectors).all():
        hint = "the model has diverged: train it with a lower train.lr, or in fp32"
        raise CseError("the encoder gave vectors that are not finite", hint=hint)
    return vectors
