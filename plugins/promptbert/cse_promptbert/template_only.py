"""A view's template without the text that it surrounds."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.parts import Augmenter, Setup
from cse_core.types import StepContext, TokenBatch, View
from cse_promptbert.options import TemplateOnlyOptions


class TemplateOnly(Augmenter):
    """Makes the views ``VIEW-template``, and takes the text out of their rows.

    PromptBERT (Jiang et al., 2022), section 3.3, leaves a gap in the positions that is as long as
    the text; CoT-BERT (Zhang et al., 2023) fills it with padding tokens that are read. The public
    code encodes templates of all lengths up to 50 in each step; here there is one for each row, of
    the row's own length.
    """

    options: TemplateOnlyOptions

    def __init__(self, options: TemplateOnlyOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self._views = options.views or ("anchor-template", "positive-template")
        self._padding = setup.tokenizer.hf.pad_token_id
        if options.gap == "padding" and self._padding is None:
            raise CseError(
                "the vocabulary has no padding token",
                where=f"aug.{setup.name}.gap",
                value=options.gap,
                hint="use positions",
            )

    def views(self, rows: Tensor, ctx: StepContext) -> list[View]:
        """Return the texts in their templates, which the own call takes out."""
        columns = self.options.columns or ("text",) * len(self._views)
        return [
            View(name, "aux", "online", texts=ctx.texts(column), tokens=ctx.tokens(column))
            for name, column in zip(self._views, columns, strict=True)
        ]

    def __call__(
        self, x: TokenBatch, tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> TokenBatch:
        """Return the rows with a gap, or padding, in the place of their content."""
        if self.options.gap == "padding":
            nowhere = torch.full_like(x.source, -1)
            ids = x.ids.masked_fill(~x.special, self._padding)
            return replace(x, ids=ids, source=nowhere, word=nowhere)
        return replace(x.keep_tokens(x.special), positions=x.positions[x.special])
