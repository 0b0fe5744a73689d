"""Contrastive terms that several losses are made of, free of overflow and of NaN."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.similarity import Similarity, paired_similarity, similarity
from cse_core.types import Negatives, Positives


def infonce_terms(
    anchors: Tensor,
    targets: Positives,
    negatives: Negatives,
    *,
    temperature: float,
    kind: Similarity = "cosine",
) -> Tensor:
    """Return ``[A]`` losses ``-log p`` of each anchor, the weighted mean over its positives.

    Each positive competes with the negatives alone; the anchor's other positives are left out of
    its denominator. ``log_weights`` are added to the logits of the negatives. An anchor without
    any positive has loss zero, one without negatives too.

    Args:
        anchors: ``[A, D]``.
        targets: ``[A, P, D]``.
        negatives: ``[N, D]`` with ``[A, N]`` mask and log-weights.
        temperature: Divides the similarities.
        kind: ``cosine`` or ``dot``.
    """
    positive = paired_similarity(anchors, targets.vectors, kind) / temperature
    negative = similarity(anchors, negatives.vectors, kind) / temperature + negatives.log_weights
    negative = negative.masked_fill(negatives.mask, -torch.inf)
    denominator = log_sum_exp(negative)
    losses = torch.logaddexp(positive, denominator.unsqueeze(1)) - positive
    if targets.weights is None:
        return losses.mean(dim=1)
    total = targets.weights.sum(dim=1)
    return (losses * targets.weights).sum(dim=1) / total.clamp_min(torch.finfo(total.dtype).tiny)


def reduce_terms(terms: Tensor, targets: Positives, reduction: str) -> Tensor:
    """Return the ``sum`` or the ``mean`` of ``[A]`` terms, the mean over those with a positive."""
    if reduction == "sum":
        return terms.sum()
    if targets.weights is None:
        return terms.mean()
    counted = (targets.weights.sum(dim=1) > 0).sum().clamp_min(1)
    return terms.sum() / counted


def log_sum_exp(logits: Tensor) -> Tensor:
    """Return ``[A]`` log-sum-exp of ``[A, N]``: minus infinity, without NaN, of nothing at all."""
    if logits.shape[1] == 0:
        return logits.new_full((len(logits),), -torch.inf)
    largest = logits.detach().amax(dim=1, keepdim=True)
    largest = torch.where(largest.isfinite(), largest, torch.zeros_like(largest))
    sums = (logits - largest).exp().sum(dim=1)
    none = sums == 0
    logs = torch.where(none, torch.ones_like(sums), sums).log() + largest.squeeze(1)
    return torch.where(none, torch.full_like(logs, -torch.inf), logs)
