"""sentence-transformers' GISTEmbed losses gave these numbers; the store under infonce does."""

from typing import Any

import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.functional import similarity
from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives, StepContext
from cse_engine.step.negatives import negatives_for_loss, reversed_batch
from tests.shared import compare, golden, tensor

BOUND = 1e-9
BLOCKS = {"in-batch": "anchor-positive", "anchors": "anchor-anchor"}
"""What the file calls the columns of anchors."""


def of_file(case: dict[str, Any]) -> tuple[Batch, StepContext, Any]:
    """Return the model's batch, a context in which the guide has its own vectors, and the store."""
    names = list(case["guide"])
    roles: Any = {name: name.partition("_")[0] for name in names if name != "anchor"}
    batch = make_batch({n: tensor(case[n]).requires_grad_(True) for n in names}, views=roles)
    guide = make_batch({n: tensor(rows) for n, rows in case["guide"].items()}, views=roles)
    ctx = make_context(batch, vectors=lambda view, branch: guide.views[view])
    hard = tuple(name for name in names if name.startswith("negative"))
    store = make_part(
        "negatives", "guide", margin=case["margin"], strategy=case["margin_strategy"], views=hard
    )
    return batch, ctx, store


def removed(found: Negatives, block: slice) -> Tensor:
    return found.mask[:, block] | found.log_weights[:, block].isinf()


def logits(anchors: Tensor, found: Negatives, temperature: float) -> Tensor:
    close = similarity(anchors, found.vectors) / temperature + found.log_weights
    return close.masked_fill(found.mask, -torch.inf)


def test_masks_loss_and_gradients() -> None:
    """The code's other positives, seen from the positive in the same softmax, are joined here."""
    cases = golden("goldB")["gist"]["cases"]
    assert len(cases) == 4
    for case in cases:
        batch, ctx, store = of_file(case)
        targets, warm = batch.targets["positive"], case["temperature"]
        both = LossOptions(in_batch="both" if case["contrast_anchors"] else "target")
        found = store.weigh(ctx.negatives(batch, both), batch, ctx)
        for name, block in found.spans():
            wanted = torch.tensor(case["masked"][BLOCKS.get(name, f"anchor-{name}")])
            if name == "in-batch":  # the core masks the own positive, not a negative
                wanted = wanted | torch.eye(len(wanted), dtype=torch.bool)
            assert torch.equal(removed(found, block), wanted), f"{case['name']}: {name}"
        infonce = make_part("loss", "infonce", temperature=warm)
        value = infonce(batch, targets, found, ctx).value
        if case["contrast_positives"]:
            swapped, _ = reversed_batch(batch, "positive")
            anchors = LossOptions(in_batch="anchor")
            seen = negatives_for_loss(batch, anchors, (), seen_by=swapped)
            others = store.weigh(seen, swapped, ctx)
            wanted = torch.tensor(case["masked"]["positive-positive"])
            assert torch.equal(removed(others, slice(None)), wanted)
            own = torch.cosine_similarity(batch.anchors, swapped.anchors).unsqueeze(1) / warm
            columns = [own, logits(batch.anchors, found, warm)]
            columns.append(logits(swapped.anchors, others, warm))
            value = (torch.cat(columns, dim=1).logsumexp(dim=1) - own.squeeze(1)).mean()
        leaves = {name: batch.views[name]["sentence"].vectors for name in case["guide"]}
        compare(value, leaves, case, BOUND)
