"""MoCoSE's own code, run unmodified, gave these numbers; the parts give the same."""

from typing import Any, cast

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part, make_setup
from torch import nn

from cse_core.options import LossOptions
from cse_core.types import Batch, View
from cse_defaults.basics.branches import Ema
from cse_defaults.basics.options import EmaOptions
from cse_engine.step import negatives as core
from tests.shared import compare, golden, tensor


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    found: dict[str, Any] = golden("mocose_loss_queue")
    return found


def batch_of(numbers: dict[str, Any], store: Any) -> Batch:
    """Return the batch with the file's queue in the store."""
    vectors = {
        "anchor": tensor(numbers["query"]).requires_grad_(True),
        "positive": tensor(numbers["keys"]).requires_grad_(True),
    }
    batch = make_batch(vectors)
    held = tensor(numbers["queue_columns_D_x_K"]).T
    row = torch.full((len(held),), -1)
    state = {"vectors": held, "row": row, "age": torch.ones_like(row), "entered": 0}
    store.load_state_dict(state)
    found = store.candidates(batch, make_context(batch))
    return make_batch(vectors, stored={store.name: found})


def test_loss_and_gradients(numbers: dict[str, Any]) -> None:
    """Keys of the batch and of the queue are negatives; keys with a gradient as in the code."""
    store = make_part("negatives", "queue", size=10)
    batch = batch_of(numbers, store)
    negatives = core.negatives_for_loss(batch, LossOptions(), [store.name])
    assert negatives.blocks == (("in-batch", 4), ("queue", 10))
    loss = make_part("loss", "infonce", temperature=numbers["temp"])
    value = loss(batch, batch.targets["positive"], negatives, make_context(batch)).value
    names = {"query": "anchor", "keys": "positive"}
    leaves = {name: batch.views[view]["sentence"].vectors for name, view in names.items()}
    compare(value, leaves, numbers, numbers["suggested_atol"])


def test_columns_of_the_official_growth(numbers: dict[str, Any]) -> None:
    """Keys are numbers here: random rows -1, -2, ..., real keys 1, 2, ... in their order."""
    assert len(numbers["queue_trace"]) == 2
    for wanted in numbers["queue_trace"]:
        size, fill = wanted["K"], wanted["K_start"]
        options = {"size": size, "first_fill": fill, "growth": "official"}
        store = make_part("negatives", "queue", dimension=1, **options)
        random = -torch.arange(1, size + 1)
        state = {
            "vectors": random.double().unsqueeze(1),
            "row": torch.full((size,), -1),
            "age": torch.zeros(size, dtype=torch.long),
            "entered": 0,
        }
        store.load_state_dict(state)
        for step in wanted["trace"]:
            number = step["step"]
            keys = torch.arange(wanted["batch"]) + 1 + number * wanted["batch"]
            batch = make_batch(dict.fromkeys(("anchor", "positive"), keys.double().unsqueeze(1)))
            ctx = make_context(batch, step=number)
            found = store.candidates(batch, ctx)
            assert found.vectors.squeeze(1).tolist() == step["columns_used_in_loss"], number
            store.after_step(batch, ctx)


class OneWeight(nn.Module):
    """Stands for an encoder: one weight."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(tensor([value]))

    def copy(self, share_embeddings: bool = False) -> "OneWeight":
        return OneWeight(float(self.weight.detach()))


def test_the_branch_follows_as_the_code_does(numbers: dict[str, Any]) -> None:
    """Its decay is that of the paper over the real number of steps.

    Beyond them the code's decay falls again, since its 15,000 steps are written into it; a
    Schedule stays at its end.
    """
    wanted = numbers["ema"]
    total = wanted["total_step"]
    online = OneWeight(wanted["start_target"])
    options = EmaOptions(decay=f"cosine({wanted['decay0']},1)", copies="encoder")
    branch = Ema(options, make_setup("target", encoder=online))
    branch.name = "target"
    batch = make_batch()
    for update in wanted["updates"]:
        logged: dict[str, Any] = {}
        online.weight.data.fill_(update["online"])
        branch.after_step(
            batch, make_context(batch, step=update["update"] - 1, total_steps=total, log=logged)
        )
        target = float(cast(Any, branch.encoder).weight)
        if update["update"] <= total:
            assert logged["target.decay"] == pytest.approx(update["decay"], abs=1e-12)
            assert target == pytest.approx(update["target"], abs=numbers["suggested_atol"])
        else:
            assert logged["target.decay"] == 1.0 > update["decay"]
            assert target == pytest.approx(wanted["updates"][total - 1]["target"], abs=1e-9)


def test_fgsm(numbers: dict[str, Any]) -> None:
    wanted = numbers["fgsm"]
    part = make_part("aug", "fgsm", epsilon=wanted["epsilon"], relative=False, gradient="previous")
    x, view = tensor(wanted["embeddings"]), View("anchor", "anchor", "online")
    tokens = cast(Any, object())
    gradient = tensor(wanted["gradient_of_previous_step"])
    found = part(x, tokens, view, make_context(gradient=gradient))
    expected = tensor(wanted["perturbed"])
    assert torch.allclose(found, expected, rtol=0, atol=numbers["suggested_atol"])
    assert part(x, tokens, view, make_context(gradient=None)) is x, "the first step has none"
