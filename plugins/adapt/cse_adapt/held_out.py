"""Documents that training never saw, found by their own titles, sentences or words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cse import Bm25, effective_rank, mean_cosine, similarities, singular_values, unit
from cse_adapt.texts import asking, by_half, by_sentence, by_title, in_order, without_title
from cse_core.errors import CseError
from cse_core.protocols import Corpus
from cse_core.suites import DevSet, Encode, Suite, Verdict, in_role, similarity_of

NAME = "held-out"
FIRST = 10
"""Texts that are looked at for each question."""
CHOOSERS = 100
"""Held-out documents that choose a checkpoint, at most, and at most a third."""
CANDIDATES = 200
"""Trained texts that stand beside those of the choosers, at most."""
POOL = 5_000
"""Texts among which titles look for their documents at the end, about."""
RESAMPLES = 10_000
JUDGES = 10
"""Titles that a verdict needs."""
LEAST_AGREEMENT = -5.0
"""How far agreement with BM25 may fall, in points, for a model to be called better."""
_SPREAD = 20.0
"""Standard deviation of the change of nDCG@10 of a title, about, in points."""
_SAMPLE = 1000
_NO_TITLES = "cannot be judged without titles or queries"
_HELP = "judged queries (a test collection) or graded pairs as --dev would judge it"


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

    @property
    def documents(self) -> NDArray[np.int64]:
        """Return the document of each question, ``[Q]``."""
        return np.array([document for document, _ in self.asked], np.int64)

    def ranks(
        self, encode: Encode
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float32]]:
        """Return ranks from 0 of the first answers ``[Q]``, shares ``[Q]``, and the vectors.

        The share is how many of BM25's first 10 texts are among the encoder's first 10.

        Raises:
            CseError: If the encoder's vectors are not finite.
        """
        kind = similarity_of(encode)
        texts = _finite(in_role(encode, "document")(self.texts))
        questions = _finite(in_role(encode, "query")([text for _, text in self.asked]))
        one, other = questions, texts
        if kind == "cosine":
            kind, one, other = "dot", unit(one), unit(other)
        scores = similarities(kind, one, other)
        paired = self.documents[:, None] == np.array(self.owners)
        best = np.where(paired, scores, -np.inf).max(axis=1, keepdims=True)
        words = Bm25.of(self.texts).of_queries([question for _, question in self.asked])
        shares = [len({*a} & {*b}) for a, b in zip(_first(scores), _first(words), strict=True)]
        return (~paired & (scores >= best)).sum(axis=1), np.array(shares) / FIRST, texts


@dataclass(frozen=True)
class HeldOutSet(DevSet):
    """Questions of held-out documents, some of which choose a checkpoint and others judge the run.

    Those that choose are asked for by their titles, or by a sentence where a text has no title or
    repeats it. Only titles judge: what they find goes with judged queries, what sentences find does
    not. They look for their documents among all texts, or many of them.
    """

    chooses: Questions
    judges: Questions = Questions()
    ordered: bool = True
    """Whether the words are in an order that recurs."""

    @classmethod
    def of(cls, held_out: Corpus, rows: Corpus) -> HeldOutSet:
        """Make the questions of held-out rows, the same for the same rows.

        Raises:
            CseError: If they have neither titles nor several sentences or words.
        """
        every = range(len(held_out))
        documents = [*every] if held_out.documents is None else held_out.documents.tolist()
        keys = [-2 - row if documents[row] < 0 else documents[row] for row in every]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        owners = [numbers[key] for key in keys]
        step = max(3, -(-len(numbers) // CHOOSERS))
        titles, texts = _titled(held_out, every)
        bodies = [*map(without_title, titles, texts)]
        parts = [*zip(owners, titles, texts, bodies, strict=True)]
        chooses = _questions([part for part in parts if part[0] % step == 0])
        if not chooses.asked:  # few texts, of which others can ask
            chooses = _questions(parts)
        if not chooses.asked:
            what = "no text has a title, several sentences or eight words, which could ask for it"
            hint = "name longer texts, or --data.held_out 0 with graded pairs as --dev"
            raise CseError(what, where="data.held_out", hint=hint)
        trained = without_titles(rows, CANDIDATES)
        beside = (-1,) * len(trained)
        chooses = Questions(chooses.texts + trained, chooses.owners + beside, chooses.asked)
        judges = _judges(parts, {number for number in owners if number % step}, rows)
        size, choices = len(chooses.texts), (f"ndcg@{FIRST}", "mrr")
        return cls(NAME, choices, size, chooses, judges, in_order(chooses.texts[:_SAMPLE]))

    def note(self) -> str:
        """Say what judges the run, and the smallest gain that this is likely to show."""
        if (count := len(self.judges.asked)) < JUDGES:
            return f"{_NO_TITLES} ({count} held out, {JUDGES} needed): {_HELP}"
        least = 2.8 * _SPREAD / count**0.5  # of a two-sided test at 5 %, in four of five runs
        among = f"{count:,} titles judge among {len(self.judges.texts):,} texts"
        return f"{among}; the least gain that they show is about {least:.1f}"

    def score(self, encode: Encode) -> dict[str, float]:
        """Return the mean scores x100 of the documents that choose, and signs of a collapse.

        ``bm25_agreement`` is how many of BM25's first 10 texts are among the encoder's first 10.

        Raises:
            CseError: If the encoder's vectors are not finite.
        """
        ranks, shares, vectors = self.chooses.ranks(encode)
        some = unit(vectors[:_SAMPLE])
        scores = {name: float(100 * value.mean()) for name, value in _measures(ranks).items()}
        scores["bm25_agreement"] = float(100 * shares.mean())
        if (cosine := mean_cosine(some)) is not None:
            scores["mean_cosine"] = cosine
        return scores | {"effective_rank": effective_rank(singular_values(some))}

    def answers(self, encode: Encode) -> NDArray[np.float64]:
        """Return nDCG@10 of each title that judges, and its agreement with BM25, ``[Q, 2]``."""
        if len(self.judges.asked) < JUDGES:
            return np.empty((len(self.judges.asked), 2))
        ranks, shares, _ = self.judges.ranks(encode)
        return np.stack([next(iter(_measures(ranks).values())), shares], axis=1)

    def verdict(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> Verdict:
        """Compare both by a bootstrap of the titles (10,000 samples, 95 %).

        A gain counts only if the model agrees with BM25, which no training has seen, about as much
        as it did.
        """
        if (count := len(end)) < JUDGES:
            return Verdict(self.note(), None)
        change, draws = 100 * (end - start), np.random.default_rng(0)
        means = [change[draws.integers(count, size=count), 0].mean() for _ in range(RESAMPLES)]
        low, high = np.quantile(means, (0.025, 0.975))
        agrees = change[:, 1].mean() >= LEAST_AGREEMENT
        better = bool(low > 0 and self.ordered and agrees)
        word = "better" if better else "worse" if high < 0 else "no better"
        if not self.ordered:
            word += " (words in random order: finding them says nothing about real queries)"
        (before, by_words), (after, now) = 100 * start.mean(axis=0), 100 * end.mean(axis=0)
        if not agrees:
            word += f" (agreement with BM25 fell from {by_words:.0f} % to {now:.0f} %)"
        text = (
            f"{word}: nDCG@{FIRST} of {count:,} titles of documents that were not trained on, "
            f"among {len(self.judges.texts):,} texts: {before:.2f} at the start, {after:.2f} now "
            f"({change[:, 0].mean():+.2f}, 95 % interval {low:+.2f} to {high:+.2f})"
        )
        return Verdict(text, better)


class HeldOut(Suite):
    """Rows held out of training as a dev set."""

    def dev_of_rows(self, held_out: Corpus, rows: Corpus) -> HeldOutSet:
        """Return the questions of the rows."""
        return HeldOutSet.of(held_out, rows)


_Part = tuple[int, str, str, str]
"""Document, title, text, and text without the title, of a row."""


def _questions(parts: Sequence[_Part]) -> Questions:
    """Ask for each row by its title, or by a sentence."""
    repeated = {  # any encoder finds a text that repeats what asks for it
        number for number, title, _, body in parts if title and title.casefold() in body.casefold()
    }
    asked: dict[tuple[int, str], None] = {}
    answers: list[str] = []
    for number, title, text, body in parts:
        pair = None if number in repeated else by_title(title, text)
        pair = pair or by_sentence("", body, _draw(text)) or by_half(body)
        answers.append(body if pair is None else pair.answer)
        if pair is not None:
            asked[number, pair.question] = None
    return Questions(tuple(answers), tuple(part[0] for part in parts), tuple(asked))


def _judges(parts: Sequence[_Part], judging: Set[int], rows: Corpus) -> Questions:
    """Ask for each document by its title, if no other document has it, among all texts."""
    named: dict[str, set[int]] = {}
    for number, title, text, body in parts:
        if title and body != title and text:
            named.setdefault(title.casefold(), set()).add(number)
    others = {title.casefold() for title in _titled(rows, range(len(rows)))[0]}
    asked = {
        number: title
        for number, title, _, _ in parts
        if number in judging and title.casefold() not in others
        and len(named.get(title.casefold(), ())) == 1
    }  # fmt: skip
    trained = without_titles(rows, max(CANDIDATES, POOL - len(parts)))
    owners = (*(number if number in asked else -1 for number, *_ in parts), *[-1] * len(trained))
    return Questions((*(body for *_, body in parts), *trained), owners, tuple(asked.items()))


def without_titles(rows: Corpus, most: int) -> tuple[str, ...]:
    """Return texts of rows spread evenly, without the titles at their start."""
    some = range(0, len(rows), max(1, -(-len(rows) // most)))
    return tuple(map(without_title, *_titled(rows, some)))


def _first(scores: NDArray[np.float32]) -> list[list[int]]:
    """Return the first texts of each question, ``[Q, 10]``."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :FIRST].tolist()


def _titled(corpus: Corpus, rows: Sequence[int]) -> tuple[list[str], list[str]]:
    """Return the titles, which may be empty, and texts of some rows."""
    titles = [""] * len(rows)
    if "title" in corpus.names:
        titles = corpus.column("title").take(rows)
        if "document" in corpus.names:
            titles = asking(titles, corpus.column("document").take(rows))
    return titles, corpus.column("text").take(rows)


def _draw(text: str) -> float:
    """Return a number from [0, 1) by a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big") / 2**48


def _measures(ranks: NDArray[np.int64]) -> Mapping[str, NDArray[np.float64]]:
    """Return nDCG@10 with one relevant document, and the reciprocal rank, of each question."""
    gains = np.where(ranks < FIRST, 1 / np.log2(ranks + 2), 0.0)
    return {f"ndcg@{FIRST}": gains, "mrr": 1 / (ranks + 1)}


def _finite(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    if not np.isfinite(vectors).all():
        hint = "the model has diverged: train it with a lower train.lr, or in fp32"
        raise CseError("the encoder gave vectors that are not finite", hint=hint)
    return vectors
