"""ESimCSE's own code, run unmodified, gave these numbers; the recipe's objective gives the same."""

import pytest
import torch
from cse_testkit import Rig, compose, make_batch, make_context

from tests.shared import compare, golden, tensor


def test_loss_without_a_queue_and_with_gradients_for_one_of_six() -> None:
    wanted = golden("esimcse_queue")
    atol, held = wanted["suggested_atol"], tensor(wanted["queue"])
    rig = Rig(compose(recipe="esimcse"))
    rig.session.prepare()
    leaves = {name: tensor(wanted[name]).requires_grad_(True) for name in ("z1", "z2")}
    batch = make_batch({"anchor": leaves["z1"], "positive": leaves["z2"]})
    given = (batch.views, batch.roles, batch.rows, batch.corpus, make_context(batch))
    value = rig.session._loop.engine.objectives(*given).value
    assert value is not None
    assert float(value.detach()) == pytest.approx(wanted["loss_without_queue"], abs=atol)
    rig.session.parts["negatives.momentum-queue"].load_state_dict(
        {"vectors": held, "row": torch.arange(20, 26), "age": torch.ones(6, dtype=torch.long)}
    )
    value = rig.session._loop.engine.objectives(*given).value
    assert value is not None
    compare(value, leaves, wanted, atol)
