"""Attention over rows lying end to end, registered with transformers under one name.

A model whose attention goes through transformers' ``AttentionInterface`` is given all rows of a
batch as one sequence ``[1, T]``. Here, and nowhere else, the rows are told apart: on a CPU they are
padded inside attention, in a few classes of similar length; on a GPU a variable-length
FlashAttention kernel takes them as they are.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface

from cse_core.dropout import DropoutSource
from cse_core.dropout import dropout as drop

PACKED = "cse_packed"
"""The name under which :func:`packed_attention` is registered."""


@dataclass
class LengthClass:
    """Rows of similar length that attend together, padded to the longest of them.

    Attributes:
        rows: Number of rows, ``r``.
        longest: Tokens of the longest row, ``l``.
        real: ``[r, l]`` bool, False on padding; None where all rows are equally long.
    """

    rows: int
    longest: int
    real: Tensor | None
    _bias: dict[tuple[torch.dtype, int | None], Tensor | None] = field(default_factory=dict)

    def bias(self, dtype: torch.dtype, window: int | None, device: torch.device) -> Tensor | None:
        """Return what is added to the scores, ``[r or 1, 1, 1 or l, l]``: 0, or minus infinity.

        Args:
            dtype: Number format of the scores.
            window: Tokens see others at a distance below this one; None sees the whole row.
            device: Where the scores are.
        """
        if window is not None and window >= self.longest:
            window = None
        key = (dtype, window)
        if key not in self._bias:
            seen = None if self.real is None else self.real[:, None, None, :]
            if window is not None:
                place = torch.arange(self.longest, device=device)
                near = (place[:, None] - place[None, :]).abs() < window
                # A padded query may see nothing at all near it; its own place keeps it finite.
                own = torch.eye(self.longest, dtype=torch.bool, device=device)
                seen = near[None, None] if seen is None else (near & seen) | own
            self._bias[key] = (
                None
                if seen is None
                else torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(
                    ~seen, float("-inf")
                )
            )
        return self._bias[key]


@dataclass(frozen=True)
class _HeadIndex:
    """Where the vector of a token and a head lies in padded order, and back."""

    index: Tensor  # [slots * heads] into [T * heads]
    inverse: Tensor  # [T * heads] into [slots * heads]
    padding: Tensor  # slots of padding, into [slots * heads]


class RowLayout:
    """Where rows begin and end in a sequence of ``T`` tokens, and how attention pads them.

    Built once for a forward pass and handed through the model to every attention layer.

    Args:
        offsets: ``[R+1]`` int64 on the CPU; row ``r`` is ``offsets[r]:offsets[r+1]``.
        device: Where the tokens are.
        source: Where attention dropout draws from; None draws from torch's own generator.
    """

    def __init__(
        self, offsets: Tensor, device: torch.device, source: DropoutSource | None = None
    ) -> None:
        self.source = source
        self.device = device
        self.tokens = int(offsets[-1])
        self._starts = offsets[:-1]
        self._lengths = offsets.diff()
        self.longest = int(self._lengths.max())
        self.offsets = offsets.to(device=device, dtype=torch.int32, non_blocking=True)
        self._rows = _length_classes(self._lengths, split=device.type == "cpu")
        self.classes: list[LengthClass] = []
        for rows in self._rows:
            real = self._real(rows)
            uneven = None if bool(real.all()) else real.to(device, non_blocking=True)
            self.classes.append(LengthClass(len(rows), real.shape[1], uneven))
        self._indices: dict[int, _HeadIndex] = {}

    def pad(self, tokens: Tensor) -> list[Tensor]:
        """Return ``[T, heads, d]`` as ``[r * heads, l, d]`` for each class of rows."""
        _, heads, size = tokens.shape
        slots: Tensor = _Pad.apply(tokens.reshape(-1, size), self._index(heads))
        parts = slots.split([c.rows * heads * c.longest for c in self.classes])
        return [
            part.view(c.rows * heads, c.longest, size)
            for part, c in zip(parts, self.classes, strict=True)
        ]

    def unpad(self, parts: list[Tensor], heads: int) -> Tensor:
        """Return what :meth:`pad` gave as ``[T, heads, d]``, without the padding."""
        size = parts[0].shape[-1]
        flat = [part.reshape(-1, size) for part in parts]
        slots = flat[0] if len(flat) == 1 else torch.cat(flat)
        tokens: Tensor = _Unpad.apply(slots, self._index(heads))
        return tokens.view(self.tokens, heads, size)

    def _real(self, rows: Tensor) -> Tensor:
        return torch.arange(int(self._lengths[rows].max())) < self._lengths[rows, None]

    def _index(self, heads: int) -> _HeadIndex:
        if heads not in self._indices:
            head = torch.arange(heads)[None, :, None]
            index, padding = [], []
            inverse = torch.empty(self.tokens * heads, dtype=torch.int64)
            first = 0
            for rows in self._rows:
                real = self._real(rows)[:, None, :].expand(-1, heads, -1)
                place = torch.arange(real.shape[2])
                # Padding repeats its row's last token: any finite value does.
                token = self._starts[rows, None] + place.minimum(self._lengths[rows, None] - 1)
                source = token[:, None, :] * heads + head
                slot = first + torch.arange(real.numel()).view(real.shape)
                inverse[source[real]] = slot[real]
                padding.append(slot[~real])
                index.append(source.flatten())
                first += real.numel()
            parts = (torch.cat(index), inverse, torch.cat(padding))
            on_device = (part.to(self.device, non_blocking=True) for part in parts)
            self._indices[heads] = _HeadIndex(*on_device)
        return self._indices[heads]


def _length_classes(lengths: Tensor, *, split: bool) -> list[Tensor]:
    """Return the rows of each class: a class holds lengths from over half its longest up."""
    ordered, rows = lengths.sort(descending=True, stable=True)
    rows = rows[ordered > 0]
    ordered = ordered[ordered > 0]
    classes = []
    while len(rows):
        count = int((ordered * 2 > ordered[0]).sum()) if split else len(rows)
        classes.append(rows[:count])
        rows, ordered = rows[count:], ordered[count:]
    return classes


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
        return slots.index_fill_(0, ctx.at.padding, 0.0), None


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
        query: ``[1, heads, T, d]``.
        key: ``[1, key heads, T, d]``; fewer heads than the query's are shared among them.
        value: ``[1, key heads, T, d]``.
        attention_mask: None, as the mask function registered with this one returns.
        row_layout: Where the rows are.
        scaling: Factor of the scores; None means ``d ** -0.5``.
        dropout: Probability of dropping an attention weight; the caller gives 0 outside training.
        sliding_window: Tokens see others at a distance below this one.

    Returns:
        ``[1, T, heads, d]``, and None for the attention weights.
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    shared = query.shape[1] // key.shape[1]
    if shared > 1:
        key, value = (x.repeat_interleave(shared, dim=1) for x in (key, value))
    heads, size = query.shape[1], query.shape[3]
    rows = [x.transpose(1, 2).reshape(row_layout.tokens, heads, size) for x in (query, key, value)]
    kernel = _varlen_kernel(query, dropout)
    if kernel is not None:
        attended = kernel(*rows, row_layout, scale, dropout, sliding_window)
        return attended.unsqueeze(0), None
    padded = [row_layout.pad(x) for x in rows]
    parts = []
    with torch.autocast(query.device.type, enabled=False):
        for group, q, k, v in zip(row_layout.classes, *padded, strict=True):
            bias = group.bias(q.dtype, sliding_window, q.device)
            if bias is not None:
                bias = bias.expand(group.rows, heads, -1, -1).flatten(0, 1)
            parts.append(_attend(q, k, v, bias, scale, dropout, row_layout.source))
    return row_layout.unpad(parts, heads).unsqueeze(0), None


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    scale: float,
    p: float,
    source: DropoutSource | None,
) -> Tensor:
    """Return attention over padded rows, ``[r * heads, l, d]`` as all of ``q``, ``k``, ``v``.

    ``bias`` is ``[r * heads, 1 or l, l]``.
    """
    if p == 0.0 or q.device.type != "cpu":
        q, k, v = (x.unsqueeze(1) for x in (q, k, v))
        mask = None if bias is None else bias.unsqueeze(1)
        attended: Tensor = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, dropout_p=p, scale=scale
        )
        return attended.squeeze(1)
    # torch's CPU kernel has no dropout; written out, attention can use our cheap masks.
    added = q.new_zeros(1, 1, 1) if bias is None else bias
    scores = torch.baddbmm(added, q, k.mT, alpha=scale)
    return torch.bmm(drop(scores.softmax(-1), p, source), v)


def _varlen_kernel(query: Tensor, p: float) -> Callable[..., Tensor] | None:
    """Return a FlashAttention kernel for rows of any length, or None where there is none."""
    if query.device.type != "cuda" or query.dtype not in (torch.float16, torch.bfloat16):
        return None
    if query.shape[-1] > 256 or query.shape[-1] % 8:
        return None
    if torch.cuda.get_device_capability(query.device) < (8, 0):
        return None
    if _has("flash_attn"):
        return _flash_attn
    return _torch_varlen if p == 0.0 and _has("torch.nn.attention.varlen") else None


@cache
def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _flash_attn(
    q: Tensor, k: Tensor, v: Tensor, rows: RowLayout, scale: float, p: float, window: int | None
) -> Tensor:
    from flash_attn import flash_attn_varlen_func

    around = -1 if window is None else window - 1
    attended: Tensor = flash_attn_varlen_func(
        q,
        k,
        v,
        rows.offsets,
        rows.offsets,
        rows.longest,
        rows.longest,
        dropout_p=p,
        softmax_scale=scale,
        window_size=(around, around),
    )
    return attended


def _torch_varlen(
    q: Tensor, k: Tensor, v: Tensor, rows: RowLayout, scale: float, p: float, window: int | None
) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    around = -1 if window is None else window - 1
    attended = varlen_attn(
        q,
        k,
        v,
        rows.offsets,
        rows.offsets,
        rows.longest,
        rows.longest,
        scale=scale,
        window_size=(around, around),
    )
    assert isinstance(attended, Tensor)
    return attended


def _no_mask(*_: object, **__: object) -> None:
    """Return no mask: :func:`packed_attention` knows the rows."""


def register_packed_attention() -> None:
    """Make transformers know :data:`PACKED`; doing so again changes nothing."""
    AttentionInterface.register(PACKED, packed_attention)
    AttentionMaskInterface.register(PACKED, _no_mask)
