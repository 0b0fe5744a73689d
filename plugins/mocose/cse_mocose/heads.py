"""Projector and predictor: heads of linear layers with layer norm and dropout."""

from __future__ import annotations

from torch import Tensor, nn

from cse_core.errors import CseError
from cse_core.parts import Head, Setup
from cse_mocose.options import ProjectorOptions

NORM_EPS = 1e-12
"""Epsilon of the layer norms: BERT's own, which the authors' code takes."""


class _Layers(nn.Module, Head):
    """Linear layers, each with layer norm and dropout.

    Weights start as BERT's do, and as those of the authors' code: normal with standard deviation
    0.02, biases zero.

    Raises:
        CseError: If it has no layer and is to change the dimension.
    """

    def __init__(self, options: ProjectorOptions, setup: Setup) -> None:
        super().__init__()
        self.options = options
        self.dimension = options.dimension or setup.dimension
        if not options.layers and self.dimension != setup.dimension:
            raise CseError(
                f"without layers its {setup.dimension} dimensions do not change",
                where=f"pool.{setup.name}.dimension",
                value=options.dimension,
                hint=f"set it to {setup.dimension}, or pool.{setup.name}.layers to 1",
            )
        draws = setup.generator("weights")
        stages: list[nn.Module] = []
        size = setup.dimension
        for number in range(options.layers):
            linear = nn.Linear(size, self.dimension)
            nn.init.normal_(linear.weight, std=0.02, generator=draws)
            nn.init.zeros_(linear.bias)
            stages += [linear, *self._behind(number)]
            size = self.dimension
        self.stages = nn.Sequential(*stages)

    def _behind(self, number: int) -> list[nn.Module]:
        """Return the modules that follow a linear layer."""
        return [nn.LayerNorm(self.dimension, eps=NORM_EPS), nn.Dropout(self.options.dropout)]

    def forward(self, vectors: Tensor) -> Tensor:
        """Return ``[N, D']`` from ``[N, D]``."""
        mapped: Tensor = self.stages(vectors)
        return mapped


class Projector(_Layers):
    """Maps pooled vectors to the space of keys and queries (MoCoSE, Figure 1).

    One layer is that of the authors' code. More crash there (Table 4, rows 2 and 3), so how they
    are stacked is ours: each is linear, layer norm, dropout.
    """


class Predictor(_Layers):
    """Maps the online branch's projections towards the keys (MoCoSE, Figure 1; BYOL).

    As in the authors' code the last layer is linear with tanh, those before it linear with layer
    norm and dropout.
    """

    def _behind(self, number: int) -> list[nn.Module]:
        last = number == self.options.layers - 1
        return [nn.Tanh()] if last else super()._behind(number)
