"""Rows as questions and answers, drawn in every step."""

from __future__ import annotations

import torch

from cse import questions
from cse_adapt.options import QuestionOptions
from cse_core.functional import derive_seed
from cse_core.parts import Augmenter, RoundContext, Setup
from cse_core.protocols import Rows
from cse_core.types import StepContext, TokenBatch, View

QUESTION, ANSWER = "anchor", "positive"


class Question(Augmenter):
    """Makes the anchor a question that the row's text answers, and the positive what answers it.

    A title asks for the text behind it, or a sentence for the text without it (the inverse cloze
    task, Lee et al., 2019, Section 4, whose sentence stays in a tenth of the texts), drawn in every
    step. A single sentence gives two spans of half of its words (Gonzalez-Marquez et al.,
    2025, unit words). What is drawn depends on seed, round, step and text alone: it is the same in
    both views and in all chunks and processes.
    """

    options: QuestionOptions

    def __init__(self, options: QuestionOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.seed, self.columns = setup.seed, frozenset[str]()

    def begin_round(self, rows: Rows, ctx: RoundContext) -> None:
        """See whether the rows have titles: texts of a round's own have none."""
        self.columns = frozenset(rows.columns)

    def __call__(
        self, x: list[str], tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> list[str]:
        """Return the question or the answer of each text."""
        titles = ctx.texts("title") if "title" in self.columns else [""] * len(x)
        if "document" in self.columns:
            titles = questions.asking(titles, ctx.texts("document"))
        place, texts, counts = (QUESTION, ANSWER).index(view.name), [], [0, 0]
        for title, text in zip(titles, x, strict=True):
            seed = derive_seed(self.seed, self.name, ctx.round, ctx.step, text)
            which, stays, *draws = torch.rand(
                4, generator=torch.Generator().manual_seed(seed)
            ).tolist()
            titled, keep = questions.by_title(title, text), stays < self.options.keep
            asked = questions.by_sentence(title, text, draws[0], keep=keep)
            if titled and (asked is None or which < self.options.titles):
                pair, kind = titled, 0
            else:
                pair, kind = (
                    asked or questions.by_words(text, (draws[0], draws[1])),
                    1 if asked else 2,
                )
            if kind < 2:
                counts[kind] += 1
            texts.append(pair[place])
        for name, count in zip(("titles", "sentences"), counts, strict=True):
            ctx.log(f"{self.name}.{name}", count / max(len(x), 1))
        return texts
