"""Attention for rows of any length: each kernel that attention takes, on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise, product
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from cse_core.encoders import attention
from cse_core.encoders.attention import RowLayout
from tests.gpu.setting import Setting, exact

LENGTHS = (5, 1, 64, 17, 33, 2, 50, 31)
HEADS = 4
FACTOR = 3.0
"""How much further from fp64 than padded attention a kernel may be."""
P = 0.1
WINDOW = 4
HALF = (torch.bfloat16, torch.float16)


class Kernel(NamedTuple):
    """A kernel that attention takes, its number formats, and whether with dropout and windows.

    ``call`` is given queries, keys and values ``[T, heads, d]``, where the rows of queries and of
    keys begin, their longest rows, and ``scale``, ``p`` and ``window``.
    """

    name: str
    call: Callable[..., Tensor]
    formats: tuple[torch.dtype, ...]
    general: bool


def by_hand(
    q: Tensor, k: Tensor, v: Tensor, q_starts: Tensor, k_starts: Tensor, *_: int, scale: float,
    p: float = 0.0, window: tuple[int, int] = (-1, -1),
) -> Tensor:  # fmt: skip
    """Attend row by row, ``[T, heads, d]``."""
    rows = []
    ends = zip(*(pairwise(at.tolist()) for at in (q_starts, k_starts)), strict=True)
    for (q0, q1), (k0, k1) in ends:
        place = torch.arange(k1 - k0, device=q.device)
        apart = (place[: q1 - q0, None] - place[None]).abs()
        near = apart <= window[0] if window[0] >= 0 else None
        spans = (each.transpose(0, 1) for each in (q[q0:q1], k[k0:k1], v[k0:k1]))
        row = scaled_dot_product_attention(*spans, near, p, scale=scale)
        rows.append(row.transpose(0, 1))
    return torch.cat(rows)


KERNELS = (
    Kernel("torch flash", attention._flash, HALF, True),
    Kernel("torch efficient", attention._efficient, (*HALF, torch.float32), False),
)
STAND_IN = Kernel("rows by hand", by_hand, (torch.float32,), True)
"""On a CPU, which has no such kernel, this is tried."""


@contextmanager
def only(kernel: Kernel | None) -> Iterator[None]:
    """Let packed attention use one kernel, or none."""
    before = attention._varlen_kernel
    attention._varlen_kernel = lambda *_: None if kernel is None else kernel.call
    try:
        yield
    finally:
        attention._varlen_kernel = before


def run(setting: Setting) -> None:
    """Outputs and gradients of each kernel that attention takes are compared with those of fp64.

    A kernel may be as far away as padded attention in its own precision, times three. With
    dropout, masks of heads and rows must differ, and outputs and gradients be those of weights
    with the mask.
    """
    exact()
    sizes = (16,) if setting.small else (32, 64, 128)
    for kernel in (STAND_IN,) if setting.small else KERNELS:
        for dtype, size in product(kernel.formats, sizes):
            about = {"kernel": kernel.name, "format": str(dtype).split(".")[1], "size": size}
            for case in ("whole", "window", "one-a-row") if kernel.general else ("whole",):
                with setting.trying("values", **about, case=case):
                    values(setting, kernel, dtype, case, about)
            if kernel.general:
                with setting.trying("dropout", **about):
                    dropout(setting, kernel, dtype, about)


def values(
    setting: Setting, kernel: Kernel, dtype: torch.dtype, case: str, about: dict[str, Any]
) -> None:
    """Compare outputs and gradients, without dropout, through packed attention itself."""
    torch.manual_seed(0)
    size = about["size"]
    offsets = torch.tensor([0, *LENGTHS]).cumsum(0)
    starts = torch.arange(len(offsets)) if case == "one-a-row" else offsets
    q, up = torch.randn(2, int(starts[-1]), HEADS, size, dtype=torch.float64)
    k, v = torch.randn(2, int(offsets[-1]), HEADS, size, dtype=torch.float64)
    window = WINDOW if case == "window" else None
    around = (-1, -1) if window is None else (window - 1, window - 1)
    leaves = [each.clone().requires_grad_() for each in (q, k, v)]
    exactly = by_hand(*leaves, starts, offsets, scale=size**-0.5, window=around)
    wanted = [exactly.detach(), *torch.autograd.grad(exactly, leaves, up)]

    def far() -> float:
        there = [each.to(setting.device, dtype).requires_grad_() for each in (q, k, v)]
        layout = RowLayout(offsets, torch.device(setting.device))
        query, key, value = (each.transpose(0, 1)[None] for each in there)
        if case == "one-a-row":
            layout.memory = there[1].flatten(1)[None], there[2].flatten(1)[None]
        out, _ = attention.packed_attention(
            nn.Identity(), query, key, value, None, row_layout=layout, sliding_window=window
        )
        grads = torch.autograd.grad(out, there, up.to(setting.device, dtype)[None])
        pairs = zip([out[0], *grads], wanted, strict=True)
        return max(float((one.detach().double().cpu() - other).abs().max()) for one, other in pairs)

    # cuDNN's kernel, which torch may prefer without a window or dropout, is none of the product's.
    with only(None), sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        padded = far()
    with only(kernel):
        ours = far()
    facts = {**about, "case": case, "error": ours, "padded_error": padded}
    setting.keep("values", ours <= FACTOR * padded + 1e-6, **facts)


def dropout(setting: Setting, kernel: Kernel, dtype: torch.dtype, about: dict[str, Any]) -> None:
    """Read the mask out of a kernel; compare outputs and gradients with weights that have it."""
    torch.manual_seed(0)
    rows, length, size = 6, about["size"], about["size"]
    shape = (4, rows, length, HEADS, size)
    q, k, v, up = (0.3 * torch.randn(shape)).to(setting.device, dtype)
    leaves = [each.clone().requires_grad_() for each in (q, k, v)]
    starts = torch.arange(0, rows * length + 1, length, device=setting.device, dtype=torch.int32)

    def seeded(*given: Tensor) -> Tensor:
        torch.manual_seed(7)
        spans = (each.flatten(0, 1) for each in given)
        places = starts, starts, length, length
        out = kernel.call(*spans, *places, scale=size**-0.5, p=P, window=(-1, -1))
        return out.view_as(q)

    unit = torch.eye(size, device=setting.device, dtype=dtype)[None, :, None]
    kept = seeded(q, k, unit.expand_as(q).contiguous()) != 0  # [rows, queries, heads, keys]
    share, sigma = 1 - float(kept.double().mean()), (P * (1 - P) / kept.numel()) ** 0.5
    pairs = (kept[0, :, 0], kept[1, :, 0]), (kept[0, :, 0], kept[0, :, 1])
    apart = min(float((one != other).double().mean()) for one, other in pairs)
    exactly = [each.double().clone().requires_grad_() for each in (q, k, v)]
    weights = (torch.einsum("rqhd,rkhd->rqhk", *exactly[:2]) * size**-0.5).softmax(-1)
    expected = torch.einsum("rqhk,rkhd->rqhd", weights * kept / (1 - P), exactly[2])
    wanted = expected, *torch.autograd.grad(expected, exactly, up.double())
    out = seeded(*leaves)
    found = out, *torch.autograd.grad(out, leaves, up)
    error = max(
        float((one.double() - other).norm() / other.norm())
        for one, other in zip(found, wanted, strict=True)
    )
    most = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}[dtype]
    # Two masks of heads or rows differ where one of both drops: in 2p(1-p) of the places.
    ok = abs(share - P) < 6 * sigma + 2**-8 and apart > P * (1 - P) and error < most
    setting.keep("dropout", ok, **about, dropped=share, masks_differ=apart, error=error)
