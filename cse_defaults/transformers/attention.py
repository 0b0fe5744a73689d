"""Attention over rows lying end to end, registered with transformers under one name.

A model whose attention goes through transformers' ``AttentionInterface`` is given all rows of a
batch as one sequence ``[1, T]``. Here, and nowhere else, the rows are kept apart: on a CPU they are
padded inside attention, in a few classes of similar length; on a GPU torch's kernels for rows of
any length take them as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface

from cse_core.protocols import DropoutSource

PACKED = "cse_packed"
"""The name under which :func:`packed_attention` is registered."""


@dataclass
class LengthClass:
    """Rows of similar length that attend together, padded to the longest of them.

    Attributes:
        rows: ``[r]`` which rows, on the CPU.
        longest: Tokens of the longest row, ``l``.
        real: ``[r, l]`` bool, False on padding; None where all rows are equally long.
        causal: Whether a token sees itself and those before it alone.
    """

    rows: Tensor
    longest: int
    real: Tensor | None
    causal: bool = False
    _bias: dict[tuple[torch.dtype, int | None], Tensor | None] = field(default_factory=dict)

    def bias(self, dtype: torch.dtype, window: int | None, device: torch.device) -> Tensor | None:
        """Return the bias of the scores, ``[r or 1, 1, 1 or l, l]``: 0, or minus infinity.

        Tokens see others at a distance below ``window``; without one they see the whole row, or all
        of it before them.
        """
        if window is not None and window >= self.longest:
            window = None
        key = (dtype, window)
        if key not in self._bias:
            seen = None if self.real is None else self.real[:, None, None, :]
            place = torch.arange(self.longest, device=device)
            back = place[:, None] - place[None, :]
            if self.causal:  # padding lies behind every token that is read
                seen = (back >= 0)[None, None]
                seen = seen if window is None else seen & (back < window)
            elif window is not None:
                near = back.abs() < window
                # A padded query may see nothing at all near it; its own place keeps it finite.
                itself = torch.eye(self.longest, dtype=torch.bool, device=device)
                seen = near[None, None] if seen is None else (near & seen) | itself
            self._bias[key] = None
            if seen is not None:
                bias = torch.zeros(seen.shape, dtype=dtype, device=device)
                self._bias[key] = bias.masked_fill_(~seen, float("-inf"))
        return self._bias[key]


@dataclass
class _HeadIndex:
    """Where the vector of a token and a head lies in padded order, and back."""

    index: Tensor  # [slots * heads] into [T * heads]
    inverse: Tensor  # [T * heads] into [slots * heads]
    padding: Tensor  # [slots * heads] bool

    @cached_property
    def padded(self) -> Tensor:
        """Slots of padding, into ``[slots * heads]``; how many there are, a GPU must be asked."""
        return self.padding.nonzero().squeeze(1)

    def clear(self, slots: Tensor) -> Tensor:
        """Put zeros on the padding of ``[slots * heads, d]``, in place."""
        if slots.device.type == "cpu":
            return slots.index_fill_(0, self.padded, 0.0)
        return slots.masked_fill_(self.padding[:, None], 0.0)


class RowLayout:
    """Where rows begin and end in a sequence of ``T`` tokens, and how attention pads them.

    Built once for a forward pass and handed through the model to every attention layer.

    Attributes:
        memory: Keys and values ``[1, T, key heads * d]`` of all tokens, in a layer whose queries
            are of one token a row; None in every other.

    Args:
        offsets: ``[R+1]`` int64 on the CPU; row ``r`` is ``offsets[r]:offsets[r+1]``.
        device: Where the tokens are.
        source: Where attention dropout draws from; None draws from torch's own generator.
        causal: Whether a token sees itself and those before it alone.
    """

    def __init__(
        self,
        offsets: Tensor,
        device: torch.device,
        source: DropoutSource | None = None,
        causal: bool = False,
    ) -> None:
        self.source, self.causal = source, causal
        self.device = device
        self.tokens = int(offsets[-1])
        self._starts = offsets[:-1]
        self._lengths = offsets.diff()
        self.longest = int(self._lengths.max())
        self.offsets = self._there(offsets.to(torch.int32))
        self._indices: dict[int, _HeadIndex] = {}
        self.memory: tuple[Tensor, Tensor] | None = None

    @cached_property
    def classes(self) -> list[LengthClass]:
        """Classes of rows that attend together; a kernel for rows of any length asks for none.

        On a CPU a class holds lengths from over half its longest up, else there is one class.
        """
        lengths, rows = self._lengths.sort(descending=True, stable=True)
        rows, lengths = rows[lengths > 0], lengths[lengths > 0]
        classes = []
        while len(rows):
            longest, count = int(lengths[0]), len(rows)
            if self.device.type == "cpu":
                count = int((lengths * 2 > longest).sum())
            real = None
            if int(lengths[count - 1]) < longest:
                place = torch.arange(longest, device=self.device)
                real = place < self._there(lengths[:count])[:, None]
            classes.append(LengthClass(rows[:count], longest, real, self.causal))
            rows, lengths = rows[count:], lengths[count:]
        return classes

    def _there(self, values: Tensor) -> Tensor:
        return values.to(self.device, non_blocking=True)

    def split(self, rows: Tensor) -> list[Tensor]:
        """Return ``[R, heads, d]``, one vector a row, as ``[r * heads, 1, d]`` for each class."""
        return [
            rows.index_select(0, self._there(group.rows)).flatten(0, 1)[:, None]
            for group in self.classes
        ]

    def merge(self, parts: list[Tensor], heads: int) -> Tensor:
        """Return the parts of :meth:`split` as ``[R, heads, d]``, in the order of the rows."""
        rows = torch.cat([part.reshape(-1, heads, part.shape[-1]) for part in parts])
        order = torch.cat([group.rows for group in self.classes])
        return rows.index_select(0, self._there(order.argsort()))

    def pad(self, tokens: Tensor) -> list[Tensor]:
        """Return ``[T, heads, d]`` as ``[r * heads, l, d]`` for each class of rows."""
        _, heads, size = tokens.shape
        vectors = tokens.reshape(-1, size)
        slots: Tensor = _Pad.apply(vectors, self._index(heads))  # type: ignore[no-untyped-call]
        shapes = [(len(c.rows) * heads, c.longest) for c in self.classes]
        parts = torch.split(slots, [rows * longest for rows, longest in shapes])
        return [part.view(*shape, size) for part, shape in zip(parts, shapes, strict=True)]

    def unpad(self, parts: list[Tensor], heads: int) -> Tensor:
        """Return the parts of :meth:`pad` as ``[T, heads, d]``, without the padding."""
        size = parts[0].shape[-1]
        flat = [part.reshape(-1, size) for part in parts]
        slots = flat[0] if len(flat) == 1 else torch.cat(flat)
        tokens: Tensor = _Unpad.apply(slots, self._index(heads))  # type: ignore[no-untyped-call]
        return tokens.view(self.tokens, heads, size)

    def _index(self, heads: int) -> _HeadIndex:
        """Index the vectors of so many heads; only what is one a row is made on the CPU.

        Slots are in the order ``[row of a class, head, place in the row]``, class behind class.
        """
        if heads not in self._indices:
            rows = torch.cat([c.rows for c in self.classes])
            width = torch.cat([torch.full((len(c.rows),), c.longest) for c in self.classes])
            slots = width * heads
            count = int(slots.sum())
            first, wide = torch.zeros_like(self._lengths), torch.zeros_like(self._lengths)
            first[rows], wide[rows] = slots.cumsum(0) - slots, width
            begin, first, wide, length = map(
                self._there, (self._starts, first, wide, self._lengths)
            )
            token = torch.arange(self.tokens, device=self.device)
            row = torch.repeat_interleave(length, output_size=self.tokens)
            head = torch.arange(heads, device=self.device)
            place = first[row] + token - begin[row]
            inverse = (place[:, None] + wide[row][:, None] * head).flatten()
            # Padding repeats its row's first vector: any finite value does.
            fill = torch.repeat_interleave(
                begin[self._there(rows)] * heads, self._there(slots), output_size=count
            )
            index = fill.index_copy_(0, inverse, torch.arange(len(inverse), device=self.device))
            padding = torch.ones(count, dtype=torch.bool, device=self.device)
            padding.index_fill_(0, inverse, False)
            self._indices[heads] = _HeadIndex(index, inverse, padding)
        return self._indices[heads]


class _Pad(torch.autograd.Function):
    """Gather vectors into padded slots.

    Padding is masked in attention and dropped behind it, so its gradient is zero and the backward
    pass is a gather too, several times cheaper than the general scatter.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, at: _HeadIndex) -> Tensor:
        ctx.at = at
        return vectors.index_select(0, at.index)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0].index_select(0, ctx.at.inverse), None


