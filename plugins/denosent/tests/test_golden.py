"""The authors' code gave these numbers in fp64, without dropout and noise; ours are the same."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_denosent.loss import Denoise
from cse_denosent.options import DenoiseOptions
from cse_testkit import make_batch, make_context, make_part, make_setup
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM

from cse_core.types import TokenBatch, TokenStates
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.masked_lm import Head
from tests.fixtures.token_rows import packed
from tests.shared import fill, tensor

BOUND = 1e-9
CASE = json.loads((Path(__file__).parent / "golden.json").read_text())
MASK = 4


def rows(name: str) -> TokenBatch:
    return packed(CASE[name], [[int(i != 0) for i in row] for row in CASE[name]])


def test_both_objectives() -> None:
    whole = BertForMaskedLM(BertConfig(**CASE["sizes"])).double().eval()
    fill(whole.named_parameters(), 1)
    words = whole.get_input_embeddings().weight
    projector = nn.Linear(8, 8).double()
    fill(projector.named_parameters(), 100)
    encoder = PackedEncoder(whole.bert)
    setup: Any = make_setup(
        encoder=encoder, hidden_size=8, dimension=8,
        load_masked_lm=lambda: (encoder, Head(whole, True), None),
    )  # fmt: skip
    part = Denoise(DenoiseOptions(layers=2, heads=2, wide=12), setup).double().eval()
    fill(part.decoder.named_parameters(), 200)

    def read(tokens: TokenBatch) -> TokenStates:
        table = encoder.word_embeddings(tokens.ids)
        states = encoder(table, tokens.positions, tokens.offsets).last
        return TokenStates(
            tokens=tokens, states=states, vectors=projector(states[tokens.ids == MASK]),
            place=torch.arange(tokens.rows), labelled=torch.zeros(0, dtype=torch.long),
        )  # fmt: skip

    views = {"anchor": read(rows("ids")), "positive": read(rows("positive_ids"))}
    found = part.sums(views, make_context())
    generative = found.total / found.count
    assert float(generative.detach()) == pytest.approx(CASE["generative"], rel=0, abs=BOUND)
    contrastive = infonce(*(view.vectors for view in views.values()))
    assert float(contrastive.detach()) == pytest.approx(CASE["contrastive"], rel=0, abs=BOUND)
    (5 * contrastive + 7 * generative).backward()
    first: Any = part.decoder.layers[0]
    for name, weight in (
        ("word_embeddings", words),
        ("projector", projector.weight),
        ("decoder", first.multihead_attn.out_proj.weight),
    ):
        wanted = tensor(CASE[f"grad_{name}"])
        assert torch.allclose(weight.grad, wanted, rtol=0, atol=BOUND), name


def infonce(anchors: Tensor, positives: Tensor) -> Tensor:
    batch = make_batch({"anchor": anchors, "positive": positives})
    part, ctx = make_part("loss", "infonce"), make_context(batch)
    negatives = ctx.negatives(batch, part.options)
    value: Tensor = part(batch, batch.targets["positive"], negatives, ctx).value
    return value
