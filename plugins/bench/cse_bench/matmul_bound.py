"""The bound of a step: the matrix products of the encoder's linear layers, nothing else.

Counted are the layers' outputs and, where a step makes them, the gradients of inputs and weights,
for the real tokens alone. Attention's own products, embeddings, norms and everything else are not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from cse_core.encoders.encoder import PackedEncoder
from cse_core.engine.step import Engine

Side = Literal["output", "input", "weight"]
_LENGTHS = (4, 3)
"""Rows of the probe: their tokens, their number and their padded slots all differ."""


@dataclass(frozen=True)
class Product:
    """A matrix product of a linear layer.

    Attributes:
        side: What it makes: the layer's output, or the gradient of its input or its weights.
        layer: Number of the layer in its call.
        rows: Tokens.
        inputs: Width of what enters the layer.
        outputs: Width of what leaves it.
    """

    side: Side
    layer: int
    rows: int
    inputs: int
    outputs: int

    @property
    def multiplications(self) -> int:
        """Return how many numbers it multiplies."""
        return self.rows * self.inputs * self.outputs


@dataclass(frozen=True)
class EncoderCall:
    """A call of an encoder in a step.

    Attributes:
        tokens: Real tokens.
        rows: Rows.
        longest: Tokens of the longest.
        alone: Whether the last layer was to run for one token a row.
        inputs: Whether a gradient goes back to the inputs of its layers.
        weights: Whether one goes to their weights.
    """

    encoder: PackedEncoder
    tokens: int
    rows: int
    longest: int
    alone: bool
    inputs: bool
    weights: bool


@dataclass(frozen=True)
class _Linear:
    """What a linear layer does in a call: for each token, or for each row."""

    inputs: int
    outputs: int
    per: Literal["token", "row"]
    input_gradient: bool
    weight_gradient: bool


class CallRecorder:
    """Notes the encoder calls of steps.

    Args:
        engine: Makes the steps.

    Attributes:
        calls: What was noted, in order.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.calls: list[EncoderCall] = []

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note the calls inside."""
        encoders = {branch.encoder for branch in self.engine.assembly.branches.values()}
        handles = [
            encoder.register_forward_pre_hook(self._note, with_kwargs=True) for encoder in encoders
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _note(self, encoder: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        words, _, offsets = args
        assert isinstance(encoder, PackedEncoder)
        gradient = torch.is_grad_enabled()
        self.calls.append(
            EncoderCall(
                encoder=encoder,
                tokens=len(words),
                rows=len(offsets) - 1,
                longest=int(offsets.diff().max()) if len(offsets) > 1 else 0,
                alone=named.get("read") is not None,
                inputs=gradient,
                weights=gradient and not self.engine.inputs_only,
            )
        )


def products(calls: Iterable[EncoderCall], *, whole: bool = True) -> list[Product]:
    """Return the matrix products of the linear layers in encoder calls, in order.

    Args:
        calls: The calls.
        whole: Whether every layer counts for every token; else the last one for the tokens that
            it was run for.
    """
    found: list[Product] = []
    known: dict[tuple[int, bool], list[_Linear]] = {}
    for call in calls:
        key = id(call.encoder), call.alone and not whole
        if key not in known:
            known[key] = _probe(call.encoder, alone=key[1])
        layers = known[key]
        sizes = {"token": call.tokens, "row": call.rows}
        numbered = list(enumerate(layers))
        found += [_product("output", number, layer, sizes) for number, layer in numbered]
        for number, layer in reversed(numbered):
            if call.inputs and layer.input_gradient:
                found.append(_product("input", number, layer, sizes))
            if call.weights and layer.weight_gradient:
                found.append(_product("weight", number, layer, sizes))
    return found


def _product(side: Side, number: int, layer: _Linear, sizes: dict[str, int]) -> Product:
    return Product(side, number, sizes[layer.per], layer.inputs, layer.outputs)


def _probe(encoder: PackedEncoder, *, alone: bool) -> list[_Linear]:
    """Run two short rows through the encoder and return its linear layers as they are used."""
    found: list[_Linear] = []
    tokens, rows = sum(_LENGTHS), len(_LENGTHS)
    of_tokens: set[nn.Module] = set()

    def note(layer: nn.Module, args: tuple[Any, ...], _: Any) -> None:
        assert isinstance(layer, nn.Linear)
        single = args[0].numel() // layer.in_features == rows
        if not single:
            of_tokens.add(layer)
        elif layer in of_tokens:  # keys and values of all tokens were made, these are not used
            return
        found.append(
            _Linear(
                layer.in_features,
                layer.out_features,
                "row" if single else "token",
                bool(args[0].requires_grad),
                bool(layer.weight.requires_grad),
            )
        )

    device = next(encoder.parameters()).device
    offsets = torch.tensor([0, *_LENGTHS]).cumsum(0)
    positions = torch.cat([torch.arange(length) for length in _LENGTHS]).to(device)
    training = encoder.training
    linear = [layer for layer in encoder.modules() if isinstance(layer, nn.Linear)]
    handles = [layer.register_forward_hook(note) for layer in linear]
    encoder.eval()
    try:
        with torch.enable_grad():
            words = encoder.word_embeddings(torch.zeros(tokens, dtype=torch.long, device=device))
            read = offsets[:-1].to(device) if alone else None
            encoder(words, positions, offsets, read=read)
    finally:
        for handle in handles:
            handle.remove()
        encoder.train(training)
    return found


class MatmulBound:
    """Matrix products, ready to be timed.

    Args:
        products: In their order.
        dtype: Number format.
        device: Where.
    """

    def __init__(
        self, products: Iterable[Product], dtype: torch.dtype, device: torch.device
    ) -> None:
        self.device = device
        draws = torch.Generator().manual_seed(0)
        made: dict[tuple[object, ...], Tensor] = {}

        def matrix(key: object, rows: int, columns: int) -> Tensor:
            place = (key, rows, columns)
            if place not in made:
                drawn = torch.randn(rows, columns, generator=draws)
                made[place] = drawn.to(device=device, dtype=dtype)
            return made[place]

        self._runs: list[tuple[Tensor, Tensor, Tensor]] = []
        for product in products:
            entered = matrix("states", product.rows, product.inputs)
            left = matrix("states", product.rows, product.outputs)
            # A layer's weights have memory of their own, as in a model: none are in a cache yet.
            key = "gradient" if product.side == "weight" else product.layer
            weight = matrix(key, product.outputs, product.inputs)
            if product.side == "output":
                run = (entered, weight.t(), matrix("out", product.rows, product.outputs))
            elif product.side == "input":
                run = (left, weight, matrix("out", product.rows, product.inputs))
            else:
                run = (left.t(), entered, weight)
            self._runs.append(run)

    @torch.no_grad()
    def seconds(self, times: int, wait: Callable[[], None]) -> float:
        """Return the mean seconds of all products once, after one run that is not timed.

        Args:
            times: How often they are timed.
            wait: Returns when the device has done what it was given.
        """
        self._run()
        wait()
        began = time.perf_counter()
        for _ in range(times):
            self._run()
        wait()
        return (time.perf_counter() - began) / times

    def _run(self) -> None:
        for one, other, out in self._runs:
            torch.mm(one, other, out=out)
