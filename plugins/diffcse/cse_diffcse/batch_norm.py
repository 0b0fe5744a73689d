"""Two linear layers with batch normalisation, in training only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from cse_core.parts import Setup, Transform
from cse_core.types import Embeddings, StepContext
from cse_diffcse.options import BatchNormMlpOptions

EPS = 1e-5
"""Added to variances, as torch's batch normalisation does."""


class BatchNormMlp(nn.Module, Transform):
    """Linear to twice the size, batch norm, ReLU, linear back, batch norm (DiffCSE's projection).

    Means and variances are those of all rows of all views of the batch, over all processes and
    chunks. None is kept: the saved model does not have this step. The second batch norm has no
    weights; no linear layer has a bias.
    """

    def __init__(self, options: BatchNormMlpOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        size = self.dimension = setup.dimension
        wide = options.wide or 2 * size
        with setup.seeded("weights"):
            self.enter = nn.Linear(size, wide, bias=False)
            self.leave = nn.Linear(wide, size, bias=False)
        self.scale = nn.Parameter(torch.ones(wide))
        self.shift = nn.Parameter(torch.zeros(wide))

    def __call__(
        self, views: Mapping[str, Embeddings], ctx: StepContext
    ) -> Mapping[str, Embeddings]:
        """Return all views of the run's dimension, changed."""
        kept = {n: v for n, v in views.items() if v.vectors.shape[1] == self.dimension}
        if not kept:
            return {}
        rows = torch.cat([view.vectors for view in kept.values()])
        made = torch.split(self.mapped(rows), [len(view) for view in kept.values()])
        return {
            name: replace(view, vectors=vectors)
            for (name, view), vectors in zip(kept.items(), made, strict=True)
        }

    def mapped(self, rows: Tensor) -> Tensor:
        """Return ``[N, D]`` from ``[N, D]``."""
        inner = normalised(self.enter(rows)) * self.scale + self.shift
        return normalised(self.leave(inner.relu()))


def normalised(rows: Tensor) -> Tensor:
    """Return ``[N, D]`` with mean 0 and variance 1 over the rows."""
    variance, mean = torch.var_mean(rows, dim=0, correction=0)
    return (rows - mean) * (variance + EPS).rsqrt()
