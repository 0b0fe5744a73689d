"""Texts longer than a model takes: encoded slice by slice, and the slices' vectors averaged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cse import Model, TextEncoder
from cse_core.suites import Progress
from cse_evaluation.labelled import LongTexts

CUT_AT = 512
"""Tokens that texts which are cut may have, where the encoder takes so many and none is named."""
BLOCK = 256
"""Texts between two looks at the clock."""


class LabelledTexts:
    """How a model reads the texts of tasks.

    Texts that are cut are cut where the encoder ends, whatever length it was trained with, so that
    models are compared on the same texts.

    Args:
        model: The model.
        long_texts: Whether a long text is cut, or sliced and the slices averaged.
        batch_tokens: Tokens that the encoder is given at once; by default what the device likes.
        max_length: Longest text in tokens that the user named, with which the model was loaded.
        progress: Hears how far it is.

    Attributes:
        treatment: What becomes of long texts, in words.
    """

    def __init__(
        self,
        model: Model,
        long_texts: LongTexts,
        batch_tokens: int | None,
        max_length: int | None,
        progress: Progress,
    ) -> None:
        longest = None
        if long_texts == "cut" and max_length is None:
            # A model that slices takes texts of any length.
            longest = min(CUT_AT, model.max_positions or CUT_AT)
        self._encode = TextEncoder(
            model.loaded, batch_tokens, max_length=longest, long_texts=long_texts
        )
        self._name, self._progress = model.name, progress
        self.treatment = f"cut at {self._encode.max_length} tokens"
        if long_texts == "slice":
            length = self._encode.max_length
            self.treatment = f"mean over slices of {length} tokens, weighted by their length"

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors ``[N, D]`` of texts."""
        blocks: list[NDArray[np.float32]] = []
        done = 0
        for held, vectors in self._encode.blocks(texts, BLOCK):
            blocks.append(vectors)
            done += len(held)
            self._progress(done, len(texts), f"texts of {self._name}")
        return np.concatenate(blocks)
