"""A few characters of a text masked."""

from __future__ import annotations

import torch

from cse_core.parts import Augmenter, Setup
from cse_core.types import StepContext, TokenBatch, View
from cse_infocse.options import SpanMaskOptions


class SpanMask(Augmenter):
    """Replaces a run of characters by the mask token, in texts that are long enough.

    Mirror-BERT (Liu et al., EMNLP 2021; src/data_loader.py): 5 characters of the positive view,
    wherever they are, texts below 30 characters left alone. Its code writes ``[MASK]`` for RoBERTa
    too, where that is not a token; here it is the tokenizer's own.
    """

    def __init__(self, options: SpanMaskOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.token = setup.tokenizer.hf.mask_token

    def __call__(
        self, x: list[str], tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> list[str]:
        """Return the texts, each with one run masked."""
        size = self.options.characters
        draws = torch.rand(len(x), generator=ctx.generator("span", shared=False)).tolist()
        masked = []
        for text, draw in zip(x, draws, strict=True):
            if len(text) < max(self.options.shortest, size + 1):
                masked.append(text)
                continue
            begin = int(draw * (len(text) - size + 1))
            masked.append(f"{text[:begin]} {self.token} {text[begin + size :]}")
        return masked
