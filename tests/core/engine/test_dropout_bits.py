"""Masks of 8 bits on request: recorded, resumed the same, and other masks than those of 16."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import torch

from cse_core.data import Corpus
from cse_core.encoders.dropout import Dropout
from cse_core.runtime.reporter import Reporter
from cse_core.training.checkpoint import Checkpoint, weights
from cse_core.training.run import Prepared
from cse_core.training.signals import Stopped
from tests.core.training.test_runs import begin, same, stop_after
from tests.fixtures.tiny import composed, registry, sentences

EIGHT = "train.dropout_bits=8"


def test_they_are_recorded_and_drop_26_of_256(encoder: str, folder: Path) -> None:
    composition = composed(encoder, "", EIGHT, "model.dropout=0.1", folder=folder, rows=24)
    corpus = Corpus.from_columns({"text": sentences(24)})
    prepared = Prepared(composition, registry(), Reporter(), corpus)
    assert tomllib.loads(prepared.record(composition))["train"]["dropout_bits"] == 8
    layers = [m for m in prepared.assembly.online.encoder.modules() if isinstance(m, Dropout)]
    assert {layer.source.effective_p(layer.p) for layer in layers} == {26 / 256}
    assert prepared.assembly.dropout.bits == 8


def test_a_resumed_run_draws_the_same_masks(encoder: str, folder: Path) -> None:
    whole, _ = begin(encoder, folder, "", "whole", EIGHT)
    whole.run()
    first, _ = begin(encoder, folder, "", "again", EIGHT)
    stop_after(first, 3)
    with pytest.raises(Stopped):
        first.run()
    second, _ = begin(encoder, folder, "", "again", EIGHT)
    second.run(Checkpoint.read(second.folder.checkpoints()[-1]))
    same(whole, second)
    plain, _ = begin(encoder, folder, "", "plain")
    plain.run()
    ours, theirs = weights(whole.assembly), weights(plain.assembly)
    assert any(not torch.equal(value, theirs[name]) for name, value in ours.items())
