"""Attention over rows lying end to end, registered with transformers under one name.

A model whose attention goes through transformers' ``AttentionInterface`` is given all rows of a
batch as one sequence ``[1, T]``. Here, and nowhere else, the rows are kept apart: on a CPU they are
padded inside attention, in a few classes of similar length; on a GPU torch's kernels for rows of
any length take them as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface

from cse_core.encoders.dropout import DropoutSource
from cse_core.encoders.dropout import dropout as drop
from cse_core.encoders.row_layout import RowLayout

PACKED = "cse_packed"
"""The name under which :func:`packed_attention` is registered."""


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    row_layout: RowLayout,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """Attend inside each row; the signature is that of transformers' attention functions.

    Args:
        module: The attention layer that calls.
        query: ``[1, heads, T, d]``, or ``[1, heads, R, d]``, one token a row, in a layer whose
            keys and values the layout holds.
        key: ``[1, key heads, T, d]``; fewer heads than the query's are shared among them.
        value: ``[1, key heads, T, d]``.
        attention_mask: None, as the mask function registered with this one returns.
        row_layout: Where the rows are.
        scaling: Factor of the scores; None means ``d ** -0.5``.
        dropout: Probability of dropping an attention weight; the caller gives 0 outside training.
        sliding_window: Tokens see others at a distance below this one.

    Returns:
        ``[1, T or R, heads, d]``, and None for the attention weights.
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    heads, size = query.shape[1], query.shape[3]
    if alone := row_layout.memory is not None:
        key, value = (
            x.view(1, row_layout.tokens, -1, size).transpose(1, 2) for x in row_layout.memory
        )
    if torch.is_autocast_enabled(query.device.type):
        # Rotary embeddings leave queries and keys in fp32 beside values in bf16.
        dtype = torch.get_autocast_dtype(query.device.type)
        query, key, value = (x.to(dtype) for x in (query, key, value))
    shared = heads // key.shape[1]
    if shared > 1:
        key, value = (x.repeat_interleave(shared, dim=1) for x in (key, value))
    rows = [x.transpose(1, 2).reshape(-1, heads, size) for x in (query, key, value)]
    kernel = _varlen_kernel(query, dropout, sliding_window)
    if kernel is not None:
        around = -1 if sliding_window is None else sliding_window - 1
        attended = kernel(
            *rows, *_spans(row_layout), scale=scale, p=dropout, window=(around, around)
        )
        return attended.unsqueeze(0), None
    queries = row_layout.split(rows[0]) if alone else row_layout.pad(rows[0])
    keys, values = map(row_layout.pad, rows[1:])
    parts = []
    with torch.autocast(query.device.type, enabled=False):
        for group, q, k, v in zip(row_layout.classes, queries, keys, values, strict=True):
            shape = (len(group.rows), heads, -1, size)
            q, k, v = q.view(shape), k.view(shape), v.view(shape)
            bias = group.bias(q.dtype, None if alone else sliding_window, q.device)
            parts.append(_attend(q, k, v, bias, scale, dropout, row_layout.source))
    join = row_layout.merge if alone else row_layout.unpad
    return join(parts, heads).unsqueeze(0), None


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    scale: float,
    p: float,
    source: DropoutSource | None,
) -> Tensor:
    """Return attention over padded rows, of the shape of ``q``.

    ``q`` is ``[r, heads, l or 1, d]``, ``k`` and ``v`` are ``[r, heads, l, d]``, ``bias`` is
    ``[r or 1, 1, 1 or l, l]``.
    """
    if p == 0.0 or q.device.type != "cpu":
        return functional.scaled_dot_product_attention(
            q, k, v, attn_mask=bias, dropout_p=p, scale=scale
        )
    # torch's CPU kernel has no dropout; written out, attention can use our cheap masks.
    shape = q.shape
    added = q.new_zeros(1) if bias is None else bias.expand(*shape[:2], -1, -1).flatten(0, 1)
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    scores = torch.baddbmm(added, q, k.mT, alpha=scale)
    return torch.bmm(drop(scores.softmax(-1), p, source), v).view(shape)


def _varlen_kernel(query: Tensor, p: float, window: int | None) -> Callable[..., Tensor] | None:
    """Return a kernel of torch for rows of any length, or None where there is none.

    It is called with queries, keys and values ``[T, heads, d]``, what :func:`_spans` returns, and
    ``scale``, ``p`` and ``window``.
    """
    size, half = query.shape[-1], query.dtype in (torch.float16, torch.bfloat16)
    if query.device.type != "cuda" or torch.version.hip or size > 256 or size % 8:
        return None
    if half and torch.cuda.get_device_capability(query.device) >= (8, 0):
        return _flash
    # With dropout and rows of any length the other kernel drops the same weights in every row and
    # head, and others in its backward pass: forward it counts its draws as if there were no keys.
    plain = p == 0.0 and window is None
    return _efficient if plain and (half or query.dtype == torch.float32) else None


def _spans(rows: RowLayout) -> tuple[Tensor, Tensor, int, int]:
    """Return where the rows of queries and of keys begin, and their longest rows."""
    if rows.memory is None:
        return rows.offsets, rows.offsets, rows.longest, rows.longest
    one_each = torch.arange(len(rows.offsets), dtype=torch.int32, device=rows.device)
    return one_each, rows.offsets, 1, rows.longest


def _flash(*spans: Any, scale: float, p: float, window: tuple[int, int]) -> Tensor:
    left, right = window
    attended: Tensor = torch.ops.aten._flash_attention_forward(
        *spans, p, False, False, scale=scale, window_size_left=left, window_size_right=right
    )[0]
    return attended


def _efficient(*spans: Any, scale: float, p: float, window: tuple[int, int]) -> Tensor:
    rows, where = [x.unsqueeze(0) for x in spans[:3]], spans[3:]
    attended: Tensor = torch.ops.aten._efficient_attention_forward(
        *rows, None, *where, p, 0, torch.is_grad_enabled(), scale=scale
    )[0]
    return attended.squeeze(0)


def _no_mask(*_: object, **__: object) -> None:
    """Return no mask: :func:`packed_attention` knows the rows."""


def register_packed_attention() -> None:
    """Make transformers know :data:`PACKED`; doing so again changes nothing."""
    AttentionInterface.register(PACKED, packed_attention)
    AttentionMaskInterface.register(PACKED, _no_mask)
