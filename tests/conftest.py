"""What tests of the engine and of the default plugins share."""

from functools import partial
from pathlib import Path

import pytest
import torch

from cse_defaults.transformers.tokenizer import TextTokenizer
from tests.fixtures.tiny import Bench, Build, make_encoder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    torch.set_num_threads(1)
    return make_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def other_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_encoder(tmp_path_factory.mktemp("other"), hidden=16, seed=2, words=40)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def build(encoder: str, tmp_path: Path) -> Build:
    """Return what makes a bench of the tiny encoder."""
    return partial(Bench, encoder, tmp_path)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    calls: list[list[str]] = []
    plain = TextTokenizer._encodings

    def encodings(self: TextTokenizer, texts: list[str], longest: int | None) -> object:
        calls.append(list(texts))
        return plain(self, texts, longest)

    monkeypatch.setattr(TextTokenizer, "_encodings", encodings)
    return calls
