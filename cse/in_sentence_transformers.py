"""A model that sentence-transformers has no modules for, as one module of it.

A saved model with a pooler, a prompt or a head that sentence-transformers lacks names this class in
``modules.json``: without it, its loader would pool by the mean and give other vectors in silence.
``SentenceTransformer(folder, trust_remote_code=True)`` loads it where cse is installed; elsewhere,
and without the flag, it is refused.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.models import Module

import cse
from cse_core.files import SUMS


class Whole(Module):  # type: ignore[misc]  # it is skipped by the type checker
    """Text to vector as ``cse.load`` encodes it, from prompt to truncation.

    Args:
        folder: The model's folder.
    """

    save_in_root = True

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder, self.model = folder, cse.load(folder)
        self.dimension = int(self.model.encode("a").shape[0])

    def preprocess(
        self, inputs: list[str], prompt: str | None = None, **_: Any
    ) -> dict[str, list[str]]:
        """Put a prompt before the texts; they stay texts."""
        return {"texts": [f"{prompt or ''}{text}" for text in inputs]}

    tokenize = preprocess

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Encode texts as ``sentence_embedding`` ``[N, D]``."""
        features["sentence_embedding"] = torch.from_numpy(self.model.encode(features["texts"]))
        return features

    def get_embedding_dimension(self) -> int:
        """Return D."""
        return self.dimension

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Copy the model's files."""
        shutil.copytree(
            self.folder, output_path, dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("modules.json", "README.md", SUMS),
        )  # fmt: skip

    @classmethod
    def load(cls, model_name_or_path: str, **_: Any) -> Whole:
        """Load a model's folder, or the run around it."""
        return cls(str(Path(model_name_or_path)))
