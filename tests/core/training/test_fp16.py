"""fp16: near fp32, overflows skip a step everywhere, and a resumed run is the same bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cse_core.data import Corpus
from cse_core.errors import CseError
from cse_core.training.checkpoint import Checkpoint, weights
from cse_core.training.signals import Stopped
from cse_core.training.trainer import Trainer
from tests.core.training.test_runs import EVERYTHING, same, stop_after, unmeasured
from tests.fixtures.tiny import Bench, composed, metrics, sentences, trainer

HEAD = '[[pool]]\nuse = "cls"\n[[pool]]\nuse = "mlp"\n'
PLAIN = HEAD + '[[negatives]]\nuse = "queue"\n[[loss]]\nuse = "infonce"\n'
PUSH = HEAD + '[[aug]]\nuse = "push"\n[[loss]]\nuse = "infonce"\n'
PREVIOUS = PUSH.replace('"push"', '"push"\ngradient = "previous"')


def bench(encoder: str, folder: Path, recipe: str, *sets: str, precision: str = "fp16") -> Bench:
    return Bench(encoder, folder, recipe, "model.dropout=0", f"train.precision={precision}", *sets)


def start_at(scaler: torch.amp.GradScaler, scale: float) -> None:
    scaler.load_state_dict({**scaler.state_dict(), "scale": scale})


def flat(tensors: dict[str, Tensor]) -> Tensor:
    return torch.cat([value.flatten().float() for value in tensors.values()])


@pytest.mark.parametrize("chunk", ["none", "3"])
@pytest.mark.parametrize("recipe", [PLAIN, PUSH], ids=["plain", "push"])
def test_gradients_are_near_those_of_fp32(
    recipe: str, chunk: str, encoder: str, folder: Path
) -> None:
    sets = f"train.chunk_size={chunk}"
    half = bench(encoder, folder, recipe, sets)
    full = bench(encoder, folder, recipe, sets, precision="fp32")
    start_at(half.engine.scaler, 2.0**10)
    found, wanted = half.step(), full.step()
    assert found.update is not None and found.update.applied and not half.optimizer.overflows
    assert float(found.loss) == pytest.approx(float(wanted.loss), rel=1e-2)
    scale = half.engine.scaler.get_scale()
    one, other = flat(half.gradients) / scale, flat(full.gradients)
    assert float(torch.cosine_similarity(one, other, dim=0)) > 0.999
    assert float(one.norm() / other.norm()) == pytest.approx(1.0, abs=0.02)
    assert float(found.update.norm) == pytest.approx(float(other.norm()), rel=0.02)  # type: ignore[arg-type]


@pytest.mark.parametrize("recipe", [PUSH, PREVIOUS], ids=["fresh", "previous"])
@pytest.mark.parametrize("chunk", ["none", "3"])
def test_gradients_of_the_inputs_have_no_scale(
    recipe: str, chunk: str, encoder: str, folder: Path
) -> None:
    seen = []
    for precision in ("fp16", "fp32"):
        made = bench(encoder, folder, recipe, f"train.chunk_size={chunk}", precision=precision)
        if precision == "fp16":
            start_at(made.engine.scaler, 2.0**10)
        for _ in range(2):
            made.step(index=list(range(8)))
        seen.append(made.part("aug.push").seen[2])
    found, wanted = seen
    assert float(wanted.norm()) > 1e-3
    assert float((found - wanted).norm() / wanted.norm()) < 0.05


def test_an_overflow_skips_the_step_and_halves_the_scale(encoder: str, folder: Path) -> None:
    made = bench(encoder, folder, PUSH + '[[negatives]]\nuse = "queue"\n')
    scaler = made.engine.scaler
    before = {name: value.clone() for name, value in weights(made.assembly).items()}
    start_at(scaler, 2.0**60)
    result = made.step()
    assert result.update is not None and not result.update.applied
    assert made.optimizer.overflows == 1 and scaler.get_scale() == 2.0**59
    assert all(torch.equal(v, before[n]) for n, v in weights(made.assembly).items())
    assert not len(made.part("negatives.queue").row), "nothing of the step is committed"
    assert made.assembly.calls.first_bad() is None
    push = made.part("aug.push").seen[2]
    assert torch.isfinite(push).all(), "what a part is given is finite"
    start_at(scaler, 2.0**10)
    result = made.step(1)
    assert result.update is not None and result.update.applied
    assert any(not torch.equal(v, before[n]) for n, v in weights(made.assembly).items())


def test_a_gradient_that_overflows_at_every_scale_ends_the_run(encoder: str, folder: Path) -> None:
    made = bench(encoder, folder, PLAIN)

    def overflow() -> None:
        for parameter in made.optimizer.named.values():
            if parameter.grad is not None:
                parameter.grad.fill_(float("inf"))

    made.loop.before_update = overflow
    with pytest.raises(CseError) as caught:
        for number in range(40):
            made.step(number)
    assert caught.value.line() == (
        "train.precision: the gradient leaves the range of fp16 whatever it is scaled by: "
        "17 steps were skipped (got 'fp16'); use bf16 or fp32, or lower train.lr"
    )


def begin(encoder: str, folder: Path, out: str) -> tuple[Trainer, Any]:
    sets = ("train.lr=1e-3", "train.precision=fp16", "train.epochs=2", "train.log_steps=3",
            "loss.infonce.weight=30")  # fmt: skip
    composition = composed(encoder, EVERYTHING, *sets, folder=folder, rows=60)
    return trainer(composition, Corpus.from_columns({"text": sentences(60)}), folder / out)


def test_a_resumed_run_is_the_same_and_logs_its_scale(encoder: str, folder: Path) -> None:
    whole, _ = begin(encoder, folder, "whole")
    whole.run()
    stopped, _ = begin(encoder, folder, "again")
    stop_after(stopped, 7)
    with pytest.raises(Stopped):
        stopped.run()
    found = Checkpoint.read(stopped.folder.checkpoints()[-1])
    assert found.values["scaler"]["overflows"] > 0
    resumed, _ = begin(encoder, folder, "again")
    resumed.run(found)
    same(whole, resumed)
    one, other = (unmeasured(metrics(folder / name)) for name in ("whole", "again"))
    assert one == other
    assert [line["skipped_steps"] for line in one] == sorted(line["skipped_steps"] for line in one)
    assert one[-1]["loss_scale"] == 2.0 ** (16 - one[-1]["skipped_steps"])
