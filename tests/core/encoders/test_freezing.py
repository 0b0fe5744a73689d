"""What ``model.freeze_embeddings`` keeps as it is."""

from __future__ import annotations

import pytest
import torch
from cse_testkit import Rig, compose, shared_encoder, tiny_corpus

from cse_core.encoders.architecture import embedding_layer, word_table
from cse_core.encoders.encoder import PackedEncoder


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "distilbert", "mpnet"])
def test_the_embedding_layer_is_found(family: str) -> None:
    """The table's own module: words, positions, types and norm, and no transformer layer."""
    model = PackedEncoder.load(shared_encoder(family=family), seed=0).model  # type: ignore[arg-type]
    layer = embedding_layer(model)
    names = {name.partition(".")[0] for name, _ in layer.named_parameters()}
    assert word_table(model) in layer.children()
    assert {"word_embeddings", "position_embeddings", "LayerNorm"} <= names
    assert {parameter for parameter in layer.parameters()} < set(model.parameters())


@pytest.mark.parametrize("frozen", [True, False])
def test_a_frozen_embedding_layer_keeps_its_values(frozen: bool) -> None:
    corpus = tiny_corpus()
    sets = [f"model.freeze_embeddings={str(frozen).lower()}"]
    rig = Rig(compose(sets=sets, corpus=corpus))
    before = rig.weights()
    rig.step(2)
    moved = {name for name, value in rig.weights().items() if not torch.equal(before[name], value)}
    embeddings = {name for name in moved if ".embeddings." in name}
    assert moved - embeddings
    assert bool(embeddings) != frozen