class _Unpad(torch.autograd.Function):
    """Gather vectors back; the backward pass leaves zeros on the padding."""

    @staticmethod
    def forward(ctx: Any, slots: Tensor, at: _HeadIndex) -> Tensor:
        ctx.at = at
        return slots.index_select(0, at.inverse)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        slots = gradients[0].index_select(0, ctx.at.index)
        cleared: Tensor = ctx.at.clear(slots)
        return cleared, None


@torch.compiler.disable  # type: ignore[untyped-decorator]
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
    softcap: float | None = None,
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
        softcap: Bound ``c`` of the scores ``s``, which become ``c * tanh(s / c)`` (Gemma 2).

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
    if sliding_window is not None and sliding_window >= row_layout.longest:
        sliding_window = None
    kernel = None if softcap else _varlen_kernel(query, dropout, sliding_window)
    if kernel is not None:
        around, causal = -1 if sliding_window is None else sliding_window - 1, row_layout.causal
        window, spans = (around, 0 if causal else around), _spans(row_layout)
        attended = kernel(*rows, *spans, scale=scale, p=dropout, window=window, causal=causal)
        return attended.unsqueeze(0), None
    queries = row_layout.split(rows[0]) if alone else row_layout.pad(rows[0])
    keys, values = map(row_layout.pad, rows[1:])
    parts = []
    with torch.autocast(query.device.type, enabled=False):
        for group, q, k, v in zip(row_layout.classes, queries, keys, values, strict=True):
            shape = (len(group.rows), heads, -1, size)
            q, k, v = q.view(shape), k.view(shape), v.view(shape)
            bias = group.bias(q.dtype, None if alone else sliding_window, q.device)
            parts.append(_attend(q, k, v, bias, scale, dropout, row_layout.source, softcap))
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
    softcap: float | None = None,
) -> Tensor:
    """Return attention over padded rows, of the shape of ``q``.

    ``q`` is ``[r, heads, l or 1, d]``, ``k`` and ``v`` are ``[r, heads, l, d]``, ``bias`` is
    ``[r or 1, 1, 1 or l, l]``.
    """
    # torch's CPU kernel lacks dropout, and its backward pass in bf16 is slow on short rows.
    short = q.dtype == torch.bfloat16 and q.requires_grad and k.shape[-2] <= 128
    if softcap is None and (q.device.type != "cpu" or not (p or short)):
        return functional.scaled_dot_product_attention(
            q, k, v, attn_mask=bias, dropout_p=p, scale=scale
        )
    shape = q.shape
    added = q.new_zeros(1) if bias is None else bias.expand(*shape[:2], -1, -1).flatten(0, 1)
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    if softcap is None:
        scores = torch.baddbmm(added, q, k.mT, alpha=scale)
    else:
        scores = softcap * torch.tanh(torch.bmm(q, k.mT) * (scale / softcap)) + added
    weights = scores.softmax(-1)
    dropped = functional.dropout(weights, p) if source is None else source.drop(weights, p)
    return torch.bmm(dropped, v).view(shape)


