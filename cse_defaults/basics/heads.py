"""Heads: vectors to vectors."""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor, nn

from cse_core.errors import CseError
from cse_core.model_card import ACTIVATIONS
from cse_core.parts import Head, Setup
from cse_defaults.basics.options import MlpOptions


class Mlp(nn.Module, Head):
    """Linear layers with an activation after each; by default SimCSE's ``tanh(W h + b)``.

    Weights start as in BERT: normal with standard deviation 0.02, biases zero. (SimCSE's code
    initialises this layer by ``nn.Linear``'s own default in one place and by BERT's in another; the
    model that it trains gets BERT's.) With ``start = "pooler"`` the first layer starts as the
    encoder's own pooler, which was trained on the first token with it.

    Raises:
        CseError: If it is to start from a pooler that the encoder lacks, or of another size.
    """

    def __init__(self, options: MlpOptions, setup: Setup) -> None:
        super().__init__()
        self.dimension = options.dimension or setup.dimension
        draws = setup.generator("weights")
        stages: list[nn.Module] = []
        size = setup.dimension
        for _ in range(options.layers):
            linear = nn.Linear(size, self.dimension, bias=options.bias)
            nn.init.normal_(linear.weight, std=0.02, generator=draws)
            if options.bias:
                nn.init.zeros_(linear.bias)
            stages += [linear, getattr(nn, ACTIVATIONS[options.activation])()]
            size = self.dimension
        self.stages = nn.Sequential(*stages)
        if options.start == "pooler" and setup.corpus is not None:  # else its weights are loaded
            self._start_from_pooler(setup)

    def _start_from_pooler(self, setup: Setup) -> None:
        pooler = setup.online_encoder().own_pooler
        where, value = f"pool.{setup.name}.start", "pooler"
        if pooler is None:
            what = "the encoder has no trained pooler of its own"
            hint = "use start = random, or a model with pooler.dense.weight among its weights"
            raise CseError(what, where=where, value=value, hint=hint)
        first = cast(nn.Linear, self.stages[0])
        if first.weight.shape != pooler["weight"].shape:
            sizes = " x ".join(map(str, pooler["weight"].shape))
            raise CseError(
                f"the encoder's own pooler is {sizes}, this layer {self.dimension} x "
                f"{setup.dimension}",
                where=where,
                value=value,
                hint="put it first among the heads and leave out its dimension",
            )
        first.load_state_dict(pooler)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return ``[N, D']`` from ``[N, D]``."""
        mapped: Tensor = self.stages(vectors)
        return mapped

    def sentence_transformers(self) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """Return an equal Dense module where it has one layer."""
        linear, activation = self.stages[0], self.stages[1]
        if len(self.stages) != 2 or not isinstance(linear, nn.Linear):
            return None
        kind = type(activation)
        config = {
            "in_features": linear.in_features,
            "out_features": linear.out_features,
            "bias": linear.bias is not None,
            "activation_function": f"{kind.__module__}.{kind.__qualname__}",
        }
        return config, {f"linear.{key}": value for key, value in linear.state_dict().items()}
