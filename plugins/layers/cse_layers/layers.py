"""Vectors of every layer, and the loss that trains them beside the last one's."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import kl_div

from cse_core.errors import CseError
from cse_core.functional import (
    candidate_texts,
    infonce_terms,
    of_texts,
    positive_texts,
    reduce_terms,
    text_keys,
)
from cse_core.parts import Loss, MultiVectorPooler, Setup
from cse_core.types import (
    Batch,
    Hidden,
    LossOutput,
    Negatives,
    Positives,
    StepContext,
    TokenBatch,
    Units,
)
from cse_layers.options import EveryLayerOptions, LayerVectorsOptions

WEIGHTS = {
    "uniform": lambda layer: 1.0,
    "log": lambda layer: 1 / (1 + math.log(1 + layer)),
    "linear": lambda layer: 1 / (1 + layer),
}


class LayerVectors(MultiVectorPooler):
    """A vector of a row from each layer but the last; the slot of layer i is i - 1.

    Raises:
        CseError: If the encoder has only one layer.
    """

    level = "layer"
    options: LayerVectorsOptions

    def __init__(self, options: LayerVectorsOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.layers = tuple(range(1, setup.layers))
        if not self.layers:
            what = "the encoder has no layer before the last one"
            raise CseError(what, where=f"pool.{setup.name}", value=setup.layers)

    def units(self, tokens: TokenBatch, view: str) -> Units:
        """Return for each row as many units of the same tokens as there are layers."""
        lengths, many = tokens.lengths, len(self.layers)
        filled = lengths.nonzero().squeeze(1)
        first = tokens.offsets[filled]
        count = lengths[filled] if self.options.tokens == "all" else torch.ones_like(filled)
        ends = count.cumsum(0)
        place = torch.arange(int(ends[-1]) if len(ends) else 0)
        row = torch.searchsorted(ends, place, right=True)
        index = first[row] + place - (ends - count)[row]
        pieces = torch.split(index, count.tolist())
        repeated = torch.cat([piece.repeat(many) for piece in pieces] or [index])
        return Units.of(tokens, repeated, count.repeat_interleave(many))

    def pool(self, hidden: Hidden, units: Units) -> Tensor:
        """Return ``[R * layers, H]``, row by row."""
        many = len(self.layers)
        made = [
            part.means(hidden.layers[layer])
            for layer, part in zip(self.layers, _by_layer(units, many), strict=True)
        ]
        return torch.stack(made, dim=1).flatten(0, 1)


def _by_layer(units: Units, many: int) -> list[Units]:
    """Return the units of each layer: every row has one for each, with the same tokens."""
    lengths = units.lengths[::many]
    device = units.index.device
    starts = torch.cat([units.lengths.new_zeros(1), units.lengths.cumsum(0)[:-1]])[::many]
    row = torch.arange(len(lengths)).repeat_interleave(lengths)
    inside = torch.arange(len(row)) - (lengths.cumsum(0) - lengths)[row]
    index = units.index[(starts[row] + inside).to(device, non_blocking=True)]
    return [Units(index, lengths, units.row[::many])] * many


class EveryLayer(Loss):
    """InfoNCE of layers that are drawn in each step, and their distance from the last layer.

    ``(1/k) sum_i w_i L(layer i) + align * t * KL(softmax(last / t) || softmax(layer i / t))``, as
    AdaptiveLayerLoss of sentence-transformers computes the losses of 2DMSE (Li et al. 2024,
    Sections 3.2 and 3.3): the divergence is a mean over the vectors of anchors and targets, and the
    last layer gets no gradient from it. The last layer's own loss is one of its own, ``infonce``.
    With ``dimensions`` every layer is trained at every size.
    """

    options: EveryLayerOptions

    def __init__(self, options: EveryLayerOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.count = setup.layers - 1

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the loss of ``batch.anchors``, whose vectors count at level ``layer``."""
        options = self.options
        target, wanted = positive_texts(batch, targets, options.target)
        own = text_keys(batch.owner, batch.slot)
        seen_texts = candidate_texts(batch, negatives, target)
        blocks = [(batch.view, own), (target, wanted), *seen_texts]
        drawn = [*range(self.count)]
        if 0 < options.layers < self.count:
            order = torch.randperm(self.count, generator=ctx.generator(self.name))
            drawn = order[: options.layers].sort().values.tolist()
        value = batch.anchors.new_zeros(())
        parts = {}
        last = torch.cat([batch.anchors, targets.vectors.flatten(0, 1)]).detach()
        counts = torch.ones_like(targets.vectors[..., 0])
        if targets.weights is not None:
            counts = (targets.weights > 0).to(counts.dtype)
        counts = torch.cat([torch.ones_like(counts[:, 0]), counts.flatten()])
        for place in drawn:
            anchors, positives, *others = (
                of_texts(batch.views[view]["layer"], keys, place) for view, keys in blocks
            )
            seen = replace(negatives, vectors=torch.cat([anchors[:0], *others]))
            pulled = Positives(positives, targets.weights)
            given = {"temperature": options.temperature, "kind": options.similarity}
            terms = infonce_terms(anchors, pulled, seen, **given)  # type: ignore[arg-type]
            term = reduce_terms(terms, targets, options.reduction)
            value = value + term * WEIGHTS[options.weighting](place + 1) / len(drawn)
            parts[f"layer-{place + 1}"] = term
            if options.align:
                far = self._divergence(torch.cat([anchors, positives.flatten(0, 1)]), last)
                far = (far * counts).sum() / counts.sum()
                times = len(anchors) if options.reduction == "sum" else 1
                value = value + options.align * options.align_temperature * far * times
        return LossOutput(value, parts)

    def _divergence(self, vectors: Tensor, last: Tensor) -> Tensor:
        """Return ``[N]`` divergences of the softmax of vectors from that of the last layer's."""
        t = self.options.align_temperature
        apart = kl_div(
            (vectors / t).log_softmax(dim=-1), (last / t).softmax(dim=-1), reduction="none"
        )
        return apart.sum(dim=-1)
