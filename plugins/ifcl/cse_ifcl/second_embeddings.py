"""The embeddings of a second model, frozen."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn.functional import embedding

from cse_core.errors import CseError
from cse_core.parts import Setup
from cse_core.protocols import Encoder, Tokenizer
from cse_core.types import TokenBatch
from cse_ifcl.options import FusionOptions

_MEASURED = 4096
"""Ids whose embeddings tell the size of a layer's output."""


class WordTable:
    """An encoder's word embeddings, copied.

    Attributes:
        dimension: Of an embedding.
        longest: Tokens of the longest row that it takes; None: any.
    """

    longest: int | None = None

    def __init__(self, encoder: Encoder, device: torch.device) -> None:
        self.dimension = encoder.embedding_size
        ids = torch.arange(encoder.vocab_size, device=device)
        self.table = encoder.word_embeddings(ids).detach().clone()

    def __call__(self, ids: Tensor, tokens: TokenBatch) -> Tensor:
        """Return ``[T, E]`` the embeddings of ``[T]`` ids."""
        return embedding(ids, self.table)

    def sample(self) -> Tensor:
        """Return embeddings that tell their size."""
        return self.table

    def values(self) -> Iterable[Tensor]:
        """Return what makes them."""
        return [self.table]


class EmbeddingLayer:
    """What enters an encoder's first layer: words, positions, types, LayerNorm, no dropout.

    The encoder is changed: it goes into evaluation mode and loses the weights of its transformer
    layers, which never run.

    Attributes:
        dimension: Of an embedding.
        longest: Tokens of the longest row that it takes.
    """

    def __init__(self, encoder: Encoder, device: torch.device) -> None:
        self.dimension = encoder.hidden_size
        self.longest: int | None = encoder.max_positions
        self.device = device
        encoder.drop_layers()
        self.encoder = encoder.requires_grad_(False).eval()

    def __call__(self, ids: Tensor, tokens: TokenBatch) -> Tensor:
        """Return ``[T, H]`` the embeddings of ``[T]`` ids at the places of a view's tokens."""
        return self._entering(ids, tokens.positions, tokens.offsets)

    def sample(self) -> Tensor:
        """Return embeddings of ids from all over the vocabulary, each a row of its own."""
        count = min(_MEASURED, self.encoder.vocab_size)
        ids = torch.linspace(0, self.encoder.vocab_size - 1, count, device=self.device).long()
        return self._entering(ids, torch.zeros_like(ids), torch.arange(count + 1))

    def values(self) -> Iterable[Tensor]:
        """Return what makes them."""
        return [value for value in self.encoder.state_dict().values() if not value.is_meta]

    def _entering(self, ids: Tensor, positions: Tensor, offsets: Tensor) -> Tensor:
        return self.encoder.input_embeddings(self.encoder.word_embeddings(ids), positions, offsets)


class SecondEmbeddings:
    """Word table, or embedding layer, of a second model, in the dimension of the run's own.

    Attributes:
        name: The second model.
        tokenizer: Its tokenizer.
        longest: Tokens of a sentence that it can use.
        digest: Hash of the frozen values.

    Raises:
        CseError: If the model is missing, or its embeddings have another dimension and there is
            no projection.
    """

    def __init__(self, options: FusionOptions, setup: Setup) -> None:
        self._where = f"aug.{setup.name}"
        kind = WordTable if options.at == "word_embeddings" else EmbeddingLayer
        own = setup.embedding_size if kind is WordTable else setup.hidden_size
        encoder, self.tokenizer, self.name = self._loaded(options, setup)
        self.longest = encoder.max_positions
        self.source = kind(encoder, setup.device)
        self.digest = _digest(self.source.values())
        self._projection: Tensor | None = None
        if self.source.dimension == own:
            return
        if options.projection == "none":
            raise CseError(
                f"its embeddings have dimension {self.source.dimension}, those of the run {own}",
                where=f"{self._where}.model",
                value=self.name,
                hint=f"--set {self._where}.projection=random takes them through a fixed random "
                "matrix, or name a model of that dimension",
            )
        with torch.no_grad():
            drawn = torch.randn(self.source.dimension, own, generator=setup.generator("projection"))
            matrix = drawn.to(setup.device)
            here = kind(setup.online_encoder().copy(), setup.device).sample()
            self._projection = matrix * (_size(here) / _size(self.source.sample() @ matrix))

    def __call__(self, ids: Tensor, tokens: TokenBatch) -> Tensor:
        """Return ``[T, E]`` the embeddings of ``[T]`` ids at the places of a view's tokens.

        Raises:
            CseError: If a row is longer than the second model takes.
        """
        longest = self.source.longest
        if longest is not None and int(tokens.lengths.max()) > longest:
            raise CseError(
                f"takes rows of {longest} tokens at most, and there is one of "
                f"{int(tokens.lengths.max())}",
                where=f"{self._where}.model",
                value=self.name,
                hint=f"--set model.max_length={longest}, or fuse at word_embeddings",
            )
        with torch.no_grad(), torch.autocast(ids.device.type, enabled=False):
            values = self.source(ids, tokens)
            return values if self._projection is None else values @ self._projection

    def _loaded(self, options: FusionOptions, setup: Setup) -> tuple[Encoder, Tokenizer, str]:
        if options.model is None:
            return setup.online_encoder().copy(), setup.tokenizer, "the run's own encoder"
        return *setup.load_encoder(options.model), options.model


def _size(values: Tensor) -> Tensor:
    """Return the root mean square."""
    return values.square().mean().sqrt()


def _digest(values: Iterable[Tensor]) -> str:
    whole = hashlib.sha256()
    for value in values:
        whole.update(value.detach().cpu().contiguous().numpy().tobytes())
    return f"sha256:{whole.hexdigest()}"
