"""tests/benchmarks/bf16_products.py: what bf16 instructions compute, without them."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.benchmarks.bf16_products import rounded

ROOT = Path(__file__).resolve().parents[2]
SHAPES = {
    "mm": ((70, 96), (96, 50)),
    "addmm": ((50,), (70, 96), (96, 50)),
    "bmm": ((6, 70, 96), (6, 96, 50)),
    "baddbmm": ((1, 1, 1), (6, 70, 96), (6, 96, 50)),
}


@pytest.mark.parametrize("name", list(SHAPES))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_are_torchs_to_the_last_bit(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(shape).to(dtype) for shape in SHAPES[name]]
    factors = {"alpha": 0.5} if len(inputs) == 3 else {}
    operator = getattr(torch.ops.aten, name)
    expected = operator(*inputs, **factors)
    found = rounded(operator.out)(*inputs, **factors)
    assert found.dtype == expected.dtype == dtype
    if dtype == torch.float32:
        assert torch.equal(found, expected)
    else:
        torch.testing.assert_close(found, expected, rtol=2**-7, atol=2**-10)
        assert (found != expected).float().mean() < 0.01


def test_it_is_the_command(tmp_path: Path) -> None:
    script = str(ROOT / "tests/benchmarks/bf16_products.py")
    words = ["show-recipe", "simcse", "--json"]
    done = subprocess.run(
        [sys.executable, script, *words], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert '"simcse"' in done.stdout
