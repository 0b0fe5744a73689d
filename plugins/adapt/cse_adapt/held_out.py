"""Documents that training never saw, found by their own titles, sentences or words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cse import effective_rank, mean_cosine, questions, singular_values, unit
from cse_core.errors import CseError
from cse_core.protocols import Corpus
from cse_core.suites import DevSet, Encode, Suite, Verdict

NAME = "held-out"
CHOOSERS = 100
"""Held-out documents that choose a checkpoint, at most, and at most a third."""
CANDIDATES = 200
"""Trained texts that stand beside those of the choosers, at most."""
POOL = 1_500
"""Texts among which titles look for their documents at the end, about."""
RESAMPLES = 10_000
JUDGES = 10
"""Titles that a verdict needs."""
_SAMPLE = 1000
_NO_TITLES = "cannot be judged without titles or queries"
_HELP = "judged queries (a test collection) or graded pairs as --dev would judge it"


@dataclass(frozen=True)
class HeldOutSet(DevSet):
    """Questions of held-out documents, some of which choose a checkpoint and others judge the run.

    Those that choose are asked for by their titles, or by a sentence where a text has no title or
    repeats it. Only titles judge: what they find goes with judged queries, what sentences find does
    not. They look for their documents among all texts, or about as many as ``POOL``.
    """

    chooses: questions.Questions
    judges: questions.Questions = questions.Questions()
    ordered: bool = True
    """Whether the words are in an order that recurs."""

    @classmethod
    def of(cls, held_out: Corpus, rows: Corpus) -> HeldOutSet:
        """Make the questions of held-out rows, the same for the same rows.

        Raises:
            CseError: If they have neither titles nor several sentences or words.
        """
        parts = questions.some_of_each(questions.parts_of(held_out))
        owners = {part.document for part in parts}
        step = max(3, -(-len(owners) // CHOOSERS))
        chooses = questions.by_title_or_sentence(
            [part for part in parts if part.document % step == 0]
        )
        if not chooses.asked:  # few texts, of which others can ask
            chooses = questions.by_title_or_sentence(parts)
        if not chooses.asked:
            what = "no text has a title, several sentences or eight words, which could ask for it"
            hint = "name longer texts, or --data.held_out 0 with graded pairs as --dev"
            raise CseError(what, where="data.held_out", hint=hint)
        trained = questions.without_titles(rows, CANDIDATES)
        beside = (-1,) * len(trained)
        chooses = questions.Questions(
            chooses.texts + trained, chooses.owners + beside, chooses.asked
        )
        judging = {n for n in owners if n % step} - {document for document, _ in chooses.asked}
        judges = questions.by_titles(parts, judging, rows, max(CANDIDATES, POOL - len(parts)))
        size, choices = len(chooses.texts), (f"ndcg@{questions.FIRST}", "mrr")
        return cls(
            NAME, choices, size, chooses, judges, questions.in_order(chooses.texts[:_SAMPLE])
        )

    def note(self) -> str:
        """Say what judges the run, and the smallest gain that this is likely to show."""
        if (count := len(self.judges.asked)) < JUDGES:
            return f"{_NO_TITLES} ({count} held out, {JUDGES} needed): {_HELP}"
        least = questions.least_gain(count)
        among = f"{count:,} titles judge among {len(self.judges.texts):,} texts"
        return f"{among}; the least gain that they show is about {least:.1f}"

    def score(self, encode: Encode) -> dict[str, float]:
        """Return the mean scores x100 of the documents that choose, and signs of a collapse.

        ``bm25_agreement`` is how many of BM25's first 10 texts are among the encoder's first 10.

        Raises:
            CseError: If the encoder's vectors are not finite.
        """
        vectors = self.chooses.vectors(encode)
        found = self.chooses.scores(encode, vectors)
        some, ranks = unit(vectors[1][:_SAMPLE]), self.chooses.ranks(found)
        scores = {
            name: float(100 * value.mean()) for name, value in questions.measures(ranks).items()
        }
        scores["bm25_agreement"] = float(100 * self.chooses.agreement(found).mean())
        if (cosine := mean_cosine(some)) is not None:
            scores["mean_cosine"] = cosine
        return scores | {"effective_rank": effective_rank(singular_values(some))}

    def answers(self, encode: Encode) -> NDArray[np.float64]:
        """Return nDCG@10 of each title that judges, and its agreement with BM25, ``[Q, 2]``."""
        if len(self.judges.asked) < JUDGES:
            return np.empty((len(self.judges.asked), 2))
        scores = self.judges.scores(encode, self.judges.vectors(encode))
        gains = next(iter(questions.measures(self.judges.ranks(scores)).values()))
        return np.stack([gains, self.judges.agreement(scores)], axis=1)

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
        agrees = change[:, 1].mean() >= questions.LEAST_AGREEMENT
        better = bool(low > 0 and self.ordered and agrees)
        word = "better" if better else "worse" if high < 0 else "no better"
        (before, by_words), (after, now) = 100 * start.mean(axis=0), 100 * end.mean(axis=0)
        word += questions.doubts(ordered=self.ordered, agrees=agrees, before=by_words, now=now)
        change_is = f"{change[:, 0].mean():+.2f}, 95 % interval {low:+.2f} to {high:+.2f}"
        text = (
            f"{word}: nDCG@{questions.FIRST} of {count:,} titles of documents that were not "
            f"trained on, among {len(self.judges.texts):,} texts: {before:.2f} at the start, "
            f"{after:.2f} now ({change_is})"
        )
        return Verdict(text, better)


class HeldOut(Suite):
    """Rows held out of training as a dev set."""

    def dev_of_rows(self, held_out: Corpus, rows: Corpus) -> HeldOutSet:
        """Return the questions of the rows."""
        return HeldOutSet.of(held_out, rows)
