"""Soft negatives: each sentence of the batch, negated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.parts import Augmenter, Setup
from cse_core.protocols import Corpus
from cse_core.types import StepContext, TokenBatch, View
from cse_sncse.options import NegationOptions
from cse_sncse.rules import negate
from cse_sncse.spacy_parse import SpacyNegation

REMEMBERED = 2**18
"""Texts whose negation is kept for the epochs to come."""


class Negation(Augmenter):
    """Makes the view ``soft_negative`` of the batch's sentences; negates the texts of its views.

    SNCSE (Wang and Dou, 2023), section 3.1. What is negated is the sentence as it stands in the
    data. A sentence that the method leaves out (None) has no soft negative: its row is missing from
    the view. In other views it stays as it is.
    """

    def __init__(self, options: NegationOptions, setup: Setup) -> None:
        try:
            self.options = options = options.resolved()
        except ValueError as error:
            raise CseError(str(error), where=f"aug.{setup.name}") from None
        self.name = setup.name
        self._makes_view = options.views is None or "soft_negative" in options.views
        method: Callable[[str], str | None] = negate
        if options.method in ("spacy", "code"):
            where = f"aug.{setup.name}"
            method = SpacyNegation(options.spacy_model, method=options.method, where=where)
        # What is remembered changes no result, only when it is computed: it is not state.
        self._negate = lru_cache(maxsize=REMEMBERED)(method)

    def prepare(self, dataset: Corpus) -> None:
        """Check that every row of the column has a text.

        Raises:
            CseError: If one has none.
        """
        if self.options.method != "column":
            return
        blank = sum(not text.strip() for text in dataset.column(self.options.column))
        if blank:
            raise CseError(
                f"{blank} of {len(dataset)} rows have no negated sentence",
                where=f"aug.{self.name}.column",
                value=self.options.column,
                hint="fill the column, or use another method",
            )

    def views(self, rows: Tensor, ctx: StepContext) -> list[View]:
        """Return the view of the plain sentences, which its own call negates.

        ``owner`` says which rows they are of where some are left out.
        """
        if not self._makes_view:
            return []
        texts = ctx.texts("text")
        view = View("soft_negative", "soft_negative", "online", texts=texts)
        if self.options.method == "column":
            return [view]
        kept = [row for row, text in enumerate(texts) if self._negate(text) is not None]
        if len(kept) == len(texts):
            return [view]
        owner = torch.tensor(kept, dtype=torch.long)
        return [replace(view, texts=[texts[row] for row in kept], owner=owner)]

    def __call__(
        self, x: list[str], tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> list[str]:
        """Return the texts negated; one that is left out stays."""
        if self.options.method != "column":
            negated = [self._negate(text) for text in x]
            return [old if new is None else new for old, new in zip(x, negated, strict=True)]
        given = ctx.texts(self.options.column)
        if len(given) != len(x):
            raise CseError(
                f"view {view.name} has {len(x)} texts of {len(given)} rows, the column one a row",
                where=f"aug.{self.name}.method",
                value="column",
                hint="use another method for this view",
            )
        return given
