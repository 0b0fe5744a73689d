"""The embeddings of a second model, frozen."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.parts import Setup
from cse_core.protocols import Encoder
from cse_core.types import TokenBatch
from cse_ifcl.options import FusionOptions

_MEASURED = 4096
"""Ids whose embeddings tell the size of a layer's output."""


class SecondEmbeddings:
    """Word embeddings of a second model, or what enters its first layer, as wide as the run's own.

    Attributes:
        name: The second model.
        encoder: The second model, without its transformer layers.
        tokenizer: Its tokenizer.
        longest: Tokens of a sentence that it can use.
        digest: Hash of the frozen values.

    Raises:
        CseError: If the model is missing, or its embeddings have another dimension and there is
            no projection.
    """

    def __init__(self, options: FusionOptions, setup: Setup) -> None:
        self._where = f"aug.{setup.name}"
        self._words = options.at == "word_embeddings"
        if options.model is None:
            self.name, self.tokenizer = "the run's own encoder", setup.tokenizer
            self.encoder = _frozen(setup.online_encoder().copy())
        else:
            second = setup.load_model(options.model)
            self.name, self.tokenizer = options.model, second.tokenizer
            self.encoder = _frozen(second.encoder)
        self.longest = self.encoder.max_positions
        values = self.encoder.state_dict().values()
        self.digest = _digest([self._sample(self.encoder, setup.device)] if self._words else values)
        self._projection: Tensor | None = None
        wanted, size = (
            source.embedding_size if self._words else source.hidden_size
            for source in (setup, self.encoder)
        )
        if size == wanted:
            return
        if options.projection == "none":
            raise CseError(
                f"its embeddings have dimension {size}, those of the run {wanted}",
                where=f"{self._where}.model",
                value=self.name,
                hint=f"--set {self._where}.projection=random takes them through a fixed random "
                "matrix, or name a model of that dimension",
            )
        with torch.no_grad():
            drawn = torch.randn(size, wanted, generator=setup.generator("projection"))
            matrix = drawn.to(setup.device)
            here = self._sample(_frozen(setup.online_encoder().copy()), setup.device)
            mapped = self._sample(self.encoder, setup.device) @ matrix
            self._projection = matrix * (_size(here) / _size(mapped))

    def __call__(self, ids: Tensor, tokens: TokenBatch) -> Tensor:
        """Return ``[T, E]`` the embeddings of ``[T]`` ids at the places of a view's tokens.

        Raises:
            CseError: If a row is longer than the second model takes.
        """
        if not self._words and int(tokens.lengths.max()) > self.longest:
            raise CseError(
                f"takes rows of {self.longest} tokens at most, and there is one of "
                f"{int(tokens.lengths.max())}",
                where=f"{self._where}.model",
                value=self.name,
                hint=f"--set model.max_length={self.longest}, or fuse at word_embeddings",
            )
        with torch.no_grad(), torch.autocast(ids.device.type, enabled=False):
            values = self._of(self.encoder, ids, tokens.positions, tokens.offsets)
            return values if self._projection is None else values @ self._projection

    def _of(self, encoder: Encoder, ids: Tensor, positions: Tensor, offsets: Tensor) -> Tensor:
        words = encoder.word_embeddings(ids)
        return words if self._words else encoder.input_embeddings(words, positions, offsets)

    def _sample(self, encoder: Encoder, device: torch.device) -> Tensor:
        """Return embeddings that tell their size: the word table, or rows of one id each."""
        last = encoder.vocab_size - 1
        if self._words:
            return encoder.word_embeddings(torch.arange(last + 1, device=device))
        ids = torch.linspace(0, last, min(_MEASURED, last + 1), device=device).long()
        return self._of(encoder, ids, torch.zeros_like(ids), torch.arange(len(ids) + 1))


def _frozen(encoder: Encoder) -> Encoder:
    """Return an encoder in evaluation mode, without the layers, which never run."""
    encoder.drop_layers()
    return encoder.requires_grad_(False).eval()


def _size(values: Tensor) -> Tensor:
    """Return the root mean square."""
    return values.square().mean().sqrt()


def _digest(values: Iterable[Tensor]) -> str:
    """Return a hash of tensors, those that were dropped left out."""
    whole = hashlib.sha256()
    for value in values:
        if not value.is_meta:
            whole.update(value.detach().cpu().contiguous().numpy().tobytes())
    return f"sha256:{whole.hexdigest()}"
