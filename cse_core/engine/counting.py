"""Which negatives an anchor saw: how many, from where, how old, and its own sentence among them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cse_core.engine.negatives import of_loss, same_texts
from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives


@torch.no_grad()
def counts(
    batch: Batch, negatives: Negatives, options: LossOptions, stores: Sequence[str]
) -> dict[str, Tensor]:
    """Return scalars about a loss's negatives, without waiting for the device.

    Returns:
        ``negatives``, the mean number that an anchor saw; ``negatives.weight_zero``, those of them
        that a part weighed to nothing; ``negatives.BLOCK``, those of the batch, of a view or of a
        store; ``negatives.STORE.age``, the mean steps since a store's were pushed;
        ``same_text.masked`` and ``same_text.seen``, the pairs of an anchor and its sentence once
        more that were kept out and that were negatives.
    """
    seen = ~negatives.mask
    nothing = seen & (negatives.log_weights == -torch.inf)
    found = {
        "negatives": seen.sum(dim=1, dtype=torch.float32).mean(),
        "negatives.weight_zero": nothing.sum(dim=1, dtype=torch.float32).mean(),
    }
    for name, block in negatives.spans():
        there = seen[:, block]
        found[f"negatives.{name}"] = there.sum(dim=1, dtype=torch.float32).mean()
        if name in batch.stored:
            pairs = there.sum(dtype=torch.float32).clamp_min(1)
            found[f"negatives.{name}.age"] = (there * negatives.age[block]).sum() / pairs
    how = "fold" if options.same_text == "fold" else "any"
    kept = options.model_copy(update={"same_text": "keep", "same_document": "keep"})
    once_more = same_texts(batch, negatives, options, how) & ~of_loss(batch, kept, stores).mask
    for name, which in (("masked", ~seen), ("seen", seen)):
        found[f"same_text.{name}"] = (once_more & which).sum(dtype=torch.float32)
    return found
