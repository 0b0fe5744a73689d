"""Similarities, contrastive terms and draws that parts are made of: pure functions of tensors."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from cse_core.types import (
    MAX_SLOTS,
    SLOTS_PER_TEXT,
    Batch,
    Embeddings,
    Negatives,
    Positives,
    Tiles,
    TokenBatch,
)

Similarity = Literal["cosine", "dot"]
EPS = 1e-8
"""Smallest norm that a cosine divides by, that of torch's cosine similarity."""


def unit(vectors: Tensor) -> Tensor:
    """Return vectors of length one; a zero vector stays zero."""
    lengths: Tensor = vectors.norm(dim=-1, keepdim=True)
    return vectors / lengths.clamp_min(EPS)


def similarity(left: Tensor, right: Tensor, kind: Similarity = "cosine") -> Tensor:
    """Return ``[A, N]`` similarities of every row of ``[A, D]`` with every row of ``[N, D]``."""
    if kind == "cosine":
        left, right = unit(left), unit(right)
    scores: Tensor = left @ right.T
    return scores


def paired_similarity(left: Tensor, right: Tensor, kind: Similarity = "cosine") -> Tensor:
    """Return ``[A, P]`` similarities of each row of ``[A, D]`` with its own of ``[A, P, D]``."""
    if kind == "cosine":
        left, right = unit(left), unit(right)
    return torch.einsum("ad,apd->ap", left, right)


def infonce_terms(
    anchors: Tensor,
    targets: Positives,
    negatives: Negatives,
    *,
    temperature: float,
    kind: Similarity = "cosine",
) -> Tensor:
    """Return ``[A]`` losses ``-log p`` of each anchor, the weighted mean over its positives.

    Each positive competes only with the negatives, not with the anchor's other positives.
    ``log_weights`` are added to the logits of the negatives. An anchor without a positive or
    without negatives has loss zero.

    Many negatives are computed in tiles of some anchors, again in the backward pass, by each
    process for its own anchors: memory grows with the batch, not with its square.

    Anchors are ``[A, D]``, targets ``[A, P, D]``, negatives ``[N, D]`` with ``[A, N]`` mask and
    log-weights.
    """
    positive = paired_similarity(anchors, targets.vectors, kind) / temperature
    if negatives.tiles is None:
        negative = similarity(anchors, negatives.vectors, kind) / temperature
        negative = (negative + negatives.log_weights).masked_fill(negatives.mask, -torch.inf)
        denominator = log_sum_exp(negative)
    else:
        pair = (anchors, negatives.vectors)
        left, right = map(unit, pair) if kind == "cosine" else pair
        apply: Any = _Denominators.apply
        denominator = apply(left, right, negatives.tiles, temperature)
    losses = torch.logaddexp(positive, denominator.unsqueeze(1)) - positive
    return mean_over_positives(losses, targets)


class _Denominators(torch.autograd.Function):
    """``[A]`` log-sum-exp over the negatives, of anchors ``[A, D]`` and negatives ``[N, D]``.

    Every process gets those of all anchors and the whole gradient, and computes its own anchors'.
    """

    @staticmethod
    def forward(ctx: Any, anchors: Tensor, others: Tensor, tiles: Tiles, temperature: float) -> Any:
        logits = (_logits(anchors, others, tiles, some, temperature) for some in tiles.own)
        parts = [anchors.new_empty(0), *map(log_sum_exp, logits)]
        denominators = tiles.gathered(torch.cat(parts))
        ctx.save_for_backward(anchors, others, denominators)
        ctx.tiles, ctx.temperature = tiles, temperature
        return denominators

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        anchors, others, denominators = ctx.saved_tensors
        base = torch.where(denominators.isfinite(), denominators, 0.0)
        both = anchors.new_zeros(len(anchors) + len(others), anchors.shape[1])
        to_anchors, to_others = both.split([len(anchors), len(others)])
        for some in ctx.tiles.own:
            shares = _logits(anchors, others, ctx.tiles, some, ctx.temperature)
            shares.sub_(base[some].unsqueeze(1)).exp_()
            shares.mul_(gradient[some].unsqueeze(1) / ctx.temperature)
            torch.mm(shares, others, out=to_anchors[some])
            to_others.addmm_(shares.T, anchors[some])
        return *ctx.tiles.summed(both).split([len(anchors), len(others)]), None, None


def _logits(
    anchors: Tensor, others: Tensor, tiles: Tiles, some: slice, temperature: float
) -> Tensor:
    """Return ``[a, N]`` logits of some anchors with the negatives."""
    seen = tiles.of(some)
    logits = (anchors[some] @ others.T).div_(temperature).add_(seen.log_weights)
    return logits.masked_fill_(seen.mask, -torch.inf)


