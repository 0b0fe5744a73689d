"""The negatives of a loss: other rows of its batch, candidates of stores, and the core's masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from cse_core.errors import CseError
from cse_core.functional import mean_over_positives, paired_similarity, similarity
from cse_core.options import LossOptions
from cse_core.types import SLOTS_PER_TEXT, Batch, Negatives, Positives
from cse_engine.step.tiles import ALL, in_tiles, seen_by_some, some_anchors

_Rows = tuple[str, Tensor, Tensor, Tensor, Tensor | None]
"""View, vectors ``[N, D]``, owner, slot, and which are absent (None: none is)."""


def no_negatives(batch: Batch) -> Negatives:
    """Return no negatives at all."""
    return Negatives.of(
        batch.anchors.new_zeros(0, batch.anchors.shape[1]), len(batch.anchors), name="none"
    )


def most_negatives(batch: Batch, group: str) -> int:
    """Return a number that the negatives of a loss of this group do not pass, in either direction.

    It depends only on shapes, so no device is waited for.
    """
    given = sum(len(levels.get(batch.level, ())) for levels in batch.views.values())
    rows = batch.targets[group].vectors.shape[:2].numel() if group in batch.targets else 0
    return len(batch.anchors) + rows + given + sum(map(len, batch.stored.values()))


def negatives_for_loss(
    batch: Batch,
    options: LossOptions,
    stores: Sequence[str],
    some: slice = ALL,
    seen_by: Batch | None = None,
) -> Negatives:
    """Return the negatives of a loss before any part weighs them, as some of the anchors see them.

    These are its in-batch negatives and the candidates of the stores of these names, with the masks
    that its options ask for. In-batch negatives are the other rows of the group that the loss pulls
    towards, the other anchors, or both, and all rows of views with role ``negative``. Candidates of
    another dimension than the anchors are refused: left out, they would be a store that does
    nothing, in silence.

    ``seen_by`` is what ``reversed_batch`` made of the batch: to its anchors, the batch's anchors
    and the group have changed places, and there are neither stores nor views of negatives.
    """
    makers = [partial(_group_rows, batch, options.target), partial(_anchor_rows, batch)]
    if seen_by is not None and seen_by is not batch:
        makers.reverse()
    seen_by = some_anchors(seen_by or batch, some)
    anchors = len(seen_by.anchors)
    blocks: list[Negatives] = []

    def add(name: str, rows: _Rows, mask: Tensor | None = None) -> None:
        view, vectors, owner, slot, _ = rows
        row = batch.rows[owner]
        made = Negatives.of(
            vectors, anchors, name=name, view=view, mask=mask, row=row, slot=slot, owner=owner
        )
        blocks.append(made)

    if options.negatives not in ("stored", "none"):
        names = (("target", "in-batch"), ("anchor", "anchors"))
        for (side, name), make in zip(names, makers, strict=True):
            if options.in_batch in (side, "both"):
                rows = _, _, owner, slot, absent = make()
                mask = owner == seen_by.owner.unsqueeze(1)
                if options.same_sentence == "keep":
                    mask = mask & (slot == seen_by.slot.unsqueeze(1))
                # Absent ones are masked: to leave them out, a GPU would have to be waited for.
                add(name, rows, mask if absent is None else mask | absent)
        for name, role in seen_by.roles.items():
            given = batch.views.get(name, {}).get(batch.level) if role == "negative" else None
            if given is not None:
                add(name, (name, given.vectors, given.owner, given.slot, None))
    for name in stores:
        if (stored := seen_by.stored.get(name)) is not None:
            width, wanted = stored.vectors.shape[1], batch.anchors.shape[1]
            if width != wanted:
                raise dimension_mismatch(f"negatives.{name}", width, wanted)
            blocks.append(stored)
    negatives = Negatives.join(blocks) if blocks else no_negatives(seen_by)
    return mask_known(seen_by, negatives, options)


def _group_rows(batch: Batch, group: str, distinct: bool = True) -> _Rows:
    """Lay the positives of a group out as rows."""
    targets = batch.targets[group]
    vectors, count = targets.vectors.flatten(0, 1), targets.vectors.shape[1]
    place = torch.arange(count, device=batch.slot.device) * SLOTS_PER_TEXT  # of several texts
    owner = batch.owner.repeat_interleave(count)
    slot = (batch.slot.unsqueeze(1) + place).flatten()
    absent = None if targets.weights is None else targets.weights.reshape(-1) <= 0
    if distinct and targets.distinct is not None:
        vectors, owner, slot = (rows[targets.distinct] for rows in (vectors, owner, slot))
        absent = None if absent is None else absent[targets.distinct]
    return group, vectors, owner, slot, absent


def _anchor_rows(batch: Batch) -> _Rows:
    return batch.view, batch.anchors, batch.owner, batch.slot, None


def loss_negatives(batch: Batch, options: LossOptions, given: Negatives | None = None) -> Negatives:
    """Return the negatives of a loss, as ``StepContext.negatives`` does."""

    def make(some: slice) -> Negatives:
        if given is None:
            return negatives_for_loss(batch, options, (), some)
        return mask_known(some_anchors(batch, some), seen_by_some(given, some), options)

    most = most_negatives(batch, options.target) if given is None else len(given)
    return in_tiles(batch, most, make)


def mask_known(batch: Batch, negatives: Negatives, options: LossOptions) -> Negatives:
    """Mask rows of the anchor's own document or very text, as the options say.

    Rows of views with role ``negative`` have texts of their own: an equal text of the sentence that
    they came with masks none of them. The anchor's other segments in the batch stay where
    ``same_sentence`` keeps them.
    """
    if not len(negatives) or (options.same_text == "keep" and options.same_document == "keep"):
        return negatives
    fresh, given = _kinds(batch, negatives)
    stays = fresh if options.same_sentence == "keep" else given
    exempt, mask = stays & (negatives.row == batch.row.unsqueeze(1)), negatives.mask
    if options.same_text == "mask":
        mask = mask | (same_texts(batch, negatives) & ~exempt)
    if options.same_document == "mask":
        same = batch.corpus.same(batch.corpus.documents, batch.row, negatives.row)
        mask = mask | (same & ~exempt)
    return replace(negatives, mask=mask)


def same_texts(batch: Batch, negatives: Negatives) -> Tensor:
    """Return ``[A, N]`` which negatives are of a row with the anchor's text, its own among them."""
    same = batch.corpus.same(batch.corpus.text_ids, batch.row, negatives.row)
    return same & ~_kinds(batch, negatives)[1]


