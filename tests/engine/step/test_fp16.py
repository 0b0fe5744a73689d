"""fp16 with a scaled loss: gradients are those of fp32 nearly, an overflow skips a step."""

import math

import pytest
import torch
from cse_testkit import compose
from cse_testkit.runs import Rig

from cse_core.errors import CseError

SETS = ["train.precision=fp16", "model.dropout=0", "train.lr=1e-9"]


@pytest.mark.parametrize("more", [(), ("train.chunk_size=2",)])
def test_its_losses_and_gradients_are_those_of_fp32(more: tuple[str, ...]) -> None:
    """A step whose gradient overflows at the first scale has no norm."""
    made = []
    for precision in ("fp16", "fp32"):
        rig = Rig(compose(sets=[*SETS, f"train.precision={precision}", *more]))
        steps = rig.step(4)
        made.append([(float(step.loss), float(step.norm)) for step in steps if step.norm])
    for (loss, norm), (plain, wanted) in zip(*made, strict=True):
        assert loss == pytest.approx(plain, rel=1e-3)
        assert not math.isfinite(norm) or norm == pytest.approx(wanted, rel=0.01)
    assert sum(math.isfinite(norm) for _, norm in made[0]) >= 3


def test_gradients_of_inputs_are_not_scaled() -> None:
    norms = []
    for precision in ("fp16", "fp32"):
        rig = Rig(compose(kinds={"aug": ["fgsm"]}, sets=[*SETS, f"train.precision={precision}"]))
        rig.step(2)
        fields = rig.session._loop.engine.previous
        norms.append(sum(float(field.values.norm()) for field in fields.values()))
    assert norms[0] == pytest.approx(norms[1], rel=0.1)


def test_an_overflow_leaves_the_step_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(compose(sets=SETS))
    rig.step(1)
    loop = rig.session._loop
    scaler, before = loop.optimizer.scaler, rig.weights()
    assert scaler is not None
    scale = scaler.get_scale()
    monkeypatch.setattr(loop.engine.passes, "scale", lambda value: scaler.scale(value) * torch.inf)
    rig.step(1)
    after = rig.weights()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert scaler.get_scale() == scale / 2


def test_a_run_whose_steps_all_overflow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(compose(sets=SETS))
    monkeypatch.setattr(rig.session._loop.engine.passes, "scale", lambda value: value * torch.inf)
    rig.step(3)
    with pytest.raises(CseError, match="gradients overflowed in all of the first 3 steps"):
        rig.session._loop.refuse_untrained()


def test_a_checkpoint_has_the_scale() -> None:
    rig = Rig(compose(sets=SETS))
    rig.step(1)
    one = rig.session._loop.optimizer
    state = one.state()
    other = Rig(compose(sets=SETS))
    other.step(1)
    assert other.session._loop.optimizer.scaler is not None and one.scaler is not None
    state["scaler:scale"] = torch.tensor(1024.0)
    other.session._loop.optimizer.restore(state)
    assert other.session._loop.optimizer.scaler.state_dict()["scale"] == 1024.0
