"""The negatives of a loss: its batch's other rows, its stores' candidates, and the core's masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives, Positives


def in_batch(batch: Batch, group: str, sides: str = "target") -> Negatives:
    """Return the in-batch negatives of the losses that pull towards a group.

    Args:
        batch: The batch at the loss's level.
        group: Name of the group of positives.
        sides: ``target`` the other rows of the group, ``anchor`` the other anchors, ``both``.

    Returns:
        Rows of the anchor's own sentence are masked, in the group and among the anchors. Rows of
        views with role ``negative`` are added and never masked.
    """
    blocks: list[Negatives] = []
    if sides in ("target", "both"):
        blocks.append(_rows_of_group(batch, batch.targets[group]))
    if sides in ("anchor", "both"):
        blocks.append(_rows(batch, "anchors", batch.anchors, batch.owner, own=True))
    for name, role in batch.roles.items():
        rows = batch.views.get(name, {}).get(batch.level) if role == "negative" else None
        if rows is not None:
            blocks.append(_rows(batch, name, rows.vectors, rows.owner, own=False))
    if not blocks:
        return nothing(batch)
    return Negatives.join(blocks)


def nothing(batch: Batch) -> Negatives:
    """Return no negatives at all."""
    return Negatives.of(
        batch.anchors.new_zeros(0, batch.anchors.shape[1]), len(batch.anchors), name="none"
    )


def of_loss(batch: Batch, options: LossOptions, stores: Sequence[str]) -> Negatives:
    """Return the negatives of a loss before any part weighs them.

    Args:
        batch: The batch at the loss's level, with its stores' candidates.
        options: The loss's options.
        stores: Names of the stores that it takes.

    Returns:
        Its in-batch negatives and the candidates of its stores, those of another dimension left
        out, with the masks that its options ask for.
    """
    blocks = []
    if options.negatives not in ("stored", "none"):
        blocks.append(in_batch(batch, options.target, options.in_batch))
    for name in stores:
        stored = batch.stored.get(name)
        if stored is not None and stored.vectors.shape[1] == batch.anchors.shape[1]:
            blocks.append(stored)
    negatives = Negatives.join(blocks) if blocks else nothing(batch)
    return mask_known(batch, negatives, options)


def mask_known(batch: Batch, negatives: Negatives, options: LossOptions) -> Negatives:
    """Mask rows of the anchor's own document or very text, as the options say.

    Rows given as negatives of the anchor's own sentence are left as they are.
    """
    row = negatives.row
    if not len(negatives) or (options.same_text == "keep" and options.same_document == "keep"):
        return negatives
    known = (row >= 0).unsqueeze(0)
    other = row.unsqueeze(0) != batch.row.unsqueeze(1)
    stored = torch.zeros_like(known)
    start = 0
    for name, count in negatives.blocks:
        if name in batch.stored:
            stored[:, start : start + count] = True
        start += count
    mask = torch.zeros_like(negatives.mask)
    for option, keys in (
        (options.same_text, batch.corpus.text_ids),
        (options.same_document, batch.corpus.documents),
    ):
        if option == "mask":
            of_row, of_anchor = keys[row.clamp_min(0)], keys[batch.row]
            same = (of_row.unsqueeze(0) == of_anchor.unsqueeze(1)) & (of_anchor >= 0).unsqueeze(1)
            mask |= same & known & (other | stored)
    return replace(negatives, mask=negatives.mask | mask)


def reversed_batch(batch: Batch, group: str) -> tuple[Batch, Positives]:
    """Return the batch seen from a group's positives, and the anchors as their positives."""
    targets = batch.targets[group]
    count = targets.vectors.shape[1]
    kept = (
        torch.arange(len(batch.anchors) * count, device=batch.anchors.device)
        if targets.weights is None
        else (targets.weights.reshape(-1) > 0).nonzero().squeeze(1)
    )
    anchor = kept // count
    positives = Positives(batch.anchors[anchor].unsqueeze(1))
    swapped = replace(
        batch,
        anchors=targets.vectors.reshape(-1, targets.vectors.shape[2])[kept],
        owner=batch.owner[anchor],
        slot=batch.slot[anchor],
        targets={**batch.targets, group: positives},
        stored={},
        roles={},
    )
    return swapped, positives


def _rows_of_group(batch: Batch, targets: Positives) -> Negatives:
    anchors, count, dimension = targets.vectors.shape
    vectors = targets.vectors.reshape(-1, dimension)
    owner = batch.owner.repeat_interleave(count)
    if targets.weights is not None:
        real = targets.weights.reshape(-1) > 0
        vectors, owner = vectors[real], owner[real]
    return _rows(batch, "in-batch", vectors, owner, own=True)


def _rows(batch: Batch, name: str, vectors: Tensor, owner: Tensor, *, own: bool) -> Negatives:
    mask = None
    if own:
        mask = owner.unsqueeze(0) == batch.owner.unsqueeze(1)
    return Negatives.of(vectors, len(batch.anchors), name=name, mask=mask, row=batch.rows[owner])
