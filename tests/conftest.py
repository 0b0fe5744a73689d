"""What tests of the engine and of the default plugins share."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

# What imports torch is imported inside: who only hands tests out does without.


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    import torch

    from tests.fixtures.tiny import make_encoder

    torch.set_num_threads(1)
    return make_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def other_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tests.fixtures.tiny import make_encoder

    return make_encoder(tmp_path_factory.mktemp("other"), hidden=16, seed=2, words=40)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def build(encoder: str, tmp_path: Path) -> Any:
    """Return what makes a bench of the tiny encoder."""
    from tests.fixtures.tiny import Bench

    return partial(Bench, encoder, tmp_path)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    from cse_defaults.transformers.tokenizer import TextTokenizer

    calls: list[list[str]] = []
    plain = TextTokenizer._encodings

    def encodings(self: Any, texts: list[str], longest: int | None) -> object:
        calls.append(list(texts))
        return plain(self, texts, longest)

    monkeypatch.setattr(TextTokenizer, "_encodings", encodings)
    return calls
