"""Documents that training never saw, found by their own titles, sentences or words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

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
CANDIDATES = 200
"""Trained texts that stand beside those held out, at most."""
RESAMPLES = 10_000
JUDGES = 10
"""Documents that a verdict needs."""
_SAMPLE = 1000


@dataclass(frozen=True)
class HeldOutSet(DevSet):
    """Questions of held-out documents: titles, or sentences where a text has none or repeats it.

    What titles find goes with judged queries, what sentences find does not. Every third document
    chooses a checkpoint; the others judge the run alone.

    Attributes:
        texts: Answers: the held-out rows less what asks, and trained rows behind them.
        owners: Document of each text; -1 of trained ones.
        asked: Document and text of each question.
        ordered: Whether the words are in an order that recurs.
    """

    texts: tuple[str, ...]
    owners: tuple[int, ...]
    asked: tuple[tuple[int, str], ...]
    ordered: bool = True

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
        asked: dict[tuple[int, str], None] = {}
        answers: list[str] = []
        parts = [*zip(keys, *_titled(held_out, every), strict=True)]
        bodies = [without_title(title, text) for _, title, text in parts]
        repeated = {  # any encoder finds a text that repeats what asks for it
            key
            for (key, title, _), body in zip(parts, bodies, strict=True)
            if title and title.casefold() in body.casefold()
        }
        for (key, title, text), body in zip(parts, bodies, strict=True):
            pair = None if key in repeated else by_title(title, text)
            pair = pair or by_sentence("", body, _draw(text)) or by_half(body)
            answers.append(body if pair is None else pair.answer)
            if pair is not None:
                asked[numbers[key], pair.question] = None
        if not asked:
            what = "no text has a title, several sentences or eight words, which could ask for it"
            hint = "name longer texts, or --data.held_out 0 with graded pairs as --dev"
            raise CseError(what, where="data.held_out", hint=hint)
        some = range(0, len(rows), max(1, -(-len(rows) // CANDIDATES)))
        answers += map(without_title, *_titled(rows, some))
        owners = [*map(numbers.__getitem__, keys), *[-1] * len(some)]
        choices = (f"ndcg@{FIRST}", "mrr")
        ordered = in_order(answers[:_SAMPLE])
        return cls(
            NAME, choices, len(answers), tuple(answers), tuple(owners), tuple(asked), ordered
        )

    def score(self, encode: Encode) -> dict[str, float]:
        """Return the mean scores x100 of the documents that choose, and signs of a collapse.

        ``bm25_agreement`` is how many of BM25's first 10 texts are among the encoder's first 10.

        Raises:
            CseError: If the encoder's vectors are not finite.
        """
        ranks, places, near, vectors = self._ranks(encode, choosing=True)
        some = unit(vectors[:_SAMPLE])
        scores = {name: float(100 * value.mean()) for name, value in _measures(ranks).items()}
        top = np.argsort(-near, axis=1, kind="stable")[:, :FIRST]
        common = [len({*a} & {*self._by_words[b]}) for a, b in zip(top, places, strict=True)]
        scores["bm25_agreement"] = 100 * float(np.mean(common)) / top.shape[1]
        if (cosine := mean_cosine(some)) is not None:
            scores["mean_cosine"] = cosine
        return scores | {"effective_rank": effective_rank(singular_values(some))}

    def answers(self, encode: Encode) -> NDArray[np.float64]:
        """Return nDCG@10 of each document that chooses nothing, the mean of its questions, [D]."""
        ranks, places, _, _ = self._ranks(encode, choosing=False)
        documents = np.array([self.asked[place][0] for place in places])
        values = next(iter(_measures(ranks).values()))
        return np.array([values[documents == document].mean() for document in np.unique(documents)])

    def verdict(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> Verdict:
        """Compare both by a bootstrap of the documents (10,000 samples, 95 %)."""
        change, draws = 100 * (end - start), np.random.default_rng(0)
        if (count := len(change)) < JUDGES:
            what = f"no verdict: {count} held-out documents could judge, and {JUDGES} are needed"
            return Verdict(f"{what}: name more texts, or graded pairs as --dev", False)
        means = [change[draws.integers(count, size=count)].mean() for _ in range(RESAMPLES)]
        low, high = np.quantile(means, (0.025, 0.975))
        better = bool(low > 0 and self.ordered)
        word = "better" if better else "worse" if high < 0 else "no better"
        if not self.ordered:
            word += " (words in random order: finding them says nothing about real queries)"
        before, after = (100 * values.mean() for values in (start, end))
        text = (
            f"{word}: nDCG@{FIRST} of {count:,} documents that did not select the checkpoint, "
            f"found by their titles or sentences: {before:.2f} at the start, {after:.2f} now "
            f"({change.mean():+.2f}, 95 % interval {low:+.2f} to {high:+.2f})"
        )
        return Verdict(text, better)

    def _ranks(
        self, encode: Encode, *, choosing: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
        """Return ranks from 0 of the first answers, which questions, similarities and vectors."""
        kind, owners = similarity_of(encode), np.array(self.owners)
        documents = np.array([document for document, _ in self.asked])
        texts = _finite(in_role(encode, "document")(self.texts))
        questions = _finite(in_role(encode, "query")([text for _, text in self.asked]))
        chooses = documents % 3 == 0
        chosen = (chooses if chooses.any() else ~chooses) == choosing
        one, other = questions[chosen], texts
        if kind == "cosine":
            kind, one, other = "dot", unit(one), unit(other)
        scores = similarities(kind, one, other)
        paired = documents[chosen][:, None] == owners
        best = np.where(paired, scores, -np.inf).max(axis=1, keepdims=True)
        return (~paired & (scores >= best)).sum(axis=1), np.flatnonzero(chosen), scores, texts

    @cached_property
    def _by_words(self) -> NDArray[np.intp]:
        """Return the first texts of each question by BM25 ``[Q, 10]``."""
        scores = Bm25.of(self.texts).of_queries([question for _, question in self.asked])
        return np.argsort(-scores, axis=1, kind="stable")[:, :FIRST]


class HeldOut(Suite):
    """Rows held out of training as a dev set."""

    def dev_of_rows(self, held_out: Corpus, rows: Corpus) -> HeldOutSet:
        """Return the questions of the rows."""
        return HeldOutSet.of(held_out, rows)


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
