"""The vectors of a few tokens, read from the table's file without torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from cse_core.backend import TokenStates
from cse_static.folders import WEIGHTS, Folder


@dataclass(frozen=True)
class FewTexts:
    """Token vectors of a few texts; :meth:`open` makes it.

    Attributes:
        tokenizer: Of the library tokenizers.
        unknown: Id of a token that is left out.
        tensors: The open file of the table.
        names: What is in it.
    """

    max_positions = sys.maxsize

    tokenizer: Any
    unknown: int | None
    tensors: Any
    names: frozenset[str]

    @staticmethod
    def open(source: Folder, tokenizer: Any, unknown: int | None) -> FewTexts | None:
        """Open the table of a folder; None where it cannot be read so."""
        try:
            tensors = safe_open(source.path / WEIGHTS, "numpy")
        except (OSError, SafetensorError):
            return None
        return FewTexts(tokenizer, unknown, tensors, frozenset(tensors.keys()))  # type: ignore[no-untyped-call]

    def __call__(self, texts: Sequence[str], longest: int, prompt: str) -> TokenStates | None:
        """Return ``[T, D]`` vectors of each text's tokens; a text without any has a zero."""
        self.tokenizer.enable_truncation(longest)
        given = [prompt + text for text in texts]
        rows = self.tokenizer.encode_batch(given, add_special_tokens=False)
        try:
            states = [self._vectors([i for i in row.ids if i != self.unknown]) for row in rows]
        except (SafetensorError, TypeError, ValueError):
            return None
        named = getattr(self.tokenizer.model, "unk_token", None)
        lacks = self.tokenizer.token_to_id(named) if named and self.unknown is None else None
        return TokenStates(
            states,
            cut=sum(bool(row.overflowing) for row in rows),
            tokens=sum(len(row.ids) for row in rows),
            unknown=sum(row.ids.count(lacks) for row in rows),
        )

    def _vectors(self, ids: list[int]) -> NDArray[np.float32]:
        """Read the vectors of ids as :meth:`~cse_static.folders.Folder.table` makes them."""
        name = "embedding.weight" if "embedding.weight" in self.names else "embeddings"
        table = self.tensors.get_slice(name)
        if not ids:
            return np.zeros((1, table.get_shape()[1]), np.float32)
        places = self.tensors.get_tensor("mapping")[ids] if "mapping" in self.names else ids
        rows = [table[int(place) : int(place) + 1] for place in places]
        taken = np.asarray(np.concatenate(rows), np.float32)
        if "weights" not in self.names:
            return taken
        return taken * np.asarray(self.tensors.get_tensor("weights")[ids, None], np.float32)
