from __future__ import annotations

import pytest
import torch
from torch import Tensor

from cse_cli.models.encoding import TextEncoder, slice_length
from cse_cli.models.saved_model import SentenceModel, load
from cse_cli.plugins.installed import Installed

LONG = "a long text about boats and dogs . " * 6


@pytest.fixture(scope="module")
def model() -> SentenceModel:
    return load("starter", Installed().registry, device="cpu", max_length=16)


def encode_sliced(model: SentenceModel, texts: list[str], tokens: int | None = None) -> Tensor:
    return torch.from_numpy(TextEncoder(model, tokens, long_texts="slice")(texts))


def encoded(model: SentenceModel, texts: list[str]) -> Tensor:
    return model.sentence_encoder.encode(texts, model.device)


def test_a_text_that_fits_is_encoded_as_ever(model: SentenceModel) -> None:
    texts = ["short one", "", "word " * slice_length(model.sentence_encoder)]
    sliced = encode_sliced(model, texts)
    torch.testing.assert_close(sliced, encoded(model, texts), atol=1e-5, rtol=1e-5)


def test_a_long_text_is_the_weighted_mean_of_its_slices(model: SentenceModel) -> None:
    sentence_encoder = model.sentence_encoder
    longest = slice_length(sentence_encoder)
    assert longest == 14  # [CLS] and [SEP] take two of 16
    ids = sentence_encoder.tokenizer.content([LONG]).ids
    pieces = ids.split(longest)
    assert 0 < len(pieces[-1]) < longest
    texts = [sentence_encoder.tokenizer.hf.decode(piece) for piece in pieces]
    assert sentence_encoder.tokenizer.content(texts).lengths.tolist() == [
        len(piece) for piece in pieces
    ]
    weights = torch.tensor([float(len(piece)) for piece in pieces]).unsqueeze(1)
    expected = (encoded(model, texts) * weights).sum(0) / weights.sum()
    both = encode_sliced(model, ["another", LONG], 20)
    torch.testing.assert_close(both[1], expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(both[:1], encoded(model, ["another"]), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(both[1], encoded(model, [LONG])[0], atol=1e-2)


def test_no_text(model: SentenceModel) -> None:
    assert len(encode_sliced(model, [])) == 0
