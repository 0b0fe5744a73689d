"""Texts longer than a model takes: encoded slice by slice, and the slices' vectors averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cse_cli.models.loading import TextEncoder
from cse_cli.models.processes import by_all, helpers
from cse_cli.models.saved_model import SentenceModel
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.runtime.sharing import Share
from cse_core.suites import Progress
from cse_core.tokenization.tokenizer import TokenTable
from cse_core.types import offsets_of, positions_of
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
        model: SentenceModel,
        long_texts: LongTexts,
        batch_tokens: int | None,
        max_length: int | None,
        progress: Progress,
    ) -> None:
        encoder = model.sentence_encoder
        if long_texts == "cut" and max_length is None:
            # A model that slices takes texts of any length.
            ends = CUT_AT if encoder.slicer is not None else encoder.encoder.max_positions
            encoder = replace(encoder, max_length=min(CUT_AT, ends))
            model = replace(model, sentence_encoder=encoder)
        self._model, self._long_texts, self._progress = model, long_texts, progress
        self._batch_tokens = batch_tokens
        self.treatment = f"cut at {encoder.max_length} tokens"
        if long_texts == "slice":
            length = encoder.max_length
            self.treatment = f"mean over slices of {length} tokens, weighted by their length"

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors ``[N, D]`` of texts."""
        cut = TextEncoder(self._model, self._batch_tokens)
        what, count = f"texts of {self._model.name}", BLOCK * (1 + helpers())
        blocks = []
        for start in range(0, len(texts), count):
            own = list(texts[start : start + count])
            if self._long_texts == "cut":
                blocks.append(cut(own, BLOCK))
            else:
                vectors = by_all(self._model, sliced, own, self._batch_tokens, BLOCK)
                blocks.append(vectors.numpy())
            self._progress(min(start + count, len(texts)), len(texts), what)
        return np.concatenate(blocks)

    def measure(self, texts: Sequence[str]) -> dict[str, float]:
        """Return how long texts are for the model.

        ``mean``: tokens of a text, special tokens counted; ``longer``: share x100 of the texts
        that are longer than the model takes.
        """
        encoder = self._model.sentence_encoder
        content = encoder.tokenizer.table(texts).offsets.diff()
        longest = slice_length(encoder)
        slicer = encoder.slicer
        if self._long_texts == "cut" and slicer is not None and not slicer.slices_wrapped:
            longest = encoder.max_length  # content is cut there, before anything wraps it
        mean = float(content.double().mean()) + encoder.tokenizer.special_count
        longer = 100 * float((content > longest).double().mean())
        return {"mean": round(mean, 4), "longer": round(longer, 4)}


def encode_sliced(
    sentence_encoder: SentenceEncoder,
    texts: Sequence[str],
    device: torch.device,
    batch_tokens: int | None = None,
    *,
    block: int | None = None,
    share: Share = "alone",
) -> Tensor:
    """Return ``[N, D]`` float32 vectors of texts of any length on the CPU.

    A text is cut into consecutive slices of as many content tokens as a row of ``max_length``
    takes; its vector is the mean of theirs, weighted by their content tokens. A text that fits
    is encoded as :meth:`SentenceEncoder.encode` does.

    Args:
        sentence_encoder: From texts to vectors.
        texts: The texts.
        device: Where to compute.
        batch_tokens: Tokens of one encoder call, about; by default as ``encode``.
        block: Texts whose slices are put in order of length at a time; by default all.
        share: How processes share the texts, as ``encode``.
    """
    whole = sentence_encoder.table(texts, None, share)
    total = whole.offsets.diff()
    longest = slice_length(sentence_encoder)
    counts = (total + longest - 1).div(longest, rounding_mode="floor").clamp_min(1)
    text = torch.repeat_interleave(torch.arange(len(texts)), counts)
    begin = positions_of(offsets_of(counts)) * longest
    lengths = (total[text] - begin).clamp_max(longest)
    slices = TokenTable(whole.ids, whole.word, offsets_of(lengths))
    blocks = None if block is None else [int(own.sum()) for own in torch.split(counts, block)]
    vectors = sentence_encoder.encode_table(slices, device, batch_tokens, block=blocks, share=share)
    if len(vectors) < len(lengths):
        return vectors  # the first process has them
    # A text without tokens is one empty slice, which counts as one token.
    weights = lengths.clamp_min(1).to(vectors.dtype).unsqueeze(1)
    sums = vectors.new_zeros(len(texts), vectors.shape[1]).index_add_(0, text, vectors * weights)
    return sums / sums.new_zeros(len(texts), 1).index_add_(0, text, weights)


def sliced(
    model: SentenceModel,
    share: Share,
    texts: list[str],
    batch_tokens: int | None,
    block: int | None,
) -> Tensor:
    """Return what :func:`encode_sliced` does with a loaded model, in its number format."""
    with model.precision.autocast():
        return encode_sliced(
            model.sentence_encoder, texts, model.device, batch_tokens, block=block, share=share
        )


def slice_length(sentence_encoder: SentenceEncoder) -> int:
    """Return how many content tokens a row of ``max_length`` takes beside what wraps them.

    Raises:
        CseError: If special tokens and prompt leave no place.
    """
    longest = sentence_encoder.max_length
    if sentence_encoder.slicer is None:
        longest = min(longest, sentence_encoder.encoder.max_positions)
    empty = sentence_encoder.tokenizer.content([""])
    wrapped = sentence_encoder.tokenizer.wrap(empty, sentence_encoder.prompt("anchor"), longest)
    return longest - len(wrapped.ids)
