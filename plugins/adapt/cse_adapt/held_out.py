"""Documents that training never saw, found by their own titles, sentences or words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cse import effective_rank, mean_cosine, similarities, singular_values, unit
from cse_adapt.texts import by_half, by_sentence, by_title, without_title
from cse_core.errors import CseError
from cse_core.protocols import Corpus
from cse_core.suites import DevSet, Encode, Suite, Verdict, in_role, similarity_of

NAME = "held-out"
FIRST = 10
"""Texts that are looked at for each question."""
CANDIDATES = 200
"""Trained texts that stand beside those held out, at most."""
RESAMPLES = 10_000
_SAMPLE = 1000


@dataclass(frozen=True)
class Asked:
    """A question.

    Attributes:
        document: Which of the held-out documents it is of.
        text: The question.
        answer: The text that answers it in place of the row's own; None: any row of its document.
    """

    document: int
    text: str
    answer: str | None = None


@dataclass(frozen=True)
class HeldOutSet(DevSet):
    """Questions of held-out documents.

    Every second document chooses a checkpoint; the others are asked for the verdict alone.

    Attributes:
        texts: Of the held-out rows without titles, and of trained ones behind them.
        owners: Document of each text; -1 of trained ones.
        asked: The questions.
    """

    texts: tuple[str, ...]
    owners: tuple[int, ...]
    asked: tuple[Asked, ...]

    @classmethod
    def of(cls, held_out: Corpus, rows: Corpus) -> HeldOutSet:
        """Make the questions of held-out rows, the same for the same rows.

        Raises:
            CseError: If they have neither titles nor several sentences or words.
        """
        titles, texts = _titles(held_out), list(held_out.column("text"))
        owners = list(range(len(texts)))
        if held_out.documents is not None:
            owners = [d if d >= 0 else -2 - i for i, d in enumerate(held_out.documents.tolist())]
        numbers = {owner: number for number, owner in enumerate(dict.fromkeys(owners))}
        asked: list[Asked] = []
        titled: set[int] = set()
        for title, text, owner in zip(titles, texts, owners, strict=True):
            document = numbers[owner]
            pair = by_title(title, text)
            if pair is not None and document not in titled:
                titled.add(document)
                asked.append(Asked(document, pair.question))
            pair = by_sentence(title, text, _draw(text)) or (None if pair else by_half(text))
            if pair is not None:
                asked.append(Asked(document, pair.question, pair.answer))
        if not asked:
            what = "no text has a title, several sentences or eight words, which could ask for it"
            hint = "name longer texts, or --data.held_out 0 with graded pairs as --dev"
            raise CseError(what, where="data.held_out", hint=hint)
        step = max(1, -(-len(rows) // CANDIDATES))
        some = range(0, len(rows), step)
        others = [rows.column("text")[row] for row in some]
        named = (
            [rows.column("title")[r] for r in some] if "title" in rows.names else [""] * len(some)
        )
        bodies = [
            without_title(*pair) for pair in zip((*titles, *named), (*texts, *others), strict=True)
        ]
        owned = [*(numbers[owner] for owner in owners), *(-1 for _ in others)]
        choices = (f"ndcg@{FIRST}", "mrr")
        return cls(NAME, choices, len(bodies), tuple(bodies), tuple(owned), tuple(asked))

    def score(self, encode: Encode) -> dict[str, float]:
        """Return the mean scores x100 of the documents that choose, and signs of a collapse.

        Raises:
            CseError: If the encoder's vectors are not finite.
        """
        ranks, bodies = self._ranks(encode, 0)
        some = unit(bodies[:_SAMPLE])
        scores = {name: float(100 * each.mean()) for name, each in _measures(ranks).items()}
        if (cosine := mean_cosine(some)) is not None:
            scores["mean_cosine"] = cosine
        return scores | {"effective_rank": effective_rank(singular_values(some))}

    def answers(self, encode: Encode) -> NDArray[np.float64]:
        """Return nDCG@10 of each document that chooses nothing, the mean of its questions, [D]."""
        ranks, _ = self._ranks(encode, 1)
        documents = np.array([each.document for each in self._of(1)])
        values = next(iter(_measures(ranks).values()))
        return np.array([values[documents == each].mean() for each in np.unique(documents)])

    def verdict(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> Verdict:
        """Compare both by a bootstrap of the documents (10,000 samples, 95 %)."""
        change, draws = 100 * (end - start), np.random.default_rng(0)
        count = len(change)
        means = [change[draws.integers(count, size=count)].mean() for _ in range(RESAMPLES)]
        low, high = np.quantile(means, (0.025, 0.975))
        word = "better" if low > 0 else "worse" if high < 0 else "no better"
        before, after = (100 * each.mean() for each in (start, end))
        text = (
            f"{word}: nDCG@{FIRST} of {count:,} documents that chose nothing, found by their own "
            f"titles, sentences or words: {before:.2f} at the start, {after:.2f} now "
            f"({change.mean():+.2f}, 95 % interval {low:+.2f} to {high:+.2f})"
        )
        return Verdict(text, bool(low > 0))

    def _of(self, half: int) -> list[Asked]:
        return [each for each in self.asked if each.document % 2 == half]

    def _ranks(self, encode: Encode, half: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the rank of each question's first answer, from 0, and the texts' vectors."""
        asked, kind, owners = self._of(half), similarity_of(encode), np.array(self.owners)
        read = in_role(encode, "document")
        own = [each.answer for each in asked if each.answer is not None]
        both = _finite(read([*self.texts, *own]))
        bodies, rests = both[: len(self.texts)], iter(both[len(self.texts) :])
        questions = _finite(in_role(encode, "query")([each.text for each in asked]))
        if kind == "cosine":
            questions, bodies = unit(questions), unit(bodies)
            rests, kind = iter(unit(both[len(self.texts) :]) if own else ()), "dot"
        scores = similarities(kind, questions, bodies)
        ranks = []
        for each, question, row in zip(asked, questions, scores, strict=True):
            mine = owners == each.document
            best = row[mine].max()
            if each.answer is not None:
                best = similarities(kind, question[None], next(rests)[None])[0, 0]
            ranks.append(int((row[~mine] >= best).sum()))
        return np.array(ranks), both[: len(self.texts)]


class HeldOut(Suite):
    """Rows held out of training as a dev set."""

    def dev_of_rows(self, held_out: Corpus, rows: Corpus) -> HeldOutSet:
        """Return the questions of the rows."""
        return HeldOutSet.of(held_out, rows)


def _titles(corpus: Corpus) -> Sequence[str]:
    return list(corpus.column("title")) if "title" in corpus.names else [""] * len(corpus)


def _draw(text: str) -> float:
    """Return a number from [0, 1) by a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big") / 2**48


def _measures(ranks: NDArray[np.int64]) -> Mapping[str, NDArray[np.float64]]:
    """Return nDCG@10 with one relevant document, and the reciprocal rank, of each question."""
    found = np.where(ranks < FIRST, 1 / np.log2(ranks + 2), 0.0)
    return {f"ndcg@{FIRST}": found, "mrr": 1 / (ranks + 1)}


def _finite(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    if not np.isfinite(vectors).all():
        hint = "the model has diverged: train it with a lower train.lr, or in fp32"
        raise CseError("the encoder gave vectors that are not finite", hint=hint)
    return vectors