def mean_over_positives(values: Tensor, targets: Positives) -> Tensor:
    """Return ``[A]`` weighted means of ``[A, P]`` values; zero for an anchor without a positive."""
    if targets.weights is None:
        return values.mean(dim=1)
    total = targets.weights.sum(dim=1)
    return (values * targets.weights).sum(dim=1) / total.clamp_min(torch.finfo(total.dtype).tiny)


def reduce_terms(terms: Tensor, targets: Positives, reduction: str) -> Tensor:
    """Return the ``sum`` or ``mean`` of ``[A]`` terms, the mean over those with a positive."""
    if reduction == "sum":
        return terms.sum()
    if targets.weights is None:
        return terms.mean()
    counted = (targets.weights.sum(dim=1) > 0).sum().clamp_min(1)
    return terms.sum() / counted


def log_sum_exp(logits: Tensor) -> Tensor:
    """Return ``[A]`` log-sum-exp of ``[A, N]``; of nothing it is minus infinity, never NaN."""
    if logits.shape[1] == 0:
        return logits.new_full((len(logits),), -torch.inf)
    largest = logits.detach().amax(dim=1, keepdim=True)
    largest = torch.where(largest.isfinite(), largest, torch.zeros_like(largest))
    sums = (logits - largest).exp().sum(dim=1)
    none = sums == 0
    logs = torch.where(none, torch.ones_like(sums), sums).log() + largest.squeeze(1)
    return torch.where(none, torch.full_like(logs, -torch.inf), logs)


def places_of(wanted: Tensor, rows: Tensor) -> Tensor:
    """Return ``[N]`` the first place of each wanted number among ``[B]`` others, or -1."""
    ordered, order = torch.sort(rows, stable=True)
    place = torch.searchsorted(ordered, wanted).clamp_max(len(rows) - 1)
    return torch.where(ordered[place] == wanted, order[place], -1)


def text_keys(owner: Tensor, slot: Tensor) -> Tensor:
    """Return ``[N]`` a number for the text that each of ``[N]`` rows is of."""
    return owner * SLOTS_PER_TEXT + slot // SLOTS_PER_TEXT


def positive_texts(batch: Batch, targets: Positives, group: str) -> tuple[str, Tensor]:
    """Return the view and the ``[A, P]`` keys of the positives' texts, to look up other vectors.

    Args:
        batch: The batch, in either direction.
        targets: The positives of its anchors.
        group: The loss's own target, a group of the view of that name.
    """
    if batch.view == group:
        return "anchor", (batch.owner * SLOTS_PER_TEXT).unsqueeze(1)
    place = torch.arange(targets.vectors.shape[1], device=batch.owner.device)
    return group, text_keys(batch.owner, batch.slot).unsqueeze(1) + place


def candidate_texts(batch: Batch, negatives: Negatives, view: str) -> list[tuple[str, Tensor]]:
    """List the view and the ``[n]`` keys of the texts of each block, to look up other vectors.

    Args:
        batch: The batch.
        negatives: The negatives of its anchors.
        view: View of the blocks that name none.

    Raises:
        ValueError: If a store gives some: it keeps no other vectors. A loss that looks them up
            narrows its option ``negatives`` to ``in-batch`` and ``none``.
    """
    blocks = []
    for name, span in negatives.spans():
        if name in batch.stored:
            raise ValueError(f"{name} is a store: narrow the option negatives to in-batch and none")
        keys = text_keys(negatives.owner[span], negatives.slot[span])
        blocks.append((negatives.views.get(name, view), keys))
    return blocks


def listed(rows: Embeddings, owner: Tensor, slot: Tensor, most: int) -> Positives:
    """Return the texts that each of ``[A]`` keys has in a view as ``[A, P, D]``, zero for none.

    Args:
        rows: A view, which may have several texts of a sentence.
        owner: ``[A]`` batch rows.
        slot: ``[A]`` which row of its sentence each is.
        most: P.
    """
    text = torch.arange(most, device=owner.device) * SLOTS_PER_TEXT
    return _at(rows, (owner * MAX_SLOTS + slot).unsqueeze(1) + text)


def of_texts(rows: Embeddings, keys: Tensor, place: int = 0) -> Tensor:
    """Return vectors ``[..., D]`` of texts by their keys, zero for a text without.

    Of several vectors of a text it is the one at a place.
    """
    return _at(rows, keys * SLOTS_PER_TEXT + place).vectors


def _at(rows: Embeddings, wanted: Tensor) -> Positives:
    places = torch.full_like(wanted, -1)
    if len(rows):
        places = places_of(wanted.flatten(), rows.owner * MAX_SLOTS + rows.slot).view_as(wanted)
    vectors = torch.cat([rows.vectors, rows.vectors.new_zeros(1, rows.vectors.shape[1])])
    return Positives(vectors[places], (places >= 0).to(vectors.dtype))


