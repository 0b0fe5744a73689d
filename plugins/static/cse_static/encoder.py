"""The encoder: a table of token vectors."""

from __future__ import annotations

import sys
from collections.abc import Collection
from copy import deepcopy

import torch
from torch import Tensor, nn

from cse_core.protocols import Encoder
from cse_core.types import Hidden


class Table(nn.Module):
    """Token vectors ``[V, D]``, by the name that sentence-transformers' StaticEmbedding has."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(vectors), vectors.shape[1], _weight=vectors)


class StaticEncoder(Encoder):
    """An encoder without layers: a token's state is its vector.

    Args:
        vectors: ``[V, D]``.
    """

    layer_count = 0
    max_positions = sys.maxsize
    tokens_at_once = 2**18

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.model: Table = Table(vectors)
        self.vocab_size, self.hidden_size = vectors.shape
        self.embedding_size = self.hidden_size

    def copy(self, share_embeddings: bool = False) -> StaticEncoder:
        """Copy the table, or share it where it is not trained, or on request."""
        weight = self.model.embedding.weight
        shared = share_embeddings or not weight.requires_grad
        return deepcopy(self, {id(weight): weight} if shared else {})

    def word_embeddings(self, ids: Tensor) -> Tensor:
        """Look ``[T]`` ids up: ``[T, D]``."""
        vectors: Tensor = self.model.embedding(ids)
        return vectors

    def input_embeddings(self, words: Tensor, positions: Tensor, offsets: Tensor) -> Tensor:
        """Return ``[T, D]`` unchanged: nothing stands between the table and the states."""
        return words

    def layers(self) -> list[nn.Module]:
        """List no layers."""
        return []

    def forward(
        self,
        words: Tensor,
        positions: Tensor,
        offsets: Tensor,
        *,
        on_input: object = None,
        layers: Collection[int] = (),
        read: Tensor | None = None,
    ) -> Hidden:
        """Give the vectors as states; layer 0 is what they are before and after (see Encoder)."""
        if wrong := [number for number in layers if number != 0]:
            raise ValueError(f"no layer {wrong[0]}: the encoder has none")
        states = on_input(words) if callable(on_input) else words
        return Hidden(states, dict.fromkeys(layers, states))


def drawn(vectors: Tensor, seed: int) -> Tensor:
    """Draw vectors of the same shape as torch draws an embedding."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(vectors.shape, generator=generator)
