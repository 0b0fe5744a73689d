"""Decoders that write a sentence from left to right with nothing but one vector to go by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from cse_core.functional import draw_like_bert
from cse_core.protocols import Encoder, MaskedHead


@dataclass(frozen=True)
class Rows:
    """R rows of T tokens lying end to end, and where they are side by side.

    Attributes:
        ids: ``[T]``.
        positions: ``[T]``, from 0 in each row.
        offsets: ``[R + 1]`` where each begins, on the CPU; the last is T.
        row: ``[T]`` the row of each token, on the device of the ids.
    """

    ids: Tensor
    positions: Tensor
    offsets: Tensor
    row: Tensor

    @cached_property
    def longest(self) -> int:
        """Return the tokens of the longest row."""
        return int(self.offsets.diff().max())

    @cached_property
    def slots(self) -> Tensor:
        """Return ``[T]`` the place of each token in rows of the longest length."""
        return self.row * self.longest + self.positions


def attend_to_earlier(
    query: Tensor, key: Tensor, value: Tensor, rows: Rows, heads: int, drop: nn.Dropout
) -> Tensor:
    """Return ``[T, H]``: each token attends to itself and to those before it in its row.

    Padding lies behind every real token, so that no real token sees it and no mask is needed.
    """
    if not len(query):
        return value
    count, size = len(rows.offsets) - 1, query.shape[1] // heads

    def side_by_side(tokens: Tensor) -> Tensor:
        padded = tokens.new_zeros(count * rows.longest, tokens.shape[1])
        padded = padded.index_copy(0, rows.slots, tokens)
        return padded.view(count, rows.longest, heads, size).transpose(1, 2)

    q, k, v = map(side_by_side, (query, key, value))
    p = drop.p if drop.training else 0.0
    if p == 0.0 or q.device.type != "cpu":
        seen = functional.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
    else:  # torch's kernel for CPUs has no dropout, and the module's masks follow the run's seed
        later = torch.full((rows.longest, rows.longest), -torch.inf, dtype=q.dtype).triu(1)
        scores = torch.matmul(q * size**-0.5, k.mT) + later
        seen = torch.matmul(drop(scores.softmax(-1)), v)
    return seen.transpose(1, 2).reshape(-1, heads * size).index_select(0, rows.slots)


class FromVector(nn.Module):
    """Attention to one vector: its softmax is 1, so query and key would have no effect.

    What is left of it are its value and output matrices.
    """

    def __init__(self, dimension: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.value = nn.Linear(dimension, hidden)
        self.dense = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor, row: Tensor) -> Tensor:
        """Return ``[T, H]`` from ``[R, D]`` vectors and the row of each token."""
        seen: Tensor = self.dense(self.value(vectors))
        return cast(Tensor, self.dropout(seen.index_select(0, row)))


class EncoderLayers(nn.Module):
    """A BERT that reads from left to right and attends to one vector in each layer.

    The layers are those of ``encoder``, which is registered here only if ``owned``.
    """

    def __init__(self, encoder: Encoder, head: MaskedHead, dimension: int, owned: bool) -> None:
        super().__init__()
        self._encoder = (encoder,)
        if owned:
            self.encoder = encoder
        self.head = head
        self.head.tie(encoder)
        config = encoder.model.config
        self.heads = int(config.num_attention_heads)
        hidden, p = encoder.hidden_size, config.hidden_dropout_prob
        layers = range(encoder.layer_count)
        self.cross = nn.ModuleList(FromVector(dimension, hidden, p) for _ in layers)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden, config.layer_norm_eps) for _ in layers)
        draw_like_bert(self.cross)

    def forward(self, rows: Rows, vectors: Tensor) -> Tensor:
        """Return ``[T, V]`` logits of the token behind each token."""
        (encoder,) = self._encoder
        words = encoder.word_embeddings(rows.ids)
        x = encoder.input_embeddings(words, rows.positions, rows.offsets)
        layers = layers_like_bert(encoder)
        for layer, cross, norm in zip(layers, self.cross, self.norms, strict=True):
            attention = layer.attention.self
            made = attention.query(x), attention.key(x), attention.value(x)
            seen = attend_to_earlier(*made, rows, self.heads, attention.dropout)
            x = layer.attention.output(seen, x)
            x = norm(x + cross(vectors, rows.row))
            x = layer.output(layer.intermediate(x), x)
        return cast(Tensor, self.head(x))


def layers_like_bert(encoder: Encoder) -> list[Any]:
    """Return the layers of an encoder, none where they do not have BERT's modules."""
    layers = list(getattr(getattr(encoder.model, "encoder", None), "layer", ()))
    names = ("attention.self.query", "attention.self.dropout", "attention.output", "intermediate",
             "output.LayerNorm")  # fmt: skip
    known = [{name for name, _ in layer.named_modules()} for layer in layers]
    return layers if all(name in inner for inner in known for name in names) else []


class NewLayers(nn.Module):
    """A small decoder of its own, for any encoder, of which it uses the word embeddings alone.

    Each layer normalises before attention and before its two linear layers, as GPT-2's do.
    Positions are sines; the output matrix is the encoder's word embeddings.
    """

    def __init__(self, encoder: Encoder, dimension: int, layers: int) -> None:
        super().__init__()
        self._encoder = (encoder,)
        config, hidden, words = encoder.model.config, encoder.hidden_size, encoder.embedding_size
        self.heads = int(getattr(config, "num_attention_heads", 1))
        p = float(getattr(config, "hidden_dropout_prob", 0.0))
        self.enter = nn.Sequential(nn.Linear(words, hidden), nn.LayerNorm(hidden))
        self.layers = nn.ModuleList(_Layer(dimension, hidden, p) for _ in range(layers))
        self.leave = nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, words))
        self.bias = nn.Parameter(torch.zeros(encoder.vocab_size))
        draw_like_bert(self)

    def forward(self, rows: Rows, vectors: Tensor) -> Tensor:
        """Return ``[T, V]`` logits of the token behind each token."""
        (encoder,) = self._encoder
        x = self.enter(encoder.word_embeddings(rows.ids))
        x = x + sines(rows.positions, x.shape[1]).to(x.dtype)
        for layer in self.layers:
            x = layer(x, vectors, rows, self.heads)
        table = encoder.model.get_input_embeddings().weight
        return functional.linear(self.leave(x), table, self.bias)


class _Layer(nn.Module):
    def __init__(self, dimension: int, hidden: int, p: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.attention = nn.Linear(hidden, 3 * hidden)
        self.output = nn.Linear(hidden, hidden)
        self.cross = FromVector(dimension, hidden, p)
        self.wide = nn.Linear(hidden, 4 * hidden)
        self.narrow = nn.Linear(4 * hidden, hidden)
        self.dropout = nn.Dropout(p)

    def forward(self, x: Tensor, vectors: Tensor, rows: Rows, heads: int) -> Tensor:
        first, second = self.norms
        query, key, value = self.attention(first(x)).chunk(3, dim=1)
        seen = attend_to_earlier(query, key, value, rows, heads, self.dropout)
        x = x + self.dropout(self.output(seen)) + self.cross(vectors, rows.row)
        inner = functional.gelu(self.wide(second(x)))
        return cast(Tensor, x + self.dropout(self.narrow(inner)))


def sines(positions: Tensor, width: int) -> Tensor:
    """Return ``[T, width]`` sines and cosines of ``[T]`` positions (Vaswani et al., 3.5)."""
    steps = torch.arange(0, width, 2, device=positions.device)
    angles = positions[:, None] * torch.exp(steps * (-math.log(10_000) / width))
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :width]
