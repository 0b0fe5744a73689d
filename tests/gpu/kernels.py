"""Attention for rows of any length: each kernel that attention takes, on a GPU."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise, product
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from cse_defaults.transformers import attention
from cse_defaults.transformers.attention import RowLayout
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
    keys begin, their longest rows, and ``scale``, ``p``, ``window`` and ``causal``.
    """

    name: str
    call: Callable[..., Tensor]
    formats: tuple[torch.dtype, ...]
    general: bool


def by_hand(
    q: Tensor, k: Tensor, v: Tensor, q_starts: Tensor, k_starts: Tensor, *_: int, scale: float,
    p: float = 0.0, window: tuple[int, int] = (-1, -1), causal: bool = False,
) -> Tensor:  # fmt: skip
    rows = []
    ends = zip(*(pairwise(at.tolist()) for at in (q_starts, k_starts)), strict=True)
    for (q0, q1), (k0, k1) in ends:
        place = torch.arange(k1 - k0, device=q.device)
        back = place[: q1 - q0, None] - place[None]
        near = back.abs() <= window[0] if window[0] >= 0 else None
        if causal:
            near = back >= 0 if near is None else near & (back >= 0)
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

    A kernel may be as far away as padded attention in its own precision, times three. Dropout
    must draw, and draw the same from the same seed.
    """
    exact()
    sizes = (16,) if setting.small else (32, 64, 128)
    for kernel in (STAND_IN,) if setting.small else KERNELS:
        for dtype, size in product(kernel.formats, sizes):
            about = {"kernel": kernel.name, "format": str(dtype).split(".")[1], "size": size}
            cases = ("whole", "causal", "window", "causal-window", "one-a-row")
            for case in cases if kernel.general else cases[:2]:
                with setting.trying("values", **about, case=case):
                    values(setting, kernel, dtype, case, about)


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
    window, causal = WINDOW if case.endswith("window") else None, case.startswith("causal")
    around = (-1, -1) if window is None else (window - 1, window - 1)
    leaves = [each.clone().requires_grad_() for each in (q, k, v)]
    how: dict[str, Any] = {"scale": size**-0.5, "window": around, "causal": causal}
    exactly = by_hand(*leaves, starts, offsets, **how)
    wanted = [exactly.detach(), *torch.autograd.grad(exactly, leaves, up)]

    def far() -> float:
        there = [each.to(setting.device, dtype).requires_grad_() for each in (q, k, v)]
        layout = RowLayout(offsets, torch.device(setting.device), causal=causal)
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
    if case == "whole" and kernel.general:
        tokens, at = q.to(setting.device, dtype), offsets.to(setting.device, torch.int32)
        drawn = []
        for seed in (7, 7, 8):
            torch.manual_seed(seed)
            places = at, at, max(LENGTHS), max(LENGTHS)
            drawn.append(kernel.call(tokens, tokens, tokens, *places, p=P, **how))
        same, other = (torch.equal(drawn[0], each) for each in drawn[1:])
        setting.keep("dropout", same and not other, **about)
