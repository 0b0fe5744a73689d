"""Attention for rows of any length: each kernel against attention row by row, and its time.

Without dropout, outputs and gradients are compared with those of fp64; a kernel may be as far away
as padded attention in its own number format, times a factor. With dropout the mask is read out of
the kernel: with unit vectors for values the output is the weights themselves, and a kernel that is
seeded again draws the same mask for other values. Rows by hand with that mask give the values and
the gradients that the kernel must return.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from cse_core.encoders import attention
from cse_core.encoders.row_layout import RowLayout
from tests.gpu.setting import Setting, exact

LENGTHS = (5, 1, 64, 17, 33, 2, 50, 31)
HEADS = 4
FACTOR = 3.0
"""How much further from fp64 than padded attention a kernel may be."""
P = 0.1
CASES = ("whole", "window", "one-a-row")
WINDOW = 4


HALF = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Kernel:
    """A kernel of CUDA for rows of any length, and what it takes.

    Attributes:
        name: What the page calls it.
        call: Attends, given queries, keys and values ``[T, heads, d]``, where the rows of queries
            and of keys begin, their longest rows, and ``scale``, ``p`` and ``window``.
        needs: ``MODULE:NAME`` that a machine may lack.
        formats: Number formats.
        capability: Of the oldest GPU.
        dropout: Whether it is tried with dropout.
        without: Whether it is tried without.
        window: Whether it takes windows.
        chosen: Whether attention takes it; others are tried to see if they should be.
    """

    name: str
    call: Callable[..., Tensor]
    needs: str
    formats: tuple[torch.dtype, ...] = HALF
    capability: tuple[int, int] = (8, 0)
    dropout: bool = True
    without: bool = True
    window: bool = True
    chosen: bool = False

    def takes(self, setting: Setting, dtype: torch.dtype, p: float, case: str) -> bool:
        """Tell whether it can be tried here; head sizes are multiples of 8 up to 256."""
        if setting.small:
            return dtype in self.formats
        there = torch.cuda.get_device_capability() >= self.capability and has(self.needs)
        asked = (self.dropout if p else self.without) and (self.window or case != "window")
        return dtype in self.formats and there and asked


def has(name: str) -> bool:
    """Tell whether there is such a name."""
    try:
        return pkgutil.resolve_name(name) is not None
    except Exception:  # a build that fits neither torch nor the driver fails in many ways
        return False


def _varlen(*spans: Any, scale: float, p: float, window: tuple[int, int]) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    attended: Tensor = varlen_attn(*spans, scale=scale, window_size=window)
    return attended


def _flash_attn(*spans: Any, scale: float, p: float, window: tuple[int, int]) -> Tensor:
    kernel = importlib.import_module("flash_attn").flash_attn_varlen_func
    attended: Tensor = kernel(*spans, dropout_p=p, softmax_scale=scale, window_size=window)
    return attended


FLASH, EFFICIENT = "torch flash", "torch efficient"
CANDIDATES = (
    Kernel(FLASH, attention._flash, "torch:ops.aten._flash_attention_forward", chosen=True),
    Kernel(
        EFFICIENT, attention._efficient, "torch:ops.aten._efficient_attention_forward",
        formats=(*HALF, torch.float32), capability=(5, 0), dropout=False, window=False, chosen=True,
    ),
    Kernel("flash_attn", _flash_attn, "flash_attn:flash_attn_varlen_func"),
    Kernel("varlen_attn", _varlen, "torch.nn.attention.varlen:varlen_attn", dropout=False),
    Kernel(
        f"{EFFICIENT} with dropout", attention._efficient,
        "torch:ops.aten._efficient_attention_forward", formats=(*HALF, torch.float32),
        capability=(5, 0), without=False, window=False,
    ),
)  # fmt: skip
"""Every kernel that could be taken; ``attention._varlen_kernel`` says which one is. Of the last
torch's sources say that its gradient has another mask."""


def by_hand(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    q_starts: Tensor,
    k_starts: Tensor,
    *_: int,
    scale: float,
    p: float = 0.0,
    window: tuple[int, int] = (-1, -1),
    kept: list[Tensor] | None = None,
) -> Tensor:
    """Attend row by row, ``[T, heads, d]``; ``kept`` are masks ``[heads, l, l]`` of the rows."""
    ends = zip(*(pairwise(at.tolist()) for at in (q_starts, k_starts)), strict=True)
    rows = []
    for number, ((q0, q1), (k0, k1)) in enumerate(ends):
        scores = torch.einsum("qhd,khd->hqk", q[q0:q1], k[k0:k1]) * scale
        if window[0] >= 0:
            place = torch.arange(k1 - k0, device=q.device)
            far = (place[: q1 - q0, None] - place[None]).abs() > window[0]
            scores = scores.masked_fill(far, float("-inf"))
        weights = scores.softmax(-1)
        if kept is not None:
            weights = weights * kept[number] / (1 - P)
        elif p:
            weights = nn.functional.dropout(weights, p)
        rows.append(torch.einsum("hqk,khd->qhd", weights, v[k0:k1]))
    return torch.cat(rows)


