"""What packed attention asks of the kernels for rows of any length, which only a GPU has.

A slow loop stands in for each kernel, behind the signature that its documentation gives.
"""

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode

from cse_defaults.transformers import attention
from cse_defaults.transformers.attention import RowLayout
from tests.gpu.kernels import by_hand

LENGTHS = (3, 1, 7, 4)
HEADS, SIZE = 4, 8


def check(begins: tuple[Tensor, Tensor], longest: tuple[int, int], query: Tensor) -> None:
    """Check what the kernels require of offsets: int32, as many rows, and the longest of them."""
    for at, most in zip(begins, longest, strict=True):
        assert (at.dtype, len(at), int(at.diff().max())) == (torch.int32, len(LENGTHS) + 1, most)
    assert int(begins[0][-1]) == len(query)


def flash(
    query: Tensor, key: Tensor, value: Tensor, cum_seq_q: Tensor, cum_seq_k: Tensor,
    max_q: int, max_k: int, dropout_p: float, is_causal: bool, return_debug_mask: bool, *,
    scale: float, window_size_left: int, window_size_right: int,
) -> tuple[Tensor, None]:  # fmt: skip
    assert (dropout_p, is_causal, return_debug_mask) == (0.0, False, False)
    assert window_size_left == window_size_right
    begins = cum_seq_q, cum_seq_k
    check(begins, (max_q, max_k), query)
    window = window_size_left, window_size_right
    return by_hand(query, key, value, *begins, scale=scale, window=window), None


def efficient(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None,
    cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int, max_seqlen_k: int,
    dropout_p: float, custom_mask_type: int, compute_log_sumexp: bool, *, scale: float,
) -> tuple[Tensor, None]:  # fmt: skip
    assert (bias, dropout_p, custom_mask_type, compute_log_sumexp) == (None, 0.0, 0, True)
    begins = cu_seqlens_q, cu_seqlens_k
    rows = [each.squeeze(0) for each in (query, key, value)]
    check(begins, (max_seqlen_q, max_seqlen_k), rows[0])
    return by_hand(*rows, *begins, scale=scale).unsqueeze(0), None


KERNELS: dict[str, Callable[..., Tensor]] = {
    "flash": attention._flash,
    "efficient": attention._efficient,
}


def on_cuda(dtype: torch.dtype, size: int = 64) -> Tensor:
    """Queries on a GPU that need not be there: shapes alone."""
    with FakeTensorMode():
        return torch.empty(1, HEADS, sum(LENGTHS), size, dtype=dtype, device="cuda")


def test_kernels_give_what_padded_attention_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    assert attention._varlen_kernel(on_cuda(torch.float32), 0.0, 3) is None
    monkeypatch.setattr(torch.ops.aten, "_flash_attention_forward", flash)
    monkeypatch.setattr(torch.ops.aten, "_efficient_attention_forward", efficient)
    torch.manual_seed(0)
    offsets = torch.tensor([0, *LENGTHS]).cumsum(0)
    tokens = int(offsets[-1])
    for key_heads, case in itertools.product((HEADS, 2), ("whole", "window", "one-a-row")):
        key, value = torch.randn(2, 1, key_heads, tokens, SIZE, dtype=torch.float64)
        layout = RowLayout(offsets, torch.device("cpu"))
        queries = tokens
        if case == "one-a-row":
            queries = len(LENGTHS)
            flat = (each.transpose(1, 2).reshape(1, tokens, -1) for each in (key, value))
            layout.memory = tuple(flat)  # type: ignore[assignment]
        query = torch.randn(1, HEADS, queries, SIZE, dtype=torch.float64)
        found = {}
        for name, kernel in (("padded", None), *KERNELS.items()):
            if (name, case) != ("efficient", "window"):
                with monkeypatch.context() as chosen:
                    chosen.setattr(attention, "_varlen_kernel", lambda *_, own=kernel: own)
                    found[name], weights = attention.packed_attention(
                        nn.Identity(), query, key, value, None, row_layout=layout,
                        sliding_window=3 if case == "window" else None,
                    )  # fmt: skip
                assert weights is None
                assert found[name].shape == (1, queries, HEADS, SIZE)
                torch.testing.assert_close(found[name], found["padded"], rtol=1e-12, atol=1e-12)


HALVES = (torch.float16, torch.bfloat16)


def test_a_gpu_gets_the_kernel_that_takes_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = attention._varlen_kernel
    assert chosen(torch.empty(1, 2, 3, 64), 0.0, None) is None, "a CPU has no such kernel"
    for dtype, capability in itertools.product(
        (*HALVES, torch.float32, torch.float64), ((7, 5), (8, 0), (9, 0), (12, 0))
    ):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _, own=capability: own)
        fast = attention._flash if dtype in HALVES and capability >= (8, 0) else None
        plain = None if dtype == torch.float64 else attention._efficient
        assert chosen(on_cuda(dtype), 0.0, None) is (fast or plain)
        assert chosen(on_cuda(dtype), 0.1, None) is fast
        assert chosen(on_cuda(dtype), 0.0, 5) is fast
        assert chosen(on_cuda(dtype, 20), 0.0, None) is None
        assert chosen(on_cuda(dtype, 264), 0.0, None) is None
        with monkeypatch.context() as rocm:
            rocm.setattr(torch.version, "hip", "6.4")
            assert chosen(on_cuda(dtype), 0.0, None) is None


@pytest.mark.parametrize("case", ["whole", "one-a-row"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_torch_takes_them(dtype: torch.dtype, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
