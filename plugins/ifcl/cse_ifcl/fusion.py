"""The fusion of two languages' embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.parts import Augmenter, RoundContext, Setup
from cse_core.protocols import Rows
from cse_core.types import StepContext, TokenBatch, View
from cse_ifcl.options import Alone, FusionOptions
from cse_ifcl.second_embeddings import SecondEmbeddings


class Fusion(Augmenter):
    """``epsilon * y + (1 - epsilon) * y_F``, token by token: IFCL's fraternal twin.

    ``y`` is a sentence's own embedding and ``y_F`` that of its translation by a second, frozen
    model. The paper adds two sequences of different lengths and does not say how their tokens
    meet; here content token i meets content token i. ``y_F`` of ``input_embeddings`` has the
    position of the token that it is fused with, so that no position is added twice.
    """

    def __init__(self, options: FusionOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.second = SecondEmbeddings(options, setup)
        self.rows: Rows | None = None

    def begin_round(self, rows: Rows, ctx: RoundContext) -> None:
        """Tokenise the other language's column, not in the first step."""
        self.rows = rows
        if rows.pairs is None:
            none = torch.empty(0, dtype=torch.long)
            rows.content(self.options.column, none, self.second.tokenizer)

    def __call__(
        self, x: Tensor, tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> Tensor:
        """Return ``[T, E]`` fused embeddings."""
        if tokens is None or self.rows is None:
            raise RuntimeError("fusion is called before its round begins")
        ids, matched = self._counterparts(self.rows, tokens, ctx)
        other = self.second(ids, tokens).to(x.dtype)
        alone = {"unmatched": ~matched & ~tokens.special, "special": tokens.special}
        nothing, kept = self._alone(alone, "zero"), self._alone(alone, "keep")
        if nothing is not None:
            other = other.masked_fill(nothing.unsqueeze(1), 0)
        epsilon = self.options.epsilon
        fused = epsilon * x + (1 - epsilon) * other
        return fused if kept is None else torch.where(kept.unsqueeze(1), x, fused)

    def _counterparts(
        self, rows: Rows, tokens: TokenBatch, ctx: StepContext
    ) -> tuple[Tensor, Tensor]:
        """Return ``[T]`` ids of the tokens that a view's meet, and ``[T]`` whether there is one.

        The place is a token's ``source``, so one that was moved or doubled keeps its counterpart.
        """
        column, tokenizer, longest = self.options.column, self.second.tokenizer, self.second.longest
        if ctx.round == 0:
            other = rows.content(column, ctx.rows, tokenizer)
        else:  # the rows of a batch of mined pairs are no places among those of the round
            other = tokenizer.content(ctx.texts(column), longest)
        ids = torch.cat([other.ids, other.ids.new_tensor([tokenizer.hf.pad_token_id or 0])])
        ids, offsets = (part.to(ctx.device, non_blocking=True) for part in (ids, other.offsets))
        row = tokens.owner[tokens.row_of_token()]
        place = offsets[row] + tokens.source
        matched = (tokens.source >= 0) & (tokens.source < longest) & ~tokens.special
        matched &= place < offsets[row + 1]
        return ids[torch.where(matched, place, len(ids) - 1)], matched

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the name and hash of the second embeddings, which never change."""
        return {"model": self.second.name, "digest": self.second.digest}

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """See that the second embeddings are those that the run began with.

        Raises:
            CseError: If they are others.
        """
        if state["digest"] != self.second.digest:
            raise CseError(
                f"its embeddings are not the ones the run started with ({state['model']})",
                where=f"aug.{self.name}.model",
                value=self.second.name,
                hint="restore the model it started with, or start a new run",
            )

    def _alone(self, tokens: Mapping[str, Tensor], treatment: Alone) -> Tensor | None:
        """Return ``[T]`` the tokens without a counterpart that are treated so."""
        treated = None
        for name, here in tokens.items():
            if getattr(self.options, name) == treatment:
                treated = here if treated is None else treated | here
        return treated