STAND_IN = Kernel("rows by hand", by_hand, "torch:nn", formats=(torch.float32,), chosen=True)
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
    """Test and time every kernel that this machine has."""
    exact()
    kernels = (STAND_IN,) if setting.small else CANDIDATES
    sizes = (16,) if setting.small else (32, 64, 128)
    for kernel, dtype in product(kernels, (*HALF, torch.float32)):
        about = {"kernel": kernel.name, "chosen": kernel.chosen}
        about |= {"format": str(dtype).split(".")[1]}
        for size, case in product(sizes, CASES):
            if kernel.takes(setting, dtype, 0.0, case):
                with setting.trying("values", **about, size=size, case=case):
                    values(setting, kernel, dtype, size, case, about)
        for size in sizes:
            if kernel.takes(setting, dtype, P, "whole"):
                with setting.trying("dropout", **about, size=size):
                    dropout(setting, kernel, dtype, size, about)
    times(setting, kernels)


def inputs(setting: Setting, size: int, case: str, lengths: tuple[int, ...] = LENGTHS) -> Any:
    """Return queries, keys and values in fp64, a gradient, and where rows begin, on the CPU."""
    torch.manual_seed(0)
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    tokens = int(offsets[-1])
    queries = len(lengths) if case == "one-a-row" else tokens
    q, up = torch.randn(2, queries, HEADS, size, dtype=torch.float64)
    k, v = torch.randn(2, tokens, HEADS, size, dtype=torch.float64)
    return q, k, v, up, offsets


def values(
    setting: Setting, kernel: Kernel, dtype: torch.dtype, size: int, case: str, about: Any
) -> None:
    """Compare outputs and gradients, without dropout, through packed attention itself."""
    q, k, v, up, offsets = inputs(setting, size, case)
    window = WINDOW if case == "window" else None
    starts = torch.arange(len(offsets)) if case == "one-a-row" else offsets
    around = (-1, -1) if window is None else (window - 1, window - 1)
    leaves = [each.clone().requires_grad_() for each in (q, k, v)]
    exactly = by_hand(*leaves, starts, offsets, scale=size**-0.5, window=around)
    wanted = [exactly.detach(), *torch.autograd.grad(exactly, leaves, up)]

    def attend() -> list[Tensor]:
        there = [each.to(setting.device, dtype).requires_grad_() for each in (q, k, v)]
        layout = RowLayout(offsets, torch.device(setting.device))
        query, key, value = (each.transpose(0, 1)[None] for each in there)
        if case == "one-a-row":
            layout.memory = there[1].flatten(1)[None], there[2].flatten(1)[None]
        out, _ = attention.packed_attention(
            nn.Identity(), query, key, value, None, row_layout=layout, sliding_window=window
        )
        grads = torch.autograd.grad(out, there, up.to(setting.device, dtype)[None])
        return [out[0], *grads]

    def far() -> float:
        pairs = zip(attend(), wanted, strict=True)
        return max(float((one.detach().double().cpu() - other).abs().max()) for one, other in pairs)

    # cuDNN's kernel, which torch may prefer without a window or dropout, is none of the candidates.
    with only(None), sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        padded = far()
    with only(kernel):
        ours = far()
    facts = {**about, "size": size, "case": case, "error": ours, "padded_error": padded}
    setting.keep("values", ours <= FACTOR * padded + 1e-6, **facts)


