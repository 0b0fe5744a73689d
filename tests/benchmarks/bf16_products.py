"""``cse`` with bf16 products made in fp32, for scores on processors without bf16 instructions.

There torch makes a bf16 product about five times as slowly as one in fp32. Here the inputs, which
are bf16, are multiplied and summed in fp32 and the sums rounded to bf16, which is what the
instructions do: a few values in a thousand differ from torch's, by their last bit. It says nothing
about speed.

    python -m tests.benchmarks.bf16_products train --set train.precision=bf16 ...
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import torch
from torch import Tensor


def rounded(product: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a product that computes in fp32 what it is given in bf16.

    Args:
        product: An operator's ``out`` variant, whose second last input has the number format; it is
            another kernel than the one that is replaced.
    """

    def multiply(*inputs: Tensor, **factors: float) -> Tensor:
        left, right = inputs[-2:]
        wanted = left.dtype
        made = torch.float32 if wanted == torch.bfloat16 else wanted
        out = torch.empty((*left.shape[:-1], right.shape[-1]), dtype=made)
        product(*(each.to(made) for each in inputs), **factors, out=out)
        return out.to(wanted)

    return multiply


def install() -> torch.library.Library:
    """Replace the matrix products of the CPU as long as the result lives."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Warning only once for all operators")
        for name in ("mm", "bmm", "addmm", "baddbmm"):
            library.impl(name, rounded(getattr(torch.ops.aten, name).out), "CPU")
    return library


if __name__ == "__main__":
    from cse_cli.main import run

    kept = install()
    sys.exit(run(sys.argv[1:]))
