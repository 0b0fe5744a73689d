"""The loss of a decoder that rebuilds sentences from their vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from cse_core.errors import CseError
from cse_core.parts import Setup, TokenLoss
from cse_core.types import StepContext, TokenStates, TokenSums
from cse_denoising.decoder import EncoderLayers, NewLayers, Rows, layers_like_bert
from cse_denoising.options import ReconstructionOptions


class Reconstruction(nn.Module, TokenLoss):
    """Cross entropy of every token of a text, given its vector and the tokens before it.

    The mean over all tokens of the batch (Wang et al., 2021, Eq. 1). The vector is that of the
    view, which lacks words, behind the heads. A ``tied`` decoder is the encoder itself, with new
    weights for the attention to the vector and the prediction head of the model's folder.
    """

    def __init__(self, options: ReconstructionOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        self._tokenizer, encoder = setup.tokenizer, setup.online_encoder()
        fits = bool(layers_like_bert(encoder))
        kind = options.decoder if options.decoder != "auto" else ("tied" if fits else "new")
        if kind != "new" and not fits:
            where = f"loss.{setup.name}.decoder"
            what = f"needs the layers of BERT or RoBERTa, not those of {_family(encoder)}"
            raise CseError(what, where=where, value=kind, hint="use new, or auto")
        self.decoder: EncoderLayers | NewLayers
        with setup.seeded("decoder"):
            if kind == "new":
                self.decoder = NewLayers(encoder, setup.dimension, options.layers or 2)
            else:
                copy, head, _ = setup.load_masked_lm()
                source = encoder if kind == "tied" else copy
                self.decoder = EncoderLayers(source, head, setup.dimension, kind == "copy")

    def sums(self, views: Mapping[str, TokenStates], ctx: StepContext) -> TokenSums:
        """Return the cross entropies of the tokens of these rows' texts, and their number."""
        vectors = (view := views[self.options.view]).vectors
        content = ctx.tokens(self.options.column).take_rows(view.place)
        whole = self._tokenizer.wrap(content)
        inner = torch.ones(len(whole.ids), dtype=torch.bool)
        ends = whole.offsets[1:] - 1
        read = whole.keep_tokens(inner.index_fill(0, ends, False)).to(vectors.device)
        wanted = whole.ids[inner.index_fill(0, whole.offsets[:-1], False)]
        rows = Rows(read.ids, read.positions, read.offsets, read.row_of_token())
        logits = self.decoder(rows, vectors)
        logits = logits.float() if logits.element_size() < 4 else logits
        wanted = wanted.to(logits.device, non_blocking=True)
        total = cross_entropy(logits, wanted, reduction="sum")
        # Of no rows too the vectors take part, so that every process has the same gradients.
        return TokenSums(total + vectors.sum() * 0, logits.new_full((), float(len(wanted))))


def _family(encoder: Any) -> str:
    return str(encoder.model.config.model_type)
