"""Which weights train, at which rate, and which decay."""

from typing import Any

import pytest
import torch
from cse_testkit import Rig, compose, shared_encoder, tiny_corpus

from cse_core.errors import CseError
from cse_engine.step.optimizer import Optimizer
from tests.fixtures.tiny import Build

HEADED = '[[pool]]\nuse = "cls"\n[[pool]]\nuse = "mlp"\n[[loss]]\nuse = "infonce"\n'


def optimizer(build: Build, *sets: str) -> Optimizer:
    bench = build(HEADED, *sets)
    return Optimizer(bench.assembly, bench.composition.train, 20)


def test_rates_and_decay(build: Build) -> None:
    for warmup in ("0.2", "4"):
        linear = optimizer(build, f"train.warmup={warmup}", "train.schedule=linear")
        assert [linear.rate(step) for step in (0, 1, 3, 4, 12, 20)] == pytest.approx(
            [0, 0.25, 0.75, 1, 0.5, 0]
        )
    constant = optimizer(build, "train.warmup=0", "train.schedule=constant")
    assert [constant.rate(step) for step in (0, 19)] == [1, 1]
    sets = ("train.weight_decay=0.1", "train.lr=1e-3", "train.head_lr=2e-3")
    made = optimizer(build, *sets)
    names = {parameter: name for name, parameter in made.named.items()}
    found = {
        names[parameter]: (group["peak"], group["weight_decay"])
        for group in made.adamw.param_groups
        for parameter in group["params"]
    }
    assert found.keys() == made.named.keys() and len(found) > 20
    for name, pair in found.items():
        bare = name.endswith("bias") or "LayerNorm" in name
        assert pair == (1e-3 if name.startswith("encoder.") else 2e-3, 0.0 if bare else 0.1), name


def test_each_layer_has_the_rate_of_the_layer_above_times_the_decay(build: Build) -> None:
    made = optimizer(build, "train.lr=1e-3", "train.head_lr=2e-3", "train.layer_decay=0.5")
    rates = {
        name: group["peak"]
        for group in made.adamw.param_groups
        for parameter in group["params"]
        for name in [next(n for n, p in made.named.items() if p is parameter)]
    }
    expected = {"layer.1.": 1e-3, "layer.0.": 5e-4, "embeddings.": 2.5e-4, "pool.mlp": 2e-3}
    for part, rate in expected.items():
        found = [value for name, value in rates.items() if part in name]
        assert found and found == [pytest.approx(rate)] * len(found), part


def test_named_layers_alone_train(build: Build) -> None:
    bench = build(HEADED, "model.train_layers=[-1]")
    encoder = bench.assembly.online.encoder
    trained = {name for name, p in encoder.named_parameters() if p.requires_grad}
    assert trained and all("layer.1." in name for name in trained)
    heads = {"pool.mlp.stages.0.weight", "pool.mlp.stages.0.bias"}
    assert {*bench.optimizer.named} == {f"encoder.{name}" for name in trained} | heads
    bench.step()
    assert not [name for name in trained if not bool(bench.gradients[f"encoder.{name}"].any())
                and "key.bias" not in name]  # fmt: skip
    with pytest.raises(CseError, match=r"model.train_layers.*no such layer: it has 2 .*got 2"):
        build(HEADED, "model.train_layers=[0,2]")


HEADS = '[[pool]]\nuse = "cls"\n[[pool]]\nuse = "mlp"\n'
ADAPTED = f'{HEADS}[[loss]]\nuse = "infonce"\n[[adapter]]\nuse = "biases"\n'
EMA = f'{ADAPTED}[[negatives]]\nuse = "queue"\nbranch = "ema"\n[[branch]]\nuse = "ema"\n'


def test_an_ema_branch_shares_the_frozen_weights(build: Build) -> None:
    bench = build(EMA, "train.lr=1e-2", "branch.ema.decay=0.5")
    online, ema = (bench.assembly.encoders[name].encoder for name in ("online", "ema"))
    pairs = list(zip(online.parameters(), ema.parameters(), strict=True))
    assert all((one is other) != one.requires_grad for one, other in pairs)
    start = [one.detach().clone() for one, _ in pairs]
    bench.step()
    for (one, other), before in zip(pairs, start, strict=True):
        torch.testing.assert_close(other, (before + one) / 2 if one.requires_grad else before)
    with pytest.raises(CseError, match="a run has one adapter, not biases and more; remove 1"):
        build(f'{ADAPTED}[[adapter]]\nuse = "biases"\nname = "more"\n')
    with pytest.raises(CseError, match=r"train_layers: the adapter of this run decides what is"):
        build(ADAPTED, "model.train_layers=[-1]")


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "distilbert", "mpnet"])
def test_a_frozen_embedding_layer_keeps_its_values(family: Any) -> None:
    """Words, positions, types and norm stay; the transformer layers move."""
    encoder = shared_encoder(family=family)
    sets = ["model.freeze_embeddings=true"]
    rig = Rig(compose(sets=sets, corpus=tiny_corpus(), encoder=encoder))
    before = rig.weights()
    rig.step(2)
    moved = {name for name, value in rig.weights().items() if not torch.equal(before[name], value)}
    assert not [name for name in moved if ".embeddings." in name]
    assert any("layer." in name for name in moved)
