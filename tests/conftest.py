"""What tests of the engine and of the default plugins share."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.encoders import encoder, other_encoder

__all__ = ["encoder", "other_encoder"]

# What imports torch is imported inside: who only hands tests out does without.


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
