"""Texts longer than a model takes: encoded slice by slice, and the slices' vectors averaged."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cse_cli.models.saved_model import SentenceModel
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.runtime.sharing import Share
from cse_core.tokenization.tokenizer import TokenTable
from cse_core.types import offsets_of, positions_of


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
