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
    """Return the scalars of docs/lifecycle.md#negatives-in-the-log; no device is waited for."""
    seen = ~negatives.mask
    shown = {"": seen, ".weight_zero": seen & (negatives.log_weights == -torch.inf)}
    shown |= {f".{name}": seen[:, block] for name, block in negatives.spans() if name != "none"}
    sums = {f"negatives{name}": there.sum() for name, there in shown.items()}
    found = {name: total / max(len(seen), 1) for name, total in sums.items()}
    for name, block in negatives.spans():
        if name in batch.stored:
            ages = (seen[:, block] * negatives.age[block]).sum()
            found[f"negatives.{name}.age"] = ages / sums[f"negatives.{name}"].clamp_min(1)
    kept = options.model_copy(update={"same_text": "keep", "same_document": "keep"})
    once_more = same_texts(batch, negatives) & ~of_loss(batch, kept, stores).mask
    for name, which in (("masked", ~seen), ("seen", seen)):
        found[f"same_text.{name}"] = (once_more & which).sum(dtype=torch.float32)
    return found
