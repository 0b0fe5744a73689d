"""An encoder and the head that predicts masked tokens, or the next one, of any family."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast

from cse_core.protocols import Encoder, MaskedHead
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.pretrained import load_model, load_tokenizer, translate_load_errors
from cse_defaults.transformers.tokenizer import TextTokenizer

WithHead = tuple[PackedEncoder, "Head", TextTokenizer]


class _Given(nn.Module):
    """Stands where the encoder stood, and returns states that are there already."""

    states: Tensor | None = None

    def forward(self, *_: Any, **__: Any) -> BaseModelOutputWithPast:
        return BaseModelOutputWithPast(last_hidden_state=self.states)


class Head(MaskedHead):
    """What a model of transformers has behind its encoder, which it loses."""

    def __init__(self, model: PreTrainedModel, pretrained: bool) -> None:
        super().__init__()
        self.pretrained = pretrained
        self._given = _Given()
        self._given.states = None
        setattr(model, model.base_model_prefix, self._given)
        self.model = model

    def tie(self, encoder: Encoder | None) -> None:
        """See the protocol."""
        # A decoder asks its encoder, which is not there, and returns None.
        matrix: Any = self.model.get_output_embeddings() or self.model.lm_head
        table = (
            matrix.weight
            if encoder is None
            else cast(Any, encoder.model).get_input_embeddings().weight
        )
        matrix.weight = nn.Parameter(table.detach().clone()) if encoder is None else table

    def forward(self, states: Tensor) -> Tensor:
        """See the protocol."""
        self._given.states = states.unsqueeze(0)
        try:
            ids = torch.zeros(1, len(states), dtype=torch.long, device=states.device)
            logits: Tensor = self.model(input_ids=ids).logits
        finally:
            self._given.states = None
        return logits.squeeze(0)


def load_masked_lm(path: str | Path, *, lower_case: bool = False, **how: Any) -> WithHead:
    """Load an encoder, its head, drawn where the folder has no weights for it, and its tokenizer.

    ``load_model`` gets ``how``.
    """
    with translate_load_errors(str(path)):
        model, pretrained = load_model(path, head=True, **how)
        tokenizer = load_tokenizer(path, lower_case=lower_case)
        inner = getattr(model, model.base_model_prefix)
        head = Head(model, pretrained)
        return PackedEncoder(inner), head, TextTokenizer(tokenizer)
