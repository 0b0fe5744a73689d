"""What packed attention asks of the kernels for rows of any length, which only a GPU has.

A slow loop stands in for each kernel, behind the signature that its documentation gives.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode

from cse_core.encoders import attention
from cse_core.encoders.attention import RowLayout

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


def flash_kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tensor]:
    def stand_in(
        query: Tensor, key: Tensor, value: Tensor, cum_seq_q: Tensor, cum_seq_k: Tensor,
        max_q: int, max_k: int, dropout_p: float, is_causal: bool, return_debug_mask: bool, *,
        scale: float, window_size_left: int, window_size_right: int,
    ) -> tuple[Tensor, None]:  # fmt: skip
        begins = cum_seq_q, cum_seq_k
        check_spans(begins, (max_q, max_k), query)
        assert (dropout_p, is_causal, return_debug_mask) == (0.0, False, False)
        assert window_size_left == window_size_right
        return by_hand(query, key, value, begins, scale, window_size_left), None

    monkeypatch.setattr(torch.ops.aten, "_flash_attention_forward", stand_in)
    return attention._flash


def efficient_kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tensor]:
    def stand_in(
        query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None,
        cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int, max_seqlen_k: int,
        dropout_p: float, custom_mask_type: int, compute_log_sumexp: bool, *, scale: float,
    ) -> tuple[Tensor, None]:  # fmt: skip
        begins = cu_seqlens_q, cu_seqlens_k
        q, k, v = (each.squeeze(0) for each in (query, key, value))
        check_spans(begins, (max_seqlen_q, max_seqlen_k), q)
        assert (bias, dropout_p, custom_mask_type, compute_log_sumexp) == (None, 0.0, 0, True)
        return by_hand(q, k, v, begins, scale, -1).unsqueeze(0), None

    monkeypatch.setattr(torch.ops.aten, "_efficient_attention_forward", stand_in)
    return attention._efficient


KERNELS = {"flash": flash_kernel, "efficient": efficient_kernel}


def on_cuda(dtype: torch.dtype, size: int = 64) -> Tensor:
    """Queries on a GPU that need not be there: shapes alone."""
    with FakeTensorMode():
        return torch.empty(1, HEADS, sum(LENGTHS), size, dtype=dtype, device="cuda")


@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize("key_heads", [HEADS, 2], ids=["heads", "shared-heads"])
@pytest.mark.parametrize("case", ["whole", "window", "one-a-row"])
def test_kernels_are_asked_for_what_padded_attention_gives(
    kernel: str, key_heads: int, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (kernel, case) == ("efficient", "window"):
        assert attention._varlen_kernel(on_cuda(torch.float32), 0.0, 3) is None
        return
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
    monkeypatch.setattr(attention, "_varlen_kernel", lambda *_: asked)
    assert padded.shape == (1, queries, HEADS, SIZE)
    torch.testing.assert_close(attend(), padded, rtol=1e-12, atol=1e-12)


HALVES = (torch.float16, torch.bfloat16)


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (9, 0), (12, 0)])
def test_a_gpu_gets_the_kernel_that_takes_what_is_asked(
    dtype: torch.dtype, capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    flash = attention._flash if dtype in HALVES and capability >= (8, 0) else None
    plain = None if dtype == torch.float64 else attention._efficient
    chosen = attention._varlen_kernel
    assert chosen(on_cuda(dtype), 0.0, None) is (flash or plain)
    assert chosen(on_cuda(dtype), 0.1, None) is flash
    assert chosen(on_cuda(dtype), 0.0, 5) is flash
    assert chosen(on_cuda(dtype, 20), 0.0, None) is None
    assert chosen(on_cuda(dtype, 264), 0.0, None) is None
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert chosen(on_cuda(dtype), 0.0, None) is None


def test_a_cpu_has_no_such_kernel() -> None:
    assert attention._varlen_kernel(torch.empty(1, 2, 3, 64), 0.0, None) is None


@pytest.mark.parametrize("case", ["whole", "one-a-row"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_torch_takes_what_its_kernels_are_given(
    dtype: torch.dtype, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, order and kinds of arguments, and shapes: of tensors of a GPU without values."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (8, 0))
    offsets = torch.tensor([0, *LENGTHS]).cumsum(0)
    tokens = int(offsets[-1])
    queries = len(LENGTHS) if case == "one-a-row" else tokens
    layout = RowLayout(offsets, torch.device("cpu"))
    with FakeTensorMode(allow_non_fake_inputs=True):
        query = torch.empty(1, HEADS, queries, 64, dtype=dtype, device="cuda")
        key = torch.empty(1, HEADS, tokens, 64, dtype=dtype, device="cuda")
        layout.device = query.device
        layout.offsets = torch.empty(len(offsets), dtype=torch.int32, device="cuda")
        if case == "one-a-row":
            flat = torch.empty(1, tokens, HEADS * 64, dtype=dtype, device="cuda")
            layout.memory = flat, flat
        p = 0.1 if dtype == torch.bfloat16 else 0.0
        found, _ = attention.packed_attention(
            nn.Identity(), query, key, key, None, row_layout=layout, dropout=p
        )
    assert found.shape == (1, queries, HEADS, 64)
    assert (found.dtype, found.device.type) == (dtype, "cuda")


@pytest.mark.parametrize("name", ["FlashAttention", "EfficientAttention"])
def test_torch_knows_the_gradients_of_its_kernels(name: str) -> None:
    starts = torch.empty(3, dtype=torch.int32, device="meta")
    rows = [
        torch.empty(20, HEADS, 64, dtype=torch.bfloat16, device="meta", requires_grad=True)
        for _ in range(3)
    ]
    kernel = attention._flash if name == "FlashAttention" else attention._efficient
    out = kernel(*rows, starts, starts, 12, 12, scale=0.1, p=0.0, window=(-1, -1))
    assert out.shape == rows[0].shape
    functions, names = [out.grad_fn], []
    while functions:
        function = functions.pop()
        if function is not None:
            names.append(function.name())
            functions += [each for each, _ in function.next_functions]
    assert any(each.startswith(name) for each in names)
