"""The loop of a round: what it steps on, what it keeps, and how it goes on."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from cse_core.data import Corpus
from cse_core.engine.assembly import build
from cse_core.tokenization.training_rows import TrainingRows
from cse_core.training.checkpoint import Checkpoint, restore_assembly, weights
from cse_core.training.loop import TrainingLoop
from cse_core.training.rounds import TrainingRound
from tests.fixtures.tiny import CPU, FP32, composed, sentences

QUEUE = '[[negatives]]\nuse = "queue"\nbranch = "ema"\n[[branch]]\nuse = "ema"\n'


def loop_of(encoder: str, folder: Path, recipe: str = "", *sets: str) -> TrainingLoop:
    corpus = Corpus.from_columns({"text": sentences(20)})
    composition = composed(encoder, recipe, "train.lr=1e-3", *sets, folder=folder, rows=20)
    assembly = build(composition, corpus=corpus, device=CPU, resolve_model=lambda name: name)
    rows = TrainingRows(corpus, composition.model.max_length)
    return TrainingLoop(assembly, TrainingRound(), rows, FP32)


def copied(loop: TrainingLoop) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in weights(loop.assembly).items()}


def test_it_takes_the_batches_of_a_round_until_it_is_over(encoder: str, folder: Path) -> None:
    loop, sizes = loop_of(encoder, folder), []
    while not loop.over:
        sizes.append(loop.step().rows)
    assert sizes == [8, 8, 4] and loop.done == loop.total == 3


def test_gradients_are_there_before_the_weights_move(encoder: str, folder: Path) -> None:
    loop, seen = loop_of(encoder, folder), []
    before = copied(loop)

    def look() -> None:
        seen.append(any(p.grad is not None for p in loop.optimizer.named.values()))
        assert all(torch.equal(v, before[n]) for n, v in weights(loop.assembly).items())

    loop.before_update = look
    loop.step()
    assert seen == [True]
    assert any(not torch.equal(v, before[n]) for n, v in weights(loop.assembly).items())


def test_it_goes_on_from_a_checkpoint_bit_for_bit(encoder: str, folder: Path) -> None:
    whole = loop_of(encoder, folder, QUEUE)
    whole.step()
    whole.checkpoint().write(folder / "step-1")
    whole.step()
    resumed = loop_of(encoder, folder, QUEUE)
    found = Checkpoint.read(folder / "step-1")
    restore_assembly(resumed.assembly, found)
    resumed.restore(found)
    assert resumed.done == 1
    resumed.step()
    one, other = whole.checkpoint(), resumed.checkpoint()
    assert one.values == other.values and one.tensors.keys() == other.tensors.keys()
    assert all(torch.equal(value, other.tensors[name]) for name, value in one.tensors.items())