@torch.no_grad()
def negative_counts(
    batch: Batch, negatives: Negatives, options: LossOptions, stores: Sequence[str]
) -> dict[str, Tensor]:
    """Return the scalars of docs/lifecycle.md#negatives-in-the-log; no device is waited for."""
    tiles = negatives.tiles
    if tiles is None:
        counted = [_sums(batch, negatives, options, stores, ALL)]
    else:
        counted = [_sums(batch, tiles.of(some), options, stores, some) for some in tiles.all]
    counts = {}
    for name in counted[0]:
        total, over = torch.stack([sums[name] for sums in counted]).sum(0)
        counts[name] = total / over.clamp_min(1)
    return counts


def _sums(
    batch: Batch, negatives: Negatives, options: LossOptions, stores: Sequence[str], some: slice
) -> dict[str, Tensor]:
    """Sum over some anchors, by name: ``[2]`` a total and what divides it, if not 0."""
    seen_by, seen = some_anchors(batch, some), ~negatives.mask
    ignored = seen & (negatives.log_weights == -torch.inf)
    margins = _margins(seen_by, options.target, replace(negatives, mask=negatives.mask | ignored))
    sums = {"positive_margin": (margins.nansum(), (~margins.isnan()).sum())}
    if not len(negatives):
        sums.clear()
    shown = {"": seen, ".weight_zero": ignored}
    shown |= {f".{name}": seen[:, block] for name, block in negatives.spans() if name != "none"}
    for name, mask in shown.items():
        total = mask.sum()
        sums[f"negatives{name}"] = total, torch.full_like(total, len(mask))
    for name, block in negatives.spans():
        if name in batch.stored:
            aged = (seen[:, block] * negatives.age[block]).sum()
            sums[f"negatives.{name}.age"] = aged, sums[f"negatives.{name}"][0]
    kept = options.model_copy(update={"same_text": "keep", "same_document": "keep"})
    again = same_texts(seen_by, negatives)
    again = again & ~negatives_for_loss(batch, kept, stores, some).mask
    for name, which in (("masked", ~seen), ("seen", seen)):
        total = (again & which).sum()
        sums[f"same_text.{name}"] = total, torch.zeros_like(total)
    return {name: torch.stack([total, over.to(total)]) for name, (total, over) in sums.items()}


def _margins(batch: Batch, group: str, negatives: Negatives) -> Tensor:
    """Return ``[A]`` cosines with the positives, less that with the nearest negative.

    The mean over a group's positives; NaN for an anchor without a positive or without negatives.
    """
    targets, seen = batch.targets[group], similarity(batch.anchors, negatives.vectors)
    nearest = pad(seen.masked_fill(negatives.mask, -torch.inf), (0, 1), value=-torch.inf).amax(1)
    valid = nearest.isfinite()
    if targets.weights is not None:
        valid = valid & (targets.weights.sum(dim=1) > 0)
    positive = mean_over_positives(paired_similarity(batch.anchors, targets.vectors), targets)
    return (positive - nearest).masked_fill(~valid, torch.nan)


def _kinds(batch: Batch, negatives: Negatives) -> tuple[Tensor, Tensor]:
    """Return ``[1, N]`` which negatives are of this batch, and which of views of role negative."""
    fresh = torch.ones(1, len(negatives), dtype=torch.bool, device=negatives.row.device)
    given = torch.zeros_like(fresh)
    for name, block in negatives.spans():
        fresh[:, block] = name not in batch.stored
        given[:, block] = batch.roles.get(name) == "negative" and name not in batch.stored
    return fresh, given


def reversed_batch(batch: Batch, group: str) -> tuple[Batch, Positives]:
    """Return the batch seen from a group's positives, and the anchors as their positives.

    Row ``i * P + p`` is positive p of anchor i; one that is absent keeps its row, with weight 0.
    """
    targets = batch.targets[group]
    weights, count = targets.weights, targets.vectors.shape[1]
    if weights is not None:
        weights = (weights.reshape(-1, 1) > 0).to(weights.dtype)
    positives = Positives(batch.anchors.repeat_interleave(count, dim=0).unsqueeze(1), weights)
    _, rows, owner, slot, _ = _group_rows(batch, group, distinct=False)
    turned = replace(batch, view=group, anchors=rows, owner=owner, slot=slot, stored={}, roles={})
    return replace(turned, targets={**batch.targets, group: positives}), positives


def dimension_mismatch(where: str, found: int, wanted: int) -> CseError:
    """Return the error of vectors of another dimension than the anchors."""
    what = f"its vectors have {found} dimensions and the anchors {wanted}"
    return CseError(what, where=where, hint="give the heads of all branches one dimension")
