"""The loss of a decoder that rebuilds a text from noise and a vector."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cse_core.errors import CseError
from cse_core.functional import draw_like_bert, places_of
from cse_core.parts import Setup, TokenLoss
from cse_core.types import StepContext, TokenBatch, TokenStates, TokenSums
from cse_denosent.options import DenoiseOptions


class Denoise(nn.Module, TokenLoss):
    """Cross entropy of every token of a view, given its noisy embeddings and another's vector.

    The generative objective of DenoSent (Wang et al., 2024): a decoder reads in both directions,
    and each layer attends to the vector alone. Its input, what enters the encoder's first layer,
    has no gradient. The prediction head is that of the model's folder, tied to the encoder's word
    embeddings. The mean is over all tokens of the batch, special ones and templates too.

    Raises:
        CseError: If vectors do not have the encoder's hidden size, or heads do not divide it.
    """

    def __init__(self, options: DenoiseOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        size, where = setup.hidden_size, f"loss.{setup.name}"
        if setup.dimension != size:
            what = f"vectors of {setup.dimension} numbers are not read by a decoder of {size}"
            raise CseError(what, where=where, hint=f"let the last head make {size} numbers")
        if size % options.heads:
            what = f"does not divide the hidden size {size}"
            raise CseError(what, where=f"{where}.heads", value=options.heads)
        encoder = setup.online_encoder()
        self._encoder = (encoder,)  # registered once, as the encoder
        _, self.head, _ = setup.load_masked_lm()
        self.head.tie(encoder)
        with setup.seeded("decoder"):
            layer = nn.TransformerDecoderLayer(
                size, options.heads, options.wide, options.dropout, batch_first=True
            )
            # Masks of attention weights are drawn by torch itself, out of reach of the run's seed.
            layer.self_attn.dropout = layer.multihead_attn.dropout = 0.0
            self.decoder = nn.TransformerDecoder(layer, options.layers)
            draw_like_bert(self.decoder)
        self.noise = nn.Dropout(options.noise)

    def sums(self, views: Mapping[str, TokenStates], ctx: StepContext) -> TokenSums:
        """Return the cross entropies of the tokens of the target's rows, and their number."""
        view, target = views[self.options.view], views[self.options.target].tokens
        if not target.rows:  # every process has the same gradients, also without rows
            nothing = self._logits(
                _one_token(target), view.vectors.new_zeros(1, view.vectors.shape[1])
            )
            zero = nothing.sum() * 0 + view.vectors.sum() * 0
            return TokenSums(zero, zero.detach(), {"accuracy": zero.detach()})
        place = places_of(target.owner, view.tokens.owner)
        logits = self._logits(target, view.vectors.index_select(0, place))
        right = (logits.detach().argmax(dim=1) == target.ids).sum()
        return TokenSums(
            total=cross_entropy(logits, target.ids, reduction="sum"),
            count=logits.new_full((), float(len(target.ids))),
            parts={"accuracy": right.to(logits.dtype)},
        )

    def _logits(self, tokens: TokenBatch, vectors: Tensor) -> Tensor:
        """Return ``[T, V]`` logits of rows of T tokens, from ``[R, H]`` vectors."""
        (encoder,) = self._encoder
        with torch.no_grad():
            words = encoder.word_embeddings(tokens.ids)
            inputs = encoder.input_embeddings(words, tokens.positions, tokens.offsets)
        noisy = self.noise(inputs).to(vectors.dtype)
        longest = int(tokens.lengths.max())
        place = torch.cat([torch.arange(int(n)) for n in tokens.lengths])
        place = place.to(vectors.device, non_blocking=True)
        place = place + tokens.row_of_token() * longest
        padded = noisy.new_zeros(tokens.rows * longest, noisy.shape[1])
        padded = padded.index_copy(0, place, noisy).unflatten(0, (tokens.rows, longest))
        absent = torch.ones(tokens.rows * longest, dtype=torch.bool, device=vectors.device)
        absent = absent.index_fill(0, place, False).view(tokens.rows, longest)
        states = self.decoder(padded, vectors.unsqueeze(1), tgt_key_padding_mask=absent)
        logits: Tensor = self.head(states.flatten(0, 1).index_select(0, place))
        return logits.float() if logits.element_size() < 4 else logits


def _one_token(tokens: TokenBatch) -> TokenBatch:
    """Return a row of one token, on the device of a batch without rows."""
    zero = torch.zeros(1, dtype=torch.long, device=tokens.ids.device)
    return TokenBatch(
        ids=zero, positions=zero, source=zero, word=zero, special=zero.bool(),
        offsets=torch.tensor([0, 1]), owner=zero, slot=zero,
    )  # fmt: skip
