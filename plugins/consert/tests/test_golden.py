"""ConSERT's own code, run unmodified, gave these numbers; infonce with core options does too."""

import pytest
import torch
from cse_testkit import Rig, compose, make_batch, make_context

from tests.shared import golden, tensor

CL_RATE = 0.15
"""What the training script multiplies the file's loss by."""


def test_the_recipe_has_the_published_loss_and_gradients() -> None:
    given = golden("consert_ntxent")
    atol, cases = given["suggested_atol"], given["cases"]
    assert [each["temp"] for each in cases] == [0.1, 0.05]
    for wanted in cases:
        sets = [f"loss.infonce.temperature={wanted['temp']}"]
        rig = Rig(compose(recipe="consert", sets=sets))
        rig.session.prepare()
        views = [tensor(given[name]).requires_grad_(True) for name in ("view1", "view2")]
        batch = make_batch({"anchor": views[0], "positive": views[1]})
        objective = rig.session._loop.engine.objectives(
            batch.views, batch.roles, batch.rows, batch.corpus, make_context(batch),
            count_negatives=True,
        )  # fmt: skip
        value = objective.value
        assert value is not None
        assert float(value.detach()) == pytest.approx(CL_RATE * wanted["loss"], abs=atol)
        # The loss itself is the mean of the two directions, the published one their sum.
        loss = float(objective.parts["infonce.loss"])
        assert 2 * loss == pytest.approx(wanted["loss"], abs=atol)
        assert float(objective.parts["infonce.negatives"]) == 2 * 4 - 2
        gradients = torch.autograd.grad(value, views)
        for gradient, name in zip(gradients, ("view1", "view2"), strict=True):
            expected = CL_RATE * tensor(wanted[f"grad_{name}"])
            assert torch.allclose(gradient, expected, rtol=0, atol=atol)
