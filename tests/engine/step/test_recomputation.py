"""Activations computed again: the same losses and gradients bit for bit, and fewer bytes kept."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.shortcuts import recompute_layers
from cse_engine.step.dropout import DropoutSource
from tests.fixtures.tiny import Bench

CLS = '[[pool]]\nuse = "cls"\n[[pool]]\nuse = "mlp"\n[[loss]]\nuse = "infonce"\n'
MEAN = '[[pool]]\nuse = "mean"\n[[loss]]\nuse = "infonce"\n'
QUEUE = f'{CLS}[[negatives]]\nuse = "queue"\nbranch = "ema"\n[[branch]]\nuse = "ema"\ndecay = 0.5\n'
FGSM = (
    f'{CLS}[[aug]]\nuse = "push"\ngradient = "previous"\n'
    '[[aug]]\nuse = "push"\nname = "now"\npoint = "input_embeddings"\n'
)


def gradients(
    encoder: str, folder: Path, recipe: str, *sets: str
) -> tuple[list[float], dict[str, Tensor]]:
    folder.mkdir()
    bench = Bench(encoder, folder, recipe, "train.lr=1e-3", *sets)
    return [float(bench.step(number).loss) for number in range(3)], bench.gradients


@pytest.mark.parametrize(
    "recipe, sets",
    [
        (CLS, ()),
        (MEAN, ("model.attention=padded",)),
        (QUEUE, ("train.chunk_size=3",)),
        (FGSM, ()),
        (FGSM, ("train.chunk_size=3",)),
        (CLS, ("train.precision=bf16",)),
    ],
    ids=["packed", "padded", "chunks", "fgsm", "fgsm in chunks", "bf16"],
)
def test_the_same_as_kept(encoder: str, folder: Path, recipe: str, sets: tuple[str, ...]) -> None:
    losses, kept = gradients(encoder, folder / "kept", recipe, *sets)
    again, found = gradients(
        encoder, folder / "again", recipe, "model.gradient_checkpointing=true", *sets
    )
    assert losses == again and kept.keys() == found.keys()
    assert all(torch.equal(kept[name], found[name]) for name in kept)
    assert any(bool(value.any()) for value in found.values())


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the bytes that a forward pass keeps for the backward pass."""
    kept: dict[int, int] = {}

    def keep(value: Tensor) -> Tensor:
        storage = value.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return value

    total: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        yield total
    total.append(sum(kept.values()))


def test_less_is_kept_and_a_copy_is_its_own(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words, positions = torch.randn(40, 32, requires_grad=True), torch.arange(8).repeat(5)
    offsets = torch.arange(0, 41, 8)
    found = []
    for again in (False, True):
        loaded, _ = PackedEncoder.load_with_tokenizer(encoder, seed=1)
        own, source = loaded.train(), DropoutSource()
        source.serve(own)
        if again:
            recompute_layers(own.model, source)
            copied = copy.deepcopy(own)
            with torch.no_grad():
                for parameter in copied.parameters():
                    parameter.zero_()
            assert not copied(words, positions, offsets).last.any()
        with counted() as kept:
            assert own(words, positions, offsets).last.any()
        found += kept
    assert found[1] < found[0] / 2
    monkeypatch.setattr("cse_defaults.transformers.shortcuts.transformer_layers", lambda model: [])
    with pytest.raises(CseError, match="layers of BertModel are not known"):
        loaded, _ = PackedEncoder.load_with_tokenizer(encoder, seed=1)
        recompute_layers(loaded.model, DropoutSource())
