"""The head, and the linear map that it is fitted to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from cse_core.errors import CseError
from cse_core.parts import Head, RoundContext, Setup
from cse_core.protocols import Column, Rows
from cse_whitening.options import WhiteningOptions

_AT_ONCE = 4096
"""Texts that are encoded before their vectors are summed and forgotten."""


class Whitening(nn.Module, Head):
    """``(x - mean) W`` of Su et al. (2021): mean zero, covariance one on the texts it is fitted to.

    ``W`` is ``U / sqrt(S)`` of the eigenvectors and eigenvalues of their covariance, the largest
    ``dimension`` of them. It is fitted before the first step, to the column ``text`` of all rows,
    and no gradient moves it.

    Raises:
        CseError: If it is to have more dimensions than its input.
    """

    fitted: Tensor

    def __init__(self, options: WhiteningOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        size = setup.dimension
        self.dimension = options.dimension or size
        if self.dimension > size:
            raise CseError(
                f"there are {size} dimensions to keep",
                where=f"pool.{setup.name}.dimension",
                value=options.dimension,
                hint=f"--set pool.{setup.name}.dimension={size}",
            )
        self.linear = nn.Linear(size, self.dimension)
        nn.init.eye_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.requires_grad_(False)
        self.register_buffer("fitted", torch.tensor(False))
        self._skipped, self._passed = False, torch.empty(0, size)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return ``[N, k]`` from ``[N, D]``."""
        if self._skipped:
            self._passed = vectors[-1:]
            return vectors
        mapped: Tensor = self.linear(vectors)
        return mapped

    def sentence_transformers(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return an equal Dense module."""
        config = {
            "in_features": self.linear.in_features,
            "out_features": self.linear.out_features,
            "bias": True,
            "activation_function": "torch.nn.modules.linear.Identity",
        }
        return config, {f"linear.{key}": value for key, value in self.linear.state_dict().items()}

    def begin_round(self, rows: Rows, ctx: RoundContext) -> None:
        """Fit the map to the texts, before the first round of a run that begins.

        Raises:
            CseError: If the model cuts or normalises its vectors, which it does behind its heads,
                or they vary in fewer directions than are asked for.
        """
        if not self.fitted:
            self.fit(ctx.corpus.column("text"), ctx)

    def fit(self, texts: Column, ctx: RoundContext) -> None:
        """Fit the map to the vectors of texts."""
        size = self.linear.in_features
        # Around the first vector: sums of squares of vectors far from zero would lose digits.
        shift: Tensor | None = None
        total = torch.zeros(size, dtype=torch.float64)
        products = torch.zeros(size, size, dtype=torch.float64)
        with self._passing():
            for start in range(0, len(texts), _AT_ONCE):
                stop = min(start + _AT_ONCE, len(texts))
                vectors = ctx.encode(texts.take(range(start, stop))).double()
                if shift is None:
                    self._refuse_changed(vectors)
                    shift = vectors[0]
                vectors = vectors - shift
                total += vectors.sum(dim=0)
                products += vectors.T @ vectors
                ctx.progress(stop, len(texts), "whitening")
        assert shift is not None, "a corpus has rows"
        count = len(texts)
        covariance = (products - torch.outer(total, total) / count) / max(count - 1, 1)
        weight, bias, rank = whitening(total / count + shift, covariance, self.dimension)
        what = f"the vectors of {count} texts vary in {rank} directions alone"
        if rank < min(self.options.dimension or 1, size):
            raise CseError(
                what,
                where=f"pool.{self.name}.dimension",
                value=self.dimension,
                hint=f"--set pool.{self.name}.dimension={max(rank, 1)}, or give more texts",
            )
        if rank < self.dimension and count <= size:
            ctx.warning(f"pool.{self.name}: {what}, and all others become zero")
        self.linear.weight.copy_(weight)
        self.linear.bias.copy_(bias)
        self.fitted.fill_(True)

    def _refuse_changed(self, vectors: Tensor) -> None:
        """Refuse vectors that are not those which reach the head."""
        where = f"pool.{self.name}"
        if vectors.shape[1] != self.linear.in_features:
            what, hint = "the model cuts its vectors", "--set inference.truncate_dim=none"
            raise CseError(what, where=where, hint=hint)
        if bool((vectors.norm(dim=1) - 1).abs().max() < 1e-5):
            what, hint = "the model normalises its vectors", "--set inference.normalize=false"
            raise CseError(what, where=where, hint=hint)
        apart = torch.cdist(self._passed.double().cpu(), vectors) / vectors.norm(dim=1)
        if bool((apart.amin(dim=1) > 0.1).any()):
            what = "a head behind it is saved too, and changes its vectors"
            raise CseError(what, where=where, hint="put it last, or remove the other head")

    @contextmanager
    def _passing(self) -> Iterator[None]:
        kept, self.dimension = self.dimension, self.linear.in_features
        self._skipped = True
        try:
            yield
        finally:
            self._skipped, self.dimension = False, kept
            self._passed = self._passed[:0]


def whitening(mean: Tensor, covariance: Tensor, kept: int) -> tuple[Tensor, Tensor, int]:
    """Return the weight ``[k, D]`` and bias ``[k]`` of ``(x - mean) W``, and the rank.

    A direction without variance becomes zero: the mean of states behind a layer norm has one.

    Args:
        mean: ``[D]`` in float64.
        covariance: ``[D, D]`` in float64.
        kept: k.
    """
    values, directions = torch.linalg.eigh(covariance)
    values, directions = values.flip(0), directions.flip(1)
    least = values[0] * len(values) * torch.finfo(torch.float32).eps  # the vectors are float32
    varies = values > least
    scale = torch.where(varies, values.clamp_min(least).rsqrt(), 0.0)
    weight = (directions * scale)[:, :kept].T
    return weight, -weight @ mean, int(varies.sum())
