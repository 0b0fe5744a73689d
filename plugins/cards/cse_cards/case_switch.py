"""The case of first letters, switched."""

from __future__ import annotations

import re
from collections.abc import Iterable

import torch
from torch import Tensor

from cse_cards.options import CaseSwitchOptions
from cse_core.parts import Augmenter
from cse_core.types import StepContext, TokenBatch, View

_WORDS = re.compile(r"\S+")


class CaseSwitch(Augmenter):
    """Switches the case of the first letter of some words, which changes their tokens.

    CARDS, case-augmented positives: another token, or other pieces, for a word that means the same.
    Words are what blanks part. ``v1`` switches ``max(1, round(rate * words))`` of the words that
    begin with a letter, or all of them; ``v2`` each word with probability ``rate``. A word that
    begins with no letter of two cases is never switched.

    The authors' code switches words of what is left of a text after it is cut, and encodes the
    result without a cut; here the text is switched and then cut, so that no row is longer than
    ``model.max_length``.
    """

    options: CaseSwitchOptions

    def __call__(
        self, x: list[str], tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> list[str]:
        """Return the texts with some first letters switched."""
        starts = [[word.start() for word in _WORDS.finditer(text)] for text in x]
        counts = [len(places) for places in starts]
        drawn = torch.split(
            torch.rand(sum(counts), generator=ctx.generator("words", shared=False)), counts
        )
        return [
            self._switched(text, places, draws)
            for text, places, draws in zip(x, starts, drawn, strict=True)
        ]

    def _switched(self, text: str, places: list[int], draws: Tensor) -> str:
        rate = self.options.rate
        if self.options.variant == "v2":
            chosen = (draws < rate).nonzero().squeeze(1).tolist()
            return _switch(text, (places[word] for word in chosen))
        able = [place for place in draws.argsort().tolist() if _has_case(text[places[place]])]
        count = max(1, round(rate * len(places)))
        return _switch(text, (places[word] for word in able[:count]))


def _has_case(letter: str) -> bool:
    other = letter.swapcase()
    return other != letter and len(other) == 1


def _switch(text: str, places: Iterable[int]) -> str:
    """Return a text whose characters at these places have the other case, where they have one."""
    letters = list(text)
    for place in places:
        if _has_case(letters[place]):
            letters[place] = letters[place].swapcase()
    return "".join(letters)
