"""A process gives the memory of freed tensors back, however many steps it makes."""

import ctypes
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from cse_testkit import compose, tiny_encoder
from cse_testkit.runs import Rig

from cse_engine.run import loop
from cse_engine.runtime.memory import LARGE_STATES, give_back, map_large_tensors
from tests.benchmarks.work import resident

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not glibc: nothing to give back"
)


def test_freed_memory_is_given_back() -> None:
    """Blocks too small to be mapped, of which every hundredth stays: their pages are free."""
    blocks = [torch.ones(16_000) for _ in range(5_000)]
    full = resident()
    kept = blocks[::100]
    del blocks
    give_back()
    assert resident() < full - 200 and len(kept) == 50


def test_a_run_gives_back_every_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(loop, "TRIM_STEPS", 2)
    monkeypatch.setattr(loop, "give_back", lambda: calls.append(1))
    Rig(compose()).step(5)
    assert len(calls) == 2


def test_large_tensors_are_mapped_before_torch_and_only_then(tmp_path: Path) -> None:
    """A large tensor that is freed between others leaves no gap."""
    code = """if True:
        import sys
        from cse_engine.runtime.memory import LARGE, LARGE_STATES, map_large_tensors
        from tests.benchmarks.work import resident
        assert not map_large_tensors(LARGE_STATES - 1)
        if not map_large_tensors(LARGE_STATES):
            sys.exit("no huge pages")
        import torch
        kept = [(torch.ones(LARGE // 4), torch.ones(1_000)) for _ in range(40)]
        full = resident()
        kept = [small for _, small in kept]
        assert resident() < full - 150, (resident(), full)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or done.stderr.strip() == "no huge pages", done.stderr
    assert not map_large_tensors(LARGE_STATES), "torch is there already"


@pytest.mark.slow
def test_two_hundred_steps_take_no_more_than_eight(tmp_path: Path) -> None:
    """Rows of 60 to 250 tokens in batches of 32, another size in each step, by the command."""
    draws = random.Random(3)
    texts = tmp_path / "a.txt"
    lines = (" ".join(draws.choices("old the dog cat".split(), k=draws.randint(60, 250)))
             for _ in range(2_000))  # fmt: skip
    texts.write_text("\n".join(lines), encoding="utf-8")
    encoder = tiny_encoder(tmp_path / "encoder", hidden=384, layers=3)

    def most(steps: int) -> float:
        """Return the peak of the memory of a run of its own, in MiB."""
        code = """if True:
            import resource, sys
            from cse_cli.main import run
            assert run(sys.argv[1:]) == 0
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
        """
        words = ("train", "--model", str(encoder), "--data", str(texts), "--dev", "none",
                 "--train.batch_size", "32", "--model.max_length", "256", "--train.precision",
                 "fp32", "--train.max_steps", str(steps), "--train.chunk_size", "none",
                 "--out", str(tmp_path / f"run-{steps}"))  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
        return float(done.stderr.split()[-1])

    assert most(200) < 1.15 * most(8)
