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
from cse_core.types import Batch, Negatives, Positives
from cse_engine.step.tiles import ALL, in_tiles, seen_by_some, some_anchors


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
    seen_by = seen_by or batch
    turned = seen_by is not batch
    seen_by = some_anchors(seen_by, some)
    blocks: list[Negatives] = []
    if options.negatives not in ("stored", "none"):
        keep = options.same_sentence == "keep"
        group = partial(_rows_of_group, seen_by, batch, options.target, keep_segments=keep)
        anchors = partial(_anchors, seen_by, batch, keep_segments=keep)
        target, other = (anchors, group) if turned else (group, anchors)
        if options.in_batch in ("target", "both"):
            blocks.append(target(name="in-batch"))
        if options.in_batch in ("anchor", "both"):
            blocks.append(other(name="anchors"))
        for name, role in seen_by.roles.items():
            rows = batch.views.get(name, {}).get(batch.level) if role == "negative" else None
            if rows is not None:
                blocks.append(_rows(seen_by, name, name, rows.vectors, rows.owner, rows.slot))
    for name in stores:
        if (stored := seen_by.stored.get(name)) is not None:
            width, wanted = stored.vectors.shape[1], batch.anchors.shape[1]
            if width != wanted:
                raise dimension_mismatch(f"negatives.{name}", width, wanted)
            blocks.append(stored)
    negatives = Negatives.join(blocks) if blocks else no_negatives(seen_by)
    return mask_known(seen_by, negatives, options)


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
    keep_segments, mask = options.same_sentence == "keep", negatives.mask
    if keep_segments or options.same_document == "mask":
        stays = fresh if keep_segments else given
        exempt = stays & (negatives.row.unsqueeze(0) == batch.row.unsqueeze(1))
    if options.same_text == "mask":
        same = same_texts(batch, negatives)
        mask = mask | (same & ~exempt if keep_segments else same)
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
        sums = _sums(batch, negatives, options, stores, ALL)
    else:
        counted = [_sums(batch, tiles.of(some), options, stores, some) for some in tiles.all]
        sums = {name: torch.stack([row[name] for row in counted]).sum(0) for name in counted[0]}
    margin, anchors = sums.pop("margin"), sums.pop("margin.anchors")
    counts = {"positive_margin": margin / anchors.clamp_min(1)} if len(negatives) else {}
    counts |= {
        name: total / max(len(batch.anchors), 1)
        for name, total in sums.items()
        if name.startswith("negatives") and not name.endswith(".age")
    }
    for name, total in sums.items():
        if name.endswith(".age"):
            counts[name] = total / sums[name.removesuffix(".age")].clamp_min(1)
        elif name not in counts:
            counts[name] = total.float()
    return counts


def _sums(
    batch: Batch, negatives: Negatives, options: LossOptions, stores: Sequence[str], some: slice
) -> dict[str, Tensor]:
    """Return the contribution of some anchors to each count."""
    seen = ~negatives.mask
    shown = {"": seen, ".weight_zero": seen & (negatives.log_weights == -torch.inf)}
    shown |= {f".{name}": seen[:, block] for name, block in negatives.spans() if name != "none"}
    sums = {f"negatives{name}": mask.sum() for name, mask in shown.items()}
    seen_by = some_anchors(batch, some)
    hidden = negatives.mask | shown[".weight_zero"]
    margins = _margins(seen_by, options.target, replace(negatives, mask=hidden))
    sums["margin"], sums["margin.anchors"] = margins.nansum(), (~margins.isnan()).sum()
    for name, block in negatives.spans():
        if name in batch.stored:
            sums[f"negatives.{name}.age"] = (seen[:, block] * negatives.age[block]).sum()
    kept = options.model_copy(update={"same_text": "keep", "same_document": "keep"})
    again = same_texts(seen_by, negatives)
    again = again & ~negatives_for_loss(batch, kept, stores, some).mask
    for name, which in (("masked", ~seen), ("seen", seen)):
        sums[f"same_text.{name}"] = (again & which).sum()
    return sums


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
    count = targets.vectors.shape[1]
    weights = targets.weights
    if weights is not None:
        weights = (weights.reshape(-1, 1) > 0).to(weights.dtype)
    positives = Positives(batch.anchors.repeat_interleave(count, dim=0).unsqueeze(1), weights)
    swapped = replace(
        batch,
        view=group,
        anchors=targets.vectors.reshape(-1, targets.vectors.shape[2]),
        owner=batch.owner.repeat_interleave(count),
        slot=batch.slot.repeat_interleave(count),
        targets={**batch.targets, group: positives},
        stored={},
        roles={},
    )
    return swapped, positives


def _rows_of_group(
    seen_by: Batch, batch: Batch, group: str, name: str, keep_segments: bool
) -> Negatives:
    """Return a batch's positives of a group as negatives of its anchors, or of another's."""
    targets = batch.targets[group]
    _, count, dimension = targets.vectors.shape
    vectors = targets.vectors.reshape(-1, dimension)
    owner, slot = (keys.repeat_interleave(count) for keys in (batch.owner, batch.slot))
    absent = None if targets.weights is None else targets.weights.reshape(-1) <= 0
    if targets.distinct is not None:
        vectors, owner, slot = (of_all[targets.distinct] for of_all in (vectors, owner, slot))
        absent = None if absent is None else absent[targets.distinct]
    mask = _own(seen_by, owner, slot, keep_segments)
    # Absent ones are masked: to leave them out, a GPU would have to be waited for.
    mask = mask if absent is None else mask | absent.unsqueeze(0)
    return _rows(seen_by, name, group, vectors, owner, slot, mask)


def _anchors(seen_by: Batch, batch: Batch, name: str, keep_segments: bool) -> Negatives:
    """Return a batch's anchors as negatives of another's, or of each other."""
    mask = _own(seen_by, batch.owner, batch.slot, keep_segments)
    return _rows(seen_by, name, batch.view, batch.anchors, batch.owner, batch.slot, mask)


def _own(batch: Batch, owner: Tensor, slot: Tensor, keep_segments: bool) -> Tensor:
    """Mark, ``[A, N]``, the rows of the anchor's own sentence, or only its own row."""
    same = owner.unsqueeze(0) == batch.owner.unsqueeze(1)
    return same & (slot.unsqueeze(0) == batch.slot.unsqueeze(1)) if keep_segments else same


def _rows(
    batch: Batch,
    name: str,
    view: str,
    vectors: Tensor,
    owner: Tensor,
    slot: Tensor,
    mask: Tensor | None = None,
) -> Negatives:
    count, row = len(batch.anchors), batch.rows[owner]
    return Negatives.of(vectors, count, name=name, view=view, mask=mask, row=row, slot=slot)


def dimension_mismatch(where: str, found: int, wanted: int) -> CseError:
    """Return the error of vectors of another dimension than the anchors."""
    what = f"its vectors have {found} dimensions and the anchors {wanted}"
    return CseError(what, where=where, hint="give the heads of all branches one dimension")
