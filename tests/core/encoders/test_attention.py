"""What packed attention asks of the kernels for rows of any length, which only a GPU has.

A slow loop stands in for each kernel, behind the signature that its documentation gives.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from cse_core.encoders import attention
from cse_core.encoders.row_layout import RowLayout

LENGTHS = (3, 1, 7, 4)
HEADS, SIZE = 4, 8


def by_hand(
    q: Tensor, k: Tensor, v: Tensor, begins: tuple[Tensor, Tensor], scale: float, window: int
) -> Tensor:
    """Attend row by row, ``[T, heads, d]``; ``window`` is the largest distance, -1 for none."""
    rows = []
    for row in range(len(begins[0]) - 1):
        (q0, q1), (k0, k1) = ((int(at[row]), int(at[row + 1])) for at in begins)
        scores = torch.einsum("qhd,khd->hqk", q[q0:q1], k[k0:k1]) * scale
        far = (torch.arange(q1 - q0)[:, None] - torch.arange(k1 - k0)[None, :]).abs()
        if window >= 0:
            scores = scores.masked_fill(far > window, float("-inf"))
        rows.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1), v[k0:k1]))
    return torch.cat(rows)


def check_spans(begins: tuple[Tensor, Tensor], longest: tuple[int, int], q: Tensor) -> None:
    """What the kernels require of offsets: int32, as many rows, and the longest of them."""
    for at, most in zip(begins, longest, strict=True):
        assert at.dtype == torch.int32
        assert len(at) == len(LENGTHS) + 1
        assert int(at.diff().max()) == most
    assert int(begins[0][-1]) == len(q)


def torch_kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tensor]:
    from torch.nn.attention import varlen

    signature = inspect.signature(varlen.varlen_attn)

    def stand_in(*given: object, **named: object) -> Tensor:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        asked = bound.arguments
        begins = asked["cu_seq_q"], asked["cu_seq_k"]
        check_spans(begins, (asked["max_q"], asked["max_k"]), asked["query"])
        left, right = asked["window_size"]
        assert left == right
        return by_hand(asked["query"], asked["key"], asked["value"], begins, asked["scale"], left)

    monkeypatch.setattr(varlen, "varlen_attn", stand_in)
    return attention._torch_varlen


def flash_kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tensor]:
    module = ModuleType("flash_attn")

    def flash_attn_varlen_func(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        cu_seqlens_q: Tensor,
        cu_seqlens_k: Tensor,
        max_seqlen_q: int,
        max_seqlen_k: int,
        dropout_p: float = 0.0,
        softmax_scale: float | None = None,
        causal: bool = False,
        window_size: tuple[int, int] = (-1, -1),
    ) -> Tensor:
        begins = cu_seqlens_q, cu_seqlens_k
        check_spans(begins, (max_seqlen_q, max_seqlen_k), q)
        assert softmax_scale is not None
        assert (causal, dropout_p) == (False, 0.0)
        left, right = window_size
        assert left == right
        return by_hand(q, k, v, begins, softmax_scale, left)

    module.flash_attn_varlen_func = flash_attn_varlen_func  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flash_attn", module)
    return attention._flash_attn


KERNELS = {"torch": torch_kernel, "flash_attn": flash_kernel}


@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize("key_heads", [HEADS, 2], ids=["heads", "shared-heads"])
@pytest.mark.parametrize("case", ["whole", "window", "one-a-row"])
def test_kernels_are_asked_for_what_padded_attention_gives(
    kernel: str, key_heads: int, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    offsets = torch.tensor([0, *LENGTHS]).cumsum(0)
    tokens = int(offsets[-1])
    key, value = torch.randn(2, 1, key_heads, tokens, SIZE, dtype=torch.float64)
    layout = RowLayout(offsets, torch.device("cpu"))
    queries = tokens
    if case == "one-a-row":
        queries = len(LENGTHS)
        flat = (each.transpose(1, 2).reshape(1, tokens, -1) for each in (key, value))
        layout.memory = tuple(flat)  # type: ignore[assignment]
    query = torch.randn(1, HEADS, queries, SIZE, dtype=torch.float64)
    window = 3 if case == "window" else None

    def attend() -> Tensor:
        found, weights = attention.packed_attention(
            nn.Identity(), query, key, value, None, row_layout=layout, sliding_window=window
        )
        assert weights is None
        return found

    padded = attend()
    asked = KERNELS[kernel](monkeypatch)
    monkeypatch.setattr(attention, "_varlen_kernel", lambda query, p: asked)
    assert padded.shape == (1, queries, HEADS, SIZE)
    torch.testing.assert_close(attend(), padded, rtol=1e-12, atol=1e-12)
