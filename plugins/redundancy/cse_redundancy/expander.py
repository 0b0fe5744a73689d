"""Linear layers with batch normalisation between vectors and losses, in training only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from cse_core.parts import Setup, Transform
from cse_core.types import Embeddings, StepContext
from cse_redundancy.options import ExpanderOptions
from cse_redundancy.statistics import normalised


class Expander(nn.Module, Transform):
    """Blocks of Linear, norm, ReLU, Linear, norm, ReLU, Linear (the projector of Barlow Twins).

    Means and variances are those of the rows of a view in the batch, over all processes and chunks.
    None is kept: the saved model does not have this step. A teacher's vectors, which losses read
    from ``ctx.vectors``, do not pass through it.
    """

    def __init__(self, options: ExpanderOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        self.entry = size = setup.dimension
        wide, last = options.wide or 10 * size, options.dimension or size
        sizes = [(size if n == 0 else last, wide, wide, last) for n in range(options.blocks)]
        both = options.norms == "both"
        with setup.seeded("weights"):
            blocks = (_Block(part, both, n == len(sizes)) for n, part in enumerate(sizes, 1))
            self.blocks = nn.ModuleList(blocks)

    def __call__(
        self, views: Mapping[str, Embeddings], ctx: StepContext
    ) -> Mapping[str, Embeddings]:
        """Return all views of the run's dimension, changed."""
        kept = {n: v for n, v in views.items() if v.vectors.shape[1] == self.entry and len(v)}
        return {
            name: replace(view, vectors=self.mapped(view.vectors)) for name, view in kept.items()
        }

    def mapped(self, rows: Tensor) -> Tensor:
        """Return ``[N, D']`` from ``[N, D]``."""
        for block in self.blocks:
            rows = block(rows)
        return rows


class _Norm(nn.Module):
    """Batch normalisation with learned scale and shift, without running statistics."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))

    def forward(self, rows: Tensor) -> Tensor:
        weights = rows.new_ones(len(rows), 1)
        return normalised(rows, weights) * self.scale + self.shift


class _Block(nn.Sequential):
    """Three linear layers; a bias that the next norm takes away again would learn only noise."""

    def __init__(self, sizes: tuple[int, int, int, int], both: bool, last: bool) -> None:
        first, inner, second, final = sizes
        norms = [_Norm(inner), _Norm(second) if both else nn.Identity()]
        super().__init__(
            nn.Linear(first, inner, bias=False), norms[0], nn.ReLU(),
            nn.Linear(inner, second, bias=not both), norms[1], nn.ReLU(),
            nn.Linear(second, final, bias=last),
        )  # fmt: skip
