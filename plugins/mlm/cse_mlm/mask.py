"""Tokens that are hidden, and their ids as labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.functional import first_of_word
from cse_core.parts import Augmenter, Setup
from cse_core.types import NO_LABEL, StepContext, TokenBatch, View
from cse_mlm.options import HidingOptions


class Mask(Augmenter):
    """Hides content tokens as BERT's training does (Devlin et al., section 3.1).

    A token is chosen with ``probability``; of those chosen ``masked`` become the mask token,
    ``random`` a token of the whole vocabulary, and the rest stay. The label of a chosen token is
    its id. Draws depend on the row alone, not on how rows are shared by processes and chunks.
    """

    options: HidingOptions

    def __init__(self, options: HidingOptions, setup: Setup, kind: str = "aug") -> None:
        super().__init__(options, setup)
        tokenizer, token = setup.tokenizer.hf, options.token
        if token is not None and token not in tokenizer.get_vocab():
            what, where = "the vocabulary has no such token", f"{kind}.{setup.name}.token"
            raise CseError(what, where=where, value=token, hint="name another")
        known = tokenizer.mask_token_id
        self._mask = int(known if token is None else tokenizer.convert_tokens_to_ids(token))
        self._words = len(tokenizer)

    def __call__(
        self, x: TokenBatch, tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> TokenBatch:
        """Return the same rows with hidden tokens and ``labels`` ``[T]``."""
        return self.hide(x, ctx.uniform)

    def hide(self, x: TokenBatch, uniform: Callable[[str, TokenBatch], Tensor]) -> TokenBatch:
        """Return them by these draws."""
        options, draw = self.options, uniform("chosen", x)
        if options.whole_words:
            draw = draw[first_of_word(x)]
        chosen = (draw < options.probability) & ~x.special
        how, what = uniform("how", x), uniform("what", x)
        other = (what * self._words).long().clamp_max(self._words - 1)
        ids = torch.where(chosen & (how < options.masked), self._mask, x.ids)
        swapped = chosen & (how >= options.masked) & (how < options.masked + options.random)
        ids = torch.where(swapped, other, ids)
        return replace(x, ids=ids, labels=torch.where(chosen, x.ids, NO_LABEL))