def per_text(values: Tensor, rows: Embeddings) -> Tensor:
    """Return ``[N]`` numbers of a view, of ``[B]`` sentences or of their ``[B, P]`` texts."""
    return values[rows.owner] if values.dim() == 1 else values[rows.owner, rows.text]


def row_means(states: Tensor, tokens: TokenBatch) -> Tensor:
    """Return ``[R, H]`` means of ``[T, H]`` over all tokens of each row, summed in fp32."""
    rows = tokens.row_of_token()
    sum_type = states.dtype if states.dtype.itemsize >= 4 else torch.float32
    sums = states.new_zeros((tokens.rows, states.shape[1]), dtype=sum_type)
    sums = sums.index_add(0, rows, states.to(sums.dtype))
    lengths = tokens.lengths.clamp_min(1).to(states.device, non_blocking=True)
    return sums / lengths.unsqueeze(1)


def owner_means(rows: Embeddings, weights: Tensor | None = None) -> Embeddings:
    """Return ``[owners, D]`` means of owners' rows, plain where ``weights`` ``[N]`` are zero."""
    first = rows.slot % SLOTS_PER_TEXT == 0  # each owner is a text: its rows follow the first one
    place = first.long().cumsum(0) - 1
    owners = rows.owners
    if owners is None:
        owners = int(place[-1]) + 1 if len(rows) else 0
    vectors = rows.vectors if rows.vectors.dtype.itemsize >= 4 else rows.vectors.float()

    def sums(values: Tensor) -> Tensor:
        return values.new_zeros(owners, *values.shape[1:]).index_add(0, place, values)

    share = vectors.new_ones(len(rows))
    if weights is not None:
        share = torch.where(sums(weights)[place] > 0, weights, 1).to(vectors.dtype)
    share = share / sums(share)[place]
    return Embeddings(
        vectors=sums(vectors * share.unsqueeze(1)),
        owner=rows.owner.new_empty(owners).scatter(0, place, rows.owner),
        slot=rows.slot.new_zeros(owners),
        length=sums(rows.length),
    )


def draw_like_bert(module: nn.Module) -> None:
    """Draw weights of linear layers as in BERT, biases zero; norms start at one and zero."""
    for layer in module.modules():
        if isinstance(layer, nn.LayerNorm):
            layer.reset_parameters()
        elif isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def first_of_word(tokens: TokenBatch) -> Tensor:
    """Return ``[T]`` the place of the first token of each token's word; special ones are alone."""
    row = tokens.row_of_token()
    place = torch.arange(len(row), device=row.device)
    begins = torch.ones_like(place, dtype=torch.bool)
    begins[1:] = (tokens.word.diff() != 0) | (row.diff() != 0) | (tokens.word[1:] < 0)
    return torch.where(begins, place, 0).cummax(0).values


def sample_in_rows(
    row: Tensor, count: Tensor, draws: Tensor, among: Tensor | None = None
) -> Tensor:
    """Return ``[T]`` bool: in each row r the ``count[r]`` items with the smallest draws.

    Args:
        row: ``[T]`` int64, the row of each item, in order.
        count: ``[R]`` int64; a row with fewer items gives all.
        draws: ``[T]`` independent uniform numbers in [0, 1).
        among: ``[T]`` bool, items that may be taken; None: all.
    """
    # One integer key, row first: a single sort, on devices without float64 too.
    drawn = (draws * 2**31).long()
    if among is not None:
        drawn = drawn.masked_fill(~among, 2**31)
    order = torch.argsort((row << 32) + drawn, stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(row), device=row.device)
    first = torch.searchsorted(row, torch.arange(len(count), device=row.device))
    taken = place < (first + count)[row]
    return taken if among is None else taken & among


def hashed_uniform(seed: int, *keys: Tensor) -> Tensor:
    """Return ``[T]`` float32 numbers from [0, 1) determined by a seed and ``[T]`` integers.

    They depend on nothing else. (SplitMix64's finaliser.)
    """
    mixed = torch.full_like(keys[0], _wrapped(seed))
    for key in keys:
        mixed = mixed * _wrapped(0x9E3779B97F4A7C15) + key
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            low = (mixed >> shift) & ((1 << (64 - shift)) - 1)  # without its sign
            mixed = (mixed ^ low) * _wrapped(factor)
    return (mixed & (2**24 - 1)).float() / 2**24


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def derive_seed(*counters: int | str) -> int:
    """Return a 63-bit seed from numbers and names, the same on every machine."""
    text = "\x1f".join(f"{type(counter).__name__}:{counter}" for counter in counters)
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
