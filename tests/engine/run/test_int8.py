"""Linear layers in int8: sums by a slow loop, no text beside another, where it is refused."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from cse_testkit import shared_encoder, tiny_corpus
from torch import nn

import cse
from cse_core.errors import CseError
from cse_engine.runtime.int8 import Int8Linear, to_int8
from tests.fixtures.command_line import Cse, refused

Capable = Callable[[bool], None]


@pytest.fixture(autouse=True)
def capable(monkeypatch: pytest.MonkeyPatch) -> Capable:
    """Pretend a processor with the instructions, or without them."""

    def pretend(has: bool) -> None:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx_vnni": has})

    pretend(True)
    return pretend


def test_layers_share_their_input_only_while_it_is_the_same() -> None:
    torch.manual_seed(0)
    layers, rows, last = [nn.Linear(4, 2) for _ in range(2)], torch.randn(3, 4), [None]
    shared = [Int8Linear(layer, last) for layer in layers]
    for _ in range(2):
        alone = [Int8Linear(layer) for layer in layers]
        with torch.no_grad():
            for one, other in zip(shared, alone, strict=True):
                torch.testing.assert_close(one(rows), other(rows), rtol=0, atol=0)
            rows += 1
    del rows
    torch.testing.assert_close(shared[0](torch.ones(3, 4)), alone[0](torch.ones(3, 4)))


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_equals_a_slow_loop(bias: bool) -> None:
    torch.manual_seed(0)
    layer, rows = nn.Linear(5, 3, bias=bias), torch.randn(2, 4, 5)
    rows[0, 1] = 0
    made = Int8Linear(layer)(rows)
    assert made.shape == (2, 4, 3)
    for place in np.ndindex(2, 4):
        row = rows[place].detach().double()
        step = max(float(row.max() - row.min()), 255e-12) / 255
        middle = float(row.min()) + 128 * step
        for out in range(3):
            weights = layer.weight[out].detach().double()
            size = float(weights.abs().max()) / 127
            pairs = zip(row.tolist(), weights.tolist(), strict=True)
            total = sum(
                (round((x - middle) / step) * step + middle) * round(w / size) * size
                for x, w in pairs
            )
            total += float(layer.bias[out].detach()) if bias else 0
            assert float(made[place][out].detach()) == pytest.approx(total, abs=1e-5)


def test_vectors_are_near_those_of_fp32_and_their_own_alone() -> None:
    texts = [*tiny_corpus(40).column("text")]
    whole = cse.load(shared_encoder(), device="cpu").encode(texts, normalize=True)
    model = cse.load(shared_encoder(), device="cpu", precision="int8")
    layers = [m for m in model.loaded.sentence_encoder.encoder.modules() if type(m) is nn.Linear]
    assert not layers
    made = model.encode(texts, normalize=True)
    assert 0.999 < (whole * made).sum(axis=1).min() < 1 - 1e-7
    np.testing.assert_allclose(model.encode(texts[3:4], normalize=True)[0], made[3], atol=1e-6)


def test_it_is_refused_without_a_processor_for_it(capable: Capable, cse: Cse) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(CseError, match="runs on processors only"):
        to_int8(model, torch.device("meta"))
    assert to_int8(model, torch.device("cpu")) == 1
    words = ("encode", "starter", "--text", "a", "--precision")
    assert cse(*words, "int8").code == 0
    capable(False)
    refused(cse(*words, "int8"), "--precision", "avx512_vnni", "use fp32")
    refused(cse(*words, "int4"), "--precision", "no such precision")
    refused(cse("train", "--train.precision", "int8", "--dry-run"), "train.precision")
