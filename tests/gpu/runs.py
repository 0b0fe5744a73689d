"""Whole runs of simcse on the starter's sentences, and random encoders of known sizes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from cse_core.runtime.reporter import Reporter
from cse_core.training.run import train
from cse_core.training.trainer import Outcome
from tests.benchmarks.inputs import Shape, content_lengths, make_model, read, registry
from tests.gpu.setting import Setting

SIZES = {"MiniLM": Shape(6, 384), "BERT-base": Shape(12, 768), "BERT-large": Shape(24, 1024)}
SMALL = {"tiny": Shape(2, 64)}


class Steps(Reporter):
    """Calls a function after each step."""

    def __init__(self, done: Callable[[int], object] | None = None) -> None:
        self.done = done

    def step(self, step: int) -> None:
        if self.done is not None:
            self.done(step)


def simcse(
    setting: Setting, out: Path, *sets: str, done: Callable[[int], object] | None = None
) -> Outcome:
    """Train the starter's encoder; ``done`` is called after each step.

    Raises:
        Stopped: If ``done`` asked for it.
    """
    from cse_core.recipes.compose import resolve

    composition = resolve(
        registry(), recipe="simcse", sets=[f"train.device={setting.device}", *sets]
    )
    return train(composition, registry(), out=out, reporter=Steps(done))


def sizes(setting: Setting) -> dict[str, Shape]:
    """Return the encoders to measure with."""
    return SMALL if setting.small else SIZES


def encoder(folder: Path, name: str, shape: Shape) -> str:
    """Return the folder of a random encoder, made once."""
    path = folder / name
    if not path.exists():
        make_model(path, read(None, 2_000), shape)
    return str(path)


def drawn_rows(model: str, count: int, longest: int) -> list[str]:
    """Return rows of drawn words of one token each, none twice.

    Lengths are log-normal with a median of 17 tokens of 32 and a spread of 0.57, cut at the
    longest: of padded batches about a third is padding.
    """
    words = sorted({word for text in read(None, 2_000) for word in text.split()})
    lengths = content_lengths(model, words)
    words = [word for word, length in zip(words, lengths, strict=True) if length == 1]
    draws = random.Random(0)
    rows: dict[str, None] = {}
    while len(rows) < count:
        wanted = min(
            longest - 2, max(2, round(draws.lognormvariate(0.0, 0.57) * longest * 17 / 32))
        )
        rows[" ".join(draws.choices(words, k=wanted))] = None
    return list(rows)
