"""Spans of a text, another for each view."""

from __future__ import annotations

import torch

from cse_core.functional import derive_seed
from cse_core.parts import Augmenter, Setup
from cse_core.types import StepContext, TokenBatch, View
from cse_crop.options import CropOptions

VIEWS = ("anchor", "positive")


class Crop(Augmenter):
    """Replaces a text by a span of it, so that its views are different spans.

    Gonzalez-Marquez, Berens and Kobak, 2025: a text is split at every full stop, in numbers and
    abbreviations too; pieces of so many characters count, and a span is a counted piece with the
    next counted ones. Each view has another of the text's spans, drawn without replacement, in
    every step. A span of words has a share of them, drawn uniformly, and begins anywhere.

    The views of a text must know of each other, so what is drawn depends on seed, round, step and
    text alone: it is the same in all views, chunks and processes.
    """

    options: CropOptions

    def __init__(self, options: CropOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.seed, self.views_of_it = setup.seed, options.views or VIEWS

    def __call__(
        self, x: list[str], tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> list[str]:
        """Return a span of each text; of a text of one word the text."""
        place, cropped, by_words = self.views_of_it.index(view.name), [], 0
        for text in x:
            spans = self._spans(text)
            seed = derive_seed(self.seed, self.name, ctx.round, ctx.step, text)
            draws = torch.Generator().manual_seed(seed)
            if len(spans) > 1:
                order = torch.randperm(len(spans), generator=draws).tolist()
                cropped.append(spans[order[place % len(spans)]])
            else:
                by_words += 1
                drawn = torch.rand(len(self.views_of_it), 2, generator=draws)[place].tolist()
                cropped.append(self._words(text.split(), *drawn) or text)
        ctx.log(f"{self.name}.by_words", by_words / max(len(x), 1))
        return cropped

    def _spans(self, text: str) -> list[str]:
        options = self.options
        if options.unit == "words":
            return []
        return spans(text, options.sentences, options.shortest, options.longest)

    def _words(self, words: list[str], size: float, start: float) -> str:
        share = self.options.least + size * (self.options.most - self.options.least)
        count = min(max(1, round(share * len(words))), len(words))
        begin = int(start * (len(words) - count + 1))
        return " ".join(words[begin : begin + count])


def spans(text: str, sentences: int, shortest: int, longest: int) -> list[str]:
    """Return all spans of so many counted pieces of a text.

    Args:
        text: Any text.
        sentences: Pieces of a span.
        shortest: Characters, blanks around it too, of the shortest piece that counts.
        longest: Characters of the longest.
    """
    pieces = [piece.strip() for piece in text.split(".") if shortest <= len(piece) <= longest]
    last = len(pieces) - sentences
    chosen = [pieces[first : first + sentences] for first in range(last + 1)]
    return ["".join(f"{piece}. " for piece in span) for span in chosen]