def _varlen_kernel(query: Tensor, p: float, window: int | None) -> Callable[..., Tensor] | None:
    """Return a kernel of torch for rows of any length, or None where there is none.

    It is called with queries, keys and values ``[T, heads, d]``, what :func:`_spans` returns, and
    ``scale``, ``p``, ``window`` and ``causal``.
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
    """Return the starts of the rows of queries and of keys, and their longest rows."""
    if rows.memory is None:
        return rows.offsets, rows.offsets, rows.longest, rows.longest
    one_each = torch.arange(len(rows.offsets), dtype=torch.int32, device=rows.device)
    return one_each, rows.offsets, 1, rows.longest


def _flash(*spans: Any, scale: float, p: float, window: tuple[int, int], causal: bool) -> Tensor:
    left, right = window
    attended: Tensor = torch.ops.aten._flash_attention_forward(
        *spans, p, causal, False, scale=scale, window_size_left=left, window_size_right=right
    )[0]
    return attended


def _efficient(
    *spans: Any, scale: float, p: float, window: tuple[int, int], causal: bool
) -> Tensor:
    rows, where = [x.unsqueeze(0) for x in spans[:3]], spans[3:]
    attended: Tensor = torch.ops.aten._efficient_attention_forward(
        *rows, None, *where, p, int(causal), torch.is_grad_enabled(), scale=scale
    )[0]
    return attended.squeeze(0)


def _no_mask(*_: object, **__: object) -> None:
    """Return no mask: :func:`packed_attention` knows the rows."""


def register_packed_attention() -> None:
    """Make transformers know :data:`PACKED`; doing so again changes nothing."""
    AttentionInterface.register(PACKED, packed_attention)
    AttentionMaskInterface.register(PACKED, _no_mask)
