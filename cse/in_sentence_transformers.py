"""A model that sentence-transformers has no modules for, as one module of it.

A saved model with a pooler, a prompt or a head that sentence-transformers lacks names this class in
``modules.json``: without it, its loader would pool by the mean and give other vectors in silence.
``SentenceTransformer(folder, trust_remote_code=True)`` loads it where cse is installed; elsewhere,
and without the flag, it is refused.
"""

from __future__ import annotations

import shutil
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

    def preprocess(self, inputs: list[str], prompt: str | None = None, **_: Any) -> dict[str, Any]:
        """Put a prompt before the texts; they stay texts."""
        return {"texts": [f"{prompt or ''}{text}" for text in inputs]}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Encode texts as ``sentence_embedding`` ``[N, D]``."""
        features["sentence_embedding"] = torch.from_numpy(self.model.encode(features["texts"]))
        return features

    def get_embedding_dimension(self) -> int:
        """Return D."""
        return len(self.model.encode("a"))

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Copy the model's files."""
        ignored = shutil.ignore_patterns("modules.json", "README.md", SUMS)
        shutil.copytree(self.folder, output_path, dirs_exist_ok=True, ignore=ignored)

    @classmethod
    def load(cls, model_name_or_path: str, **given: Any) -> Whole:
        """Load a model's folder, or one of the hub."""
        names = ("token", "cache_folder", "revision", "local_files_only")
        return cls(cls.load_dir_path(model_name_or_path, **{n: given.get(n) for n in names}))
