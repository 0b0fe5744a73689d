"""Projector and predictor: layers, dimensions, who has them."""

from __future__ import annotations

import pytest
import torch
from cse_mocose.heads import Predictor, Projector
from cse_mocose.options import PredictorOptions, ProjectorOptions
from cse_testkit import Rig, compose, make_part, make_setup, run_steps, tiny_corpus
from torch import nn

from cse_core.errors import CseError


def kinds_of(head: nn.Module) -> list[str]:
    return [type(each).__name__ for each in head.stages]  # type: ignore[union-attr]


@pytest.mark.parametrize("layers", [0, 1, 2, 3])
def test_layers(layers: int) -> None:
    block = ["Linear", "LayerNorm", "Dropout"]
    projector = make_part("pool", "projector", layers=layers)
    predictor = make_part("pool", "predictor", layers=layers)
    assert kinds_of(projector) == block * layers
    assert kinds_of(predictor) == block * (layers - 1) + ["Linear", "Tanh"] * (layers > 0)
    vectors = torch.randn(5, 8, dtype=torch.float64)
    for head in (projector, predictor):
        head.eval()
        assert head.dimension == 8 and head(vectors).shape == (5, 8)
        assert bool((head(vectors) == vectors).all()) == (layers == 0)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("name", ["projector", "predictor"])
def test_dimension(name: str, layers: int) -> None:
    options = {"projector": ProjectorOptions, "predictor": PredictorOptions}[name]
    kind = {"projector": Projector, "predictor": Predictor}[name]
    head = kind(options(layers=layers, dimension=20), make_setup(name, dimension=8))
    assert head.dimension == 20
    assert head(torch.randn(3, 8)).shape == (3, 20)


def test_without_layers_another_dimension_is_refused() -> None:
    with pytest.raises(
        CseError, match=r"pool\.projector\.dimension: without layers its 8"
    ) as found:
        Projector(ProjectorOptions(layers=0, dimension=20), make_setup("projector", dimension=8))
    assert "\n" not in str(found.value)


def test_more_than_three_layers_are_refused() -> None:
    with pytest.raises(CseError, match=r"pool\.predictor\.layers: must be at most 3"):
        compose(recipe="mocose", sets=["pool.predictor.layers=4"])


def test_the_predictor_is_the_online_branchs_alone() -> None:
    """Queries are behind tanh, keys are not; the target's heads are copies that follow."""
    corpus = tiny_corpus()
    rig = Rig(compose(recipe="mocose", corpus=corpus), corpus)
    online, target = (rig.assembly.encoders[name] for name in ("online", "target"))
    assert list(online.heads) == ["pooler", "projector", "predictor"]
    assert list(target.heads) == ["pooler", "projector"]
    assert target.heads["projector"] is not online.heads["projector"]
    trained = {id(p) for group in _groups(rig) for p in group["params"]}
    own = [*target.encoder.parameters(), *target.heads["projector"].parameters()]
    table = online.encoder.model.get_input_embeddings().weight
    assert [p for p in own if id(p) in trained] == [table], "the shared table, and nothing else"
    result = rig.step(1)[0]
    assert float(result.loss) > 0


def test_keys_carry_no_gradient() -> None:
    """With the encoder's layers and the heads still, the table gets its gradient from queries."""
    corpus = tiny_corpus()
    rig = Rig(compose(recipe="mocose", corpus=corpus), corpus)
    seen = []
    store = rig.assembly.parts["negatives.queue"]
    plain = store.candidates

    def candidates(batch, ctx):  # type: ignore[no-untyped-def]
        seen.append(batch.views["positive"]["sentence"].vectors.requires_grad)
        return plain(batch, ctx)

    store.candidates = candidates
    rig.step(2)
    assert seen and not any(seen)


@pytest.mark.parametrize("dimension", [16, 64])
def test_one_parameter_sets_projector_predictor_and_queue(dimension: int) -> None:
    run = run_steps(recipe="mocose", sets=[f"params.dimension={dimension}"], steps=2)
    tensors, _ = run.state
    assert tensors["part.negatives.queue.vectors"].shape[1] == dimension
    assert run.losses[0] > 0


def _groups(rig: Rig):  # type: ignore[no-untyped-def]
    rig.begin()
    return rig.optimizer.adamw.param_groups