def dropout(setting: Setting, kernel: Kernel, dtype: torch.dtype, size: int, about: Any) -> None:
    """Read the mask out of a kernel; compare outputs and gradients with rows that have it."""
    device, scale = setting.device, size**-0.5
    lengths = tuple(min(length, 4 * size) for length in LENGTHS) * 2
    q, k, v, up, offsets = inputs(setting, size, "whole", lengths)
    q, k, v, up = (each.to(device, dtype) for each in (q * 0.3, k * 0.3, v, up))
    starts = offsets.to(device, torch.int32)
    spans = starts, starts, max(lengths), max(lengths)

    def seeded(values: Tensor, *leaves: Tensor) -> Tensor:
        torch.manual_seed(7)
        q_, k_ = leaves or (q, k)
        return kernel.call(q_, k_, values, *spans, scale=scale, p=P, window=(-1, -1))

    kept = masks(seeded, v, offsets, size)
    flat = torch.cat([each.flatten() for each in kept]).float()
    share, sigma = 1 - float(flat.mean()), (P * (1 - P) / len(flat)) ** 0.5
    of_heads = [
        float((row[one] != row[other]).float().mean())
        for row in kept
        if row.shape[-1] > 30
        for one, other in ((0, 1), (2, 3))
    ]
    twins = [number for number, length in enumerate(lengths) if length == max(lengths)]
    of_rows = float((kept[twins[0]] != kept[twins[1]]).float().mean())
    leaves = [each.double().clone().requires_grad_() for each in (q, k, v)]
    expected = by_hand(*leaves, offsets, offsets, scale=scale, kept=[x.double() for x in kept])
    wanted = [expected.detach(), *torch.autograd.grad(expected, leaves, up.double())]
    there = [each.clone().requires_grad_() for each in (q, k, v)]
    out = seeded(there[2], *there[:2])
    found = [out, *torch.autograd.grad(out, there, up)]
    errors = [
        float((one.detach().double() - other).norm() / other.norm())
        for one, other in zip(found, wanted, strict=True)
    ]
    most = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}[dtype]
    # Two masks differ where one of both drops: in 2p(1-p) of the places.
    apart, by_chance = min([*of_heads, of_rows]), 2 * P * (1 - P)
    ok = abs(share - P) < 6 * sigma + 2**-8 and apart > by_chance / 2 and max(errors) < most
    facts = {
        "size": size, "dropped": share, "heads_differ": min(of_heads), "rows_differ": of_rows,
        "output_error": errors[0], "gradient_error": max(errors[1:]),
    }  # fmt: skip
    setting.keep("dropout", ok, **about, **facts)


def masks(attend: Callable[[Tensor], Tensor], v: Tensor, offsets: Tensor, size: int) -> Any:
    """Return what is kept, ``[heads, l, l]`` of 0 and 1 for each row.

    ``size`` keys at a time have unit vectors for values, so the output is their weights.
    """
    lengths = offsets.diff().tolist()
    longest, heads = max(lengths), v.shape[1]
    blocks = []
    place = torch.cat([torch.arange(length) for length in lengths]).to(v.device)
    for first in range(0, longest, size):
        unit = torch.zeros_like(v)
        inside = (place >= first) & (place < first + size)
        at = inside.nonzero().squeeze(1)
        unit[at, :, place[at] - first] = 1
        blocks.append(attend(unit) != 0)
    found = torch.cat(blocks, dim=-1)
    rows = torch.split(found, lengths)
    return [
        row.transpose(0, 1)[..., :length].reshape(heads, length, length)
        for row, length in zip(rows, lengths, strict=True)
    ]


def there_and_back(given: tuple[Tensor, ...], layout: RowLayout, p: float) -> None:
    """Attend and go back to queries, keys and values."""
    out, _ = attention.packed_attention(nn.Identity(), *given, None, row_layout=layout, dropout=p)
    torch.autograd.grad(out, given, torch.ones_like(out))


def times(setting: Setting, kernels: tuple[Kernel, ...]) -> None:
    """Time each kernel and padded attention, forward and backward, with and without dropout."""
    shapes = ((64, 32, 12, 64), (512, 32, 12, 64), (64, 512, 12, 64), (64, 512, 16, 64))
    if setting.small:
        shapes = ((4, 8, 2, 16),)
    for (rows, longest, heads, size), p in product(shapes, (0.0, P)):
        torch.manual_seed(0)
        lengths = torch.randint(longest // 4, longest + 1, (rows,))
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        tokens = int(offsets[-1])
        dtype = torch.float32 if setting.small else torch.bfloat16
        shape = (1, tokens, heads, size)
        q, k, v = (
            torch.randn(shape, dtype=dtype, device=setting.device).transpose(1, 2).requires_grad_()
            for _ in range(3)
        )
        layout = RowLayout(offsets, torch.device(setting.device))

        work = partial(there_and_back, (q, k, v), layout, p)
        facts: dict[str, Any] = {"rows": rows, "longest": longest, "heads": heads, "size": size}
        facts |= {"tokens": tokens, "dropout": p}
        for kernel in (None, *kernels):
            name = "padded" if kernel is None else kernel.name
            if kernel is not None and not kernel.takes(setting, dtype, p, "whole"):
                continue
            with setting.trying("time", kernel=name, **facts), only(kernel):
                took = setting.seconds(work)
                setting.keep("time", None, kernel=name, **facts, ms=1000 * took)
