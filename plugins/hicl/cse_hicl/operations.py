"""What a long text costs as segments and as a whole: study ``hicl/section-3.3``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedModel


def operations(point: Mapping[str, Any]) -> dict[str, float]:
    """Return operations and seconds of an encoder on a text and on its segments.

    The text is drawn from the vocabulary; special tokens are left out on both sides, so that only
    the cut differs. Attention computes every pair of tokens of a row.

    Args:
        point: ``model``, an encoder by name or folder; ``tokens`` of the text; ``length``, tokens
            of a segment, of which the last has those that are left; ``repeats``, timed passes of
            which the median counts.

    Returns:
        ``operations`` and ``seconds``: of the whole text as multiples of those of its segments,
        and those that they are made of; ``l - 1``, the paper's bound, with l segments.

    Raises:
        CseError: If no such encoder is there.
        ValueError: If the encoder does not take so long a text.
    """
    from cse import load

    model, tokens, repeats = point["model"], point["tokens"], point.get("repeats", 5)
    encoder = load(model).loaded.sentence_encoder.encoder.model
    encoder.set_attn_implementation("eager")  # its products are those that the counter knows
    most = getattr(encoder.config, "max_position_embeddings", tokens)
    if tokens > most:
        raise ValueError(f"{model} takes {most} tokens, not {tokens}")
    draws = torch.Generator().manual_seed(tokens)
    text = torch.randint(encoder.config.vocab_size, (1, tokens), generator=draws)
    text = text.to(next(encoder.parameters()).device)
    segments = text.split(point["length"], dim=1)
    numbers = {"l - 1": float(len(segments) - 1)}
    for name, rows in (("whole", _rows((text,))), ("segments", _rows(segments))):
        numbers[f"{name}: operations"] = float(_counted(encoder, rows))
        _timed(encoder, rows)  # the first pass of a shape allocates
        numbers[f"{name}: seconds"] = median(_timed(encoder, rows) for _ in range(repeats))
    for what in ("operations", "seconds"):
        numbers[what] = numbers[f"whole: {what}"] / numbers[f"segments: {what}"]
    return numbers


def _rows(segments: tuple[Tensor, ...]) -> list[Tensor]:
    """Return the full segments as one batch, and a shorter last one as another."""
    full = [part for part in segments if part.shape == segments[0].shape]
    rest = [part for part in segments if part.shape != segments[0].shape]
    return [torch.cat(full), *rest]


@torch.inference_mode()
def _counted(encoder: PreTrainedModel, rows: list[Tensor]) -> int:
    with FlopCounterMode(display=False) as counter:
        for batch in rows:
            encoder(input_ids=batch)
    return int(counter.get_total_flops())


@torch.inference_mode()
def _timed(encoder: Callable[..., object], rows: list[Tensor]) -> float:
    start = perf_counter()
    for batch in rows:
        encoder(input_ids=batch)
    if rows[0].is_cuda:
        torch.cuda.synchronize()
    return perf_counter() - start
