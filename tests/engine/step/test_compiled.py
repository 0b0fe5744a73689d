"""Layers by torch's compiler: the masks and numbers of layers that are not compiled."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import RecipeSuite
from cse_testkit.promises import installed_registry, plugins_of
from cse_testkit.runs import Rig
from cse_testkit.tiny import tiny_encoder

from cse_core.errors import CseError
from cse_core.records import RecipeSpec
from cse_defaults.transformers.encoder import PackedEncoder
from cse_engine.step.compiled import compile_layers
from cse_engine.step.dropout import DropoutSource
from tests.engine.step.test_recomputation import FGSM, QUEUE, gradients

CPU = torch.device("cpu")
_FGSM = ("train.chunk_size=3", "model.gradient_checkpointing=true", "train.precision=bf16")


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Trace, and let torch's own kernels compute: nothing is rounded in another way."""
    compiler, calls = torch.compile, list[Any]()

    def trace(plain: Callable[..., Any], **how: Any) -> Any:
        assert how == {"dynamic": True, "options": {"fallback_random": True}}
        calls.append(plain)
        return compiler(plain, dynamic=True, backend="eager")

    monkeypatch.setattr(torch, "compile", trace)
    return calls


@pytest.mark.parametrize(
    "recipe, sets, encoders",
    [(QUEUE, ("model.attention=padded", "train.chunk_size=3"), 2), (FGSM, _FGSM, 1)],
    ids=["two encoders, padded, in chunks", "fgsm in chunks, recomputed, bf16"],
)
def test_the_same_as_without(
    folder: Path, recipe: str, sets: tuple[str, ...], encoders: int, traced: list[Any]
) -> None:
    encoder = str(tiny_encoder(folder / "encoder", layers=1))
    losses, plain = gradients(encoder, folder / "plain", recipe, *sets)
    assert not traced
    again, made = gradients(encoder, folder / "made", recipe, "train.compile=true", *sets)
    assert len(traced) == encoders, "one for every layer of every encoder that trains"
    assert losses == again and plain.keys() == made.keys()
    assert all(torch.equal(plain[name], made[name]) for name in plain)


def test_a_copy_is_its_own_and_scores_are_not_compiled(encoder: str, traced: list[Any]) -> None:
    words, positions = torch.randn(40, 32), torch.arange(8).repeat(5)
    offsets, source = torch.arange(0, 41, 8), DropoutSource()
    loaded, _ = PackedEncoder.load_with_tokenizer(encoder, seed=1)
    source.serve(loaded.eval())
    plain = loaded(words, positions, offsets).last
    compile_layers(loaded, source, CPU)
    assert "drop" in vars(source), "draws of a CPU stay outside, whatever else the machine has"
    assert torch.equal(loaded(words, positions, offsets).last, plain) and not traced
    assert loaded.train()(words, positions, offsets).last.any() and len(traced) == 2
    copied = copy.deepcopy(loaded)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.zero_()
    assert not copied(words, positions, offsets).last.any() and len(traced) == 4


def test_what_a_machine_or_an_encoder_lacks_is_said(
    encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, _ = PackedEncoder.load_with_tokenizer(encoder, seed=1)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CseError, match=r"no C\+\+ compiler") as caught:
        compile_layers(loaded, DropoutSource(), CPU)
    assert caught.value.hint == "install g++, or name a C++ compiler in the variable CXX"
    monkeypatch.setattr("cse_defaults.transformers.encoder.transformer_layers", lambda model: [])
    with pytest.raises(CseError, match="no layers that are known"):
        compile_layers(loaded, DropoutSource(), CPU)


def losses(recipe: str, *sets: str) -> tuple[float, ...]:
    suite = type("Suite", (RecipeSuite,), {"recipe": recipe})()
    rig = Rig(suite._composed(*sets), plugins_of(suite.registry))
    rig.step(3)
    return rig.losses


BY_INDUCTOR = ("simcse", "mocose", "infocse-wu", "hicl", "llm2vec", "tncse")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [r.name for r in installed_registry().all(RecipeSpec)])
def test_every_recipe(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()  # type: ignore[no-untyped-call]
    if recipe not in BY_INDUCTOR:
        trace = partial(torch.compile, dynamic=True, backend="aot_eager")
        monkeypatch.setattr(torch, "compile", lambda layer, **how: trace(layer))
    wanted = losses(recipe)
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        found = losses(recipe, "train.compile=true")
    assert found == pytest.approx(wanted, rel=1e-4, abs=1e-7)
