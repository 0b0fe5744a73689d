"""A process gives the memory of freed tensors back, however many steps it makes."""

import ctypes
import random
from pathlib import Path

import pytest
import torch
from cse_testkit import compose, tiny_encoder
from cse_testkit.runs import Rig

from cse_core.texts import DataOptions
from cse_defaults.texts import load_corpus
from cse_engine.run import loop
from cse_engine.runtime.memory import give_back
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


@pytest.mark.slow
def test_two_hundred_steps_take_no_more_than_forty(tmp_path: Path) -> None:
    """Rows of 10 to 250 tokens in batches of 32, another size in each step."""
    draws = random.Random(3)
    texts = tmp_path / "a.txt"
    lines = (" ".join(draws.choices("old the dog cat".split(), k=draws.randint(10, 250)))
             for _ in range(2_000))  # fmt: skip
    texts.write_text("\n".join(lines), encoding="utf-8")
    encoder = tiny_encoder(tmp_path / "encoder", hidden=256, layers=3)
    sets = ["train.batch_size=32", "model.max_length=256", "train.max_steps=200"]
    corpus = load_corpus(DataOptions(path=(str(texts),)))
    rig = Rig(compose(encoder=encoder, corpus=corpus, sets=sets))

    def most(steps: int) -> float:
        return max(resident() for _ in range(steps) if rig.step(1))

    first = most(40)
    assert most(160) < 1.15 * first
