"""Projector and predictor: layers, dimensions, who has them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cse_mocose.heads import Predictor, Projector
from cse_mocose.options import PredictorOptions, ProjectorOptions
from cse_testkit import (
    Rig,
    compose,
    installed_registry,
    make_part,
    make_setup,
    run_steps,
    settings_of,
    shared_encoder,
    tiny_corpus,
)
from torch import nn
from transformers import BertModel

from cse_core.errors import CseError
from cse_core.recipes.compose import resolve
from cse_core.records import RunInfo


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


@pytest.mark.parametrize("name", ["projector", "predictor"])
def test_layer_norms_have_the_epsilon_of_bert(name: str) -> None:
    head = make_part("pool", name, layers=3)
    norms = [each for each in head.stages if isinstance(each, nn.LayerNorm)]
    assert norms and all(each.eps == 1e-12 for each in norms)


def test_weights_start_as_berts_do() -> None:
    options = ProjectorOptions(layers=2, dimension=300)
    head = Projector(options, make_setup("projector", dimension=300))
    for linear in (each for each in head.stages if isinstance(each, nn.Linear)):
        assert float(linear.weight.detach().std()) == pytest.approx(0.02, rel=0.02)
        assert not linear.bias.detach().any()


def test_the_pooler_is_linear() -> None:
    """The code's pooler has no activation; tanh stands behind the predictor alone."""
    corpus = tiny_corpus()
    heads = Rig(compose(recipe="mocose", corpus=corpus), corpus).assembly.online.heads
    vectors = torch.randn(6, 32)
    one, two = heads["pooler"](vectors), heads["pooler"](2 * vectors)
    assert torch.allclose(two, 2 * one, atol=1e-6), "its biases start at zero"
    assert kinds_of(heads["pooler"]) == ["Linear", "Identity"]


def test_the_notebook_starts_from_the_encoders_own_pooler(tmp_path: Path) -> None:
    """In both branches: the target begins as a copy of the online one."""
    folder = tmp_path / "bert"
    config = BertModel.config_class.from_pretrained(shared_encoder())
    torch.manual_seed(5)
    model = BertModel(config, add_pooling_layer=True)
    model.save_pretrained(folder)
    for file in shared_encoder().glob("*token*"):
        (folder / file.name).write_bytes(file.read_bytes())
    corpus = tiny_corpus()
    made = compose(
        recipe="mocose", sets=["pool.pooler.start=pooler"], encoder=folder, corpus=corpus
    )
    encoders = Rig(made, corpus).assembly.encoders
    for branch in ("online", "target"):
        linear = encoders[branch].heads["pooler"].stages[0]  # type: ignore[index]
        assert torch.equal(linear.weight, model.pooler.dense.weight)  # type: ignore[union-attr]
        assert torch.equal(linear.bias, model.pooler.dense.bias)  # type: ignore[union-attr]
    drawn = Rig(compose(recipe="mocose", encoder=folder, corpus=corpus), corpus).assembly.online
    assert not torch.equal(drawn.heads["pooler"].stages[0].weight, linear.weight)  # type: ignore[index]


@pytest.mark.parametrize(("hidden", "wanted"), [(384, 384), (1024, 1024), (None, 768)])
def test_the_dimension_is_the_encoders(hidden: int | None, wanted: int) -> None:
    """Where nothing is known of the encoder, before it is loaded, it is BERT-base's."""
    facts = RunInfo(model="some", family=hidden and "bert", hidden=hidden, columns=("text",))
    made = resolve(installed_registry(), recipe="mocose", model="some", facts=facts)
    for path in ("pool.projector", "pool.predictor", "negatives.queue"):
        assert settings_of(made)[f"{path}.dimension"] == wanted
    assert made.params["dimension"] == wanted


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
    return rig.loop.optimizer.adamw.param_groups
