"""Hidden tokens that a network beside the encoder predicts, with one state of the encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from cse_core.errors import CseError
from cse_core.functional import draw_like_bert
from cse_core.parts import Setup, TokenLoss
from cse_core.types import NO_LABEL, StepContext, TokenStates, TokenSums
from cse_mlm.loss import predicted
from cse_mlm.mask import Mask
from cse_mlm.options import AuxiliaryMlmOptions


class AuxiliaryMlm(nn.Module, TokenLoss):
    """The auxiliary network of InfoCSE (Wu et al., 2022, section 3).

    The lower layers of the run's model, as its folder has it, read the rows with hidden tokens;
    they do not train. New layers read what these make, with the last state of the encoder in
    training in place of each row's first one, and the model's prediction head predicts the hidden
    tokens: cross entropy, the mean over all of them. Through that one state alone a gradient
    reaches the encoder. The head's matrix is one of its own, as in the authors' code; their layers
    begin with Condenser's weights where a file has them, ours are drawn.
    """

    def __init__(self, options: AuxiliaryMlmOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        self._mask = Mask(options, setup, "loss")
        lower, self.head, _ = setup.load_masked_lm()
        self.head.tie(None)
        count = options.lower or max(1, lower.layer_count // 2)
        for name, wanted in (("lower", count), ("layers", options.layers)):
            if wanted > lower.layer_count:
                what = f"the model has {lower.layer_count} layers"
                where, hint = f"loss.{setup.name}.{name}", f"take {lower.layer_count} at most"
                raise CseError(what, where=where, value=wanted, hint=hint)
        self.upper = lower.copy()
        self.upper.drop_layers(options.layers)
        lower.drop_layers(count)
        # Frozen and a part of the run's model, so it is not among what is trained or kept.
        self._lower = (lower.requires_grad_(False).train(options.dropout).to(setup.device),)
        self.upper.requires_grad_(False)  # what enters its layers is made by the lower ones
        self.upper.model.set_input_embeddings(lower.model.get_input_embeddings())
        with setup.seeded("layers"):
            for layer in self.upper.layers():
                draw_like_bert(layer.requires_grad_(True))

    def sums(self, views: Mapping[str, TokenStates], ctx: StepContext) -> TokenSums:
        """Return the cross entropies of the hidden tokens of these rows, and their number."""
        states, labels = zip(*(self._read(*view, ctx) for view in views.items()), strict=True)
        wanted = torch.cat(labels)
        labelled = (wanted != NO_LABEL).nonzero().squeeze(1)
        return predicted(self.head, torch.cat(states), wanted, labelled)

    def _read(self, name: str, view: TokenStates, ctx: StepContext) -> tuple[Tensor, Tensor]:
        """Return the upper states ``[T, H]`` of a view's rows, and the labels ``[T]``."""
        hidden = self._mask.hide(view.tokens, lambda what, x: ctx.uniform(f"{what} {name}", x))
        rows, (lower,) = (hidden.positions, hidden.offsets), self._lower
        with torch.no_grad():
            words = lower.word_embeddings(hidden.ids)
            below = lower(words, *rows).last
        first = hidden.offsets[:-1][hidden.lengths > 0].to(below.device, non_blocking=True)
        firsts = view.states.index_select(0, first).to(below.dtype)
        given = below.index_copy(0, first, firsts)
        above = self.upper(words, *rows, on_input=lambda _: given).last
        return above, cast(Tensor, hidden.labels)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """Return the weights that train."""
        names = {name for name, weight in self.named_parameters() if weight.requires_grad}
        return {k: v for k, v in super().state_dict(*args, **kwargs).items() if k in names}

    def load_state_dict(  # type: ignore[override]
        self, state: Mapping[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Restore them."""
        return super().load_state_dict(state, strict=False)
