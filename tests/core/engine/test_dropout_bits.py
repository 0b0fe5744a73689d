"""Masks of 8 bits on request are recorded, and drop another share than those of 16."""

from __future__ import annotations

import tomllib
from pathlib import Path

from cse_core.data import Corpus
from cse_core.encoders.dropout import Dropout
from cse_core.runtime.reporter import Reporter
from cse_core.training.run import Prepared
from tests.fixtures.tiny import composed, registry, sentences


def test_they_are_recorded_and_drop_26_of_256(encoder: str, folder: Path) -> None:
    composition = composed(
        encoder, "", "train.dropout_bits=8", "model.dropout=0.1", folder=folder, rows=24
    )
    corpus = Corpus.from_columns({"text": sentences(24)})
    prepared = Prepared(composition, registry(), Reporter(), corpus)
    assert tomllib.loads(prepared.record(composition))["train"]["dropout_bits"] == 8
    layers = [m for m in prepared.assembly.online.encoder.modules() if isinstance(m, Dropout)]
    assert {layer.source.effective_p(layer.p) for layer in layers} == {26 / 256}
    assert prepared.assembly.dropout.bits == 8
