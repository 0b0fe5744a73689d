"""Who gives the vectors that a round is clustered by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from cse_core.builtins.poolers import Cls, Mean
from cse_core.errors import CseError
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.options import PoolerOptions
from cse_core.parts import Setup

Encode = Callable[[Sequence[str]], Tensor]
SELF = "self"


def named_annotator(name: str, pool: str, setup: Setup) -> Encode:
    """Return ``texts -> [N, D]`` of another model, in evaluation mode, without heads.

    Args:
        name: A run, a folder, an installed encoder or a hub name.
        pool: Row pooler, ``mean`` or ``cls``.
        setup: Of the part that asks.

    Raises:
        CseError: If the model is missing.
    """
    try:
        encoder, tokenizer = setup.load_encoder(name)
    except CseError as error:
        where = f"positives.{setup.name}.annotator"
        raise CseError(error.what, where=where, value=name, hint=error.hint) from error
    kind = Mean if pool == "mean" else Cls
    pooler = kind(PoolerOptions(), replace(setup, dimension=encoder.hidden_size))
    sentence_encoder = SentenceEncoder(encoder, tokenizer, pooler, {}, encoder.max_positions)
    return lambda texts: sentence_encoder.encode(texts, setup.device, share="all")


def checked(vectors: Tensor, where: str) -> Tensor:
    """Return the vectors.

    Raises:
        CseError: If one is not finite: no sentence has a nearest one then.
    """
    if not bool(torch.isfinite(vectors).all()):
        raise CseError(
            "the encoder returns vectors that are not finite",
            where=where,
            hint="train with a lower train.lr, or in fp32",
        )
    return vectors
