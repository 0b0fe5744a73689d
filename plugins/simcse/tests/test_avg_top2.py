"""The mean of the last two layers, against transformers' own states."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cse_testkit import installed_registry, shared_encoder, tiny_encoder
from transformers import AutoModel, AutoTokenizer

from cse_cli.models.saved_model import load

TEXTS = ["Anna paints the boat.", "boat", "clara finds the old clock and not the attic " * 3]


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_it_is_the_mean_of_the_last_two_hidden_states(layers: int, tmp_path: Path) -> None:
    folder = shared_encoder() if layers == 2 else tiny_encoder(tmp_path / "bert", layers=layers)
    model, tokenizer = (kind.from_pretrained(folder) for kind in (AutoModel, AutoTokenizer))
    found = load(str(folder), installed_registry(), pooling="avg-top2").encode(TEXTS)
    for text, vector in zip(TEXTS, found, strict=True):
        with torch.no_grad():
            states = model.eval()(
                **tokenizer(text, return_tensors="pt"), output_hidden_states=True
            ).hidden_states
        wanted = (states[-1] + states[-2])[0].mean(dim=0) / 2
        assert torch.allclose(torch.from_numpy(vector), wanted, atol=1e-5)
