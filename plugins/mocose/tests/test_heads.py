"""Projector and predictor: layers, dimensions, who has them."""

import pytest
import torch
from cse_mocose.heads import Predictor, Projector
from cse_mocose.options import PredictorOptions, ProjectorOptions
from cse_testkit import make_part, make_setup, settings_of
from torch import nn

from tests.fixtures.methods import planned, refusal

KINDS = {"projector": (Projector, ProjectorOptions), "predictor": (Predictor, PredictorOptions)}


def kinds_of(head: nn.Module) -> list[str]:
    return [type(each).__name__ for each in head.stages]  # type: ignore[union-attr]


def test_layers_and_dimensions() -> None:
    block = ["Linear", "LayerNorm", "Dropout"]
    vectors = torch.randn(5, 8, dtype=torch.float64)
    for layers in range(4):
        projector, predictor = (
            make_part("pool", name, layers=layers).eval() for name in ("projector", "predictor")
        )
        assert kinds_of(projector) == block * layers
        assert kinds_of(predictor) == block * (layers - 1) + ["Linear", "Tanh"] * (layers > 0)
        for head in (projector, predictor):
            assert head.dimension == 8 and head(vectors).shape == (5, 8)
            assert bool((head(vectors) == vectors).all()) == (layers == 0)
            norms = [each for each in head.stages if isinstance(each, nn.LayerNorm)]
            assert all(each.eps == 1e-12 for each in norms), "BERT's"
        for name in ("projector", "predictor") if layers else ():
            options = KINDS[name][1](layers=layers, dimension=20)
            wide = KINDS[name][0](options, make_setup(name, dimension=8)).double()
            assert wide.dimension == 20 and wide(vectors).shape == (5, 20)
    options = ProjectorOptions(layers=0, dimension=20)
    line = refusal(Projector, options, make_setup("projector", dimension=8))
    assert line.startswith("pool.projector.dimension: without layers its 8")


def test_weights_start_as_berts_do() -> None:
    options = ProjectorOptions(layers=2, dimension=300)
    head = Projector(options, make_setup("projector", dimension=300))
    for linear in (each for each in head.stages if isinstance(each, nn.Linear)):
        assert float(linear.weight.detach().std()) == pytest.approx(0.02, rel=0.02)
        assert not linear.bias.detach().any()


def test_the_dimension_is_the_encoders_or_the_parameter() -> None:
    """Where nothing is known of the encoder, before it is loaded, it is BERT-base's."""
    for hidden, sets, wanted in (
        (384, [], 384),
        (1024, [], 1024),
        (None, [], 768),
        (384, ["params.dimension=16"], 16),
    ):
        made = planned("mocose", *sets, model="some", family=hidden and "bert", hidden=hidden)
        for path in ("pool.projector", "pool.predictor"):
            assert settings_of(made)[f"{path}.dimension"] == wanted
        assert made.params["dimension"] == wanted
