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


def of_reversed(batch: Batch, turned: Batch, options: LossOptions) -> Negatives:
    """Return the negatives of a loss's second direction: in-batch rows alone.

    Args:
        batch: The batch as the first direction sees it.
        turned: What ``reversed_batch`` made of it.
        options: The loss's options.

    Returns:
        For each positive the other sentences' anchors, each once, and with ``in_batch`` anchor or
        both the other sentences' positives too.
    """
    blocks = []
    if options.negatives not in ("stored", "none"):
        if options.in_batch in ("target", "both"):
            blocks.append(_rows(turned, "in-batch", batch.anchors, batch.owner, own=True))
        if options.in_batch in ("anchor", "both"):
            others = _rows_of_group(batch, batch.targets[options.target])
            mask = others.mask.repeat_interleave(len(turned.anchors) // len(batch.anchors), dim=0)
            blocks.append(
                Negatives.of(
                    others.vectors, len(turned.anchors), name="anchors", mask=mask, row=others.row
                )
            )
    negatives = Negatives.join(blocks) if blocks else nothing(turned)
    return mask_known(turned, negatives, options)


def mask_known(batch: Batch, negatives: Negatives, options: LossOptions) -> Negatives:
    """Mask rows of the anchor's own document or very text, as the options say.

    Rows of views with role ``negative`` have texts of their own: an equal text of the sentence that
    they came with masks none of them, and those of the anchor's own sentence always stay.
    """
    row = negatives.row
    if not len(negatives) or (options.same_text == "keep" and options.same_document == "keep"):
        return negatives
    given = torch.zeros(1, len(negatives), dtype=torch.bool, device=row.device)
    start = 0
    for name, count in negatives.blocks:
        if batch.roles.get(name) == "negative" and name not in batch.stored:
            given[:, start : start + count] = True
        start += count
    mask = negatives.mask
    if options.same_text == "mask":
        mask = mask | (batch.corpus.same(batch.corpus.text_ids, batch.row, row) & ~given)
    if options.same_document == "mask":
        own = given & (row.unsqueeze(0) == batch.row.unsqueeze(1))
        mask = mask | (batch.corpus.same(batch.corpus.documents, batch.row, row) & ~own)
    return replace(negatives, mask=mask)


def reversed_batch(batch: Batch, group: str) -> tuple[Batch, Positives]:
    """Return the batch seen from a group's positives, and the anchors as their positives.

    Row ``i * P + p`` is positive p of anchor i; one that is absent keeps its row, with weight 0.
    """
    targets = batch.targets[group]
    count = targets.vectors.shape[1]
    weights = None
    if targets.weights is not None:
        weights = (targets.weights.reshape(-1, 1) > 0).to(targets.weights.dtype)
    positives = Positives(batch.anchors.repeat_interleave(count, dim=0).unsqueeze(1), weights)
    swapped = replace(
        batch,
        anchors=targets.vectors.reshape(-1, targets.vectors.shape[2]),
        owner=batch.owner.repeat_interleave(count),
        slot=batch.slot.repeat_interleave(count),
        targets={**batch.targets, group: positives},
        stored={},
        roles={},
    )
    return swapped, positives


def _rows_of_group(batch: Batch, targets: Positives) -> Negatives:
    """Return all positives of a group; absent ones are masked, which no GPU has to wait for."""
    _, count, dimension = targets.vectors.shape
    owner = batch.owner.repeat_interleave(count)
    rows = _rows(batch, "in-batch", targets.vectors.reshape(-1, dimension), owner, own=True)
    if targets.weights is None:
        return rows
    return replace(rows, mask=rows.mask | (targets.weights.reshape(1, -1) <= 0))


def _rows(batch: Batch, name: str, vectors: Tensor, owner: Tensor, *, own: bool) -> Negatives:
    mask = None
    if own:
        mask = owner.unsqueeze(0) == batch.owner.unsqueeze(1)
    return Negatives.of(vectors, len(batch.anchors), name=name, mask=mask, row=batch.rows[owner])
