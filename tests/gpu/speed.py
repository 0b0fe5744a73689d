"""Sentences a second beside sentence-transformers' trainer, and beside matrix products alone.

Random encoders, rows of drawn words with log-normal lengths, the same batches, length and loss; the
time of cse's tokens is counted to its steps, the peer makes its own in each. From a batch on that a
GPU might not hold, both cache gradients, in the same chunks. The floor is what the layers' matrix
products take alone, forward and backward, without padding; attention counts with all rows as long
as their mean.

A cell that would need more time than is left is left out, and said so.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import torch

from tests.benchmarks.inputs import Shape, content_lengths, write
from tests.benchmarks.steps import PEER, tokenising
from tests.benchmarks.steps import run as measured
from tests.benchmarks.work import Work
from tests.gpu.runs import drawn_rows, encoder, sizes
from tests.gpu.setting import Setting

AT_ONCE = 32_768
"""Tokens encoded at once."""
FIRST_GUESS = {"fp32": 20e12, "bf16": 100e12}
"""Operations a second before anything is measured; on a CPU nothing is left out."""


def run(setting: Setting) -> None:
    """Measure small batches of all encoders first, then larger ones."""
    batches, lengths = ((8,), (16,)) if setting.small else ((64, 512, 4096), (32, 512))
    rates = dict(FIRST_GUESS)
    with tempfile.TemporaryDirectory() as folder:
        for batch, length, (name, shape) in product(batches, lengths, sizes(setting).items()):
            about = {"encoder": name, "tokens": length, "batch": batch}
            with setting.trying("speed", **about):
                cell(setting, Path(folder), shape, about, rates)


def cell(
    setting: Setting, folder: Path, shape: Shape, about: dict[str, object], rates: dict[str, float]
) -> None:
    """Measure one encoder with one length and one batch.

    Args:
        setting: Where and for how long.
        folder: Where encoders are kept.
        shape: Sizes of the encoder.
        about: Its name, tokens at most, and the batch.
        rates: Operations a second by number format, and by encoder the seconds around its steps,
            as measured so far.
    """
    batch, length = int(str(about["batch"])), int(str(about["tokens"]))
    steps = 1 if setting.small else 8 if batch <= 64 else 3 if batch <= 512 else 1
    chunk = None if batch * length <= AT_ONCE else AT_ONCE // length
    model = encoder(folder, str(about["encoder"]), shape)
    rows = drawn_rows(model, batch * (steps + 1), length)
    counts = [count + 2 for count in content_lengths(model, rows[:batch])]
    base = Work(
        who="simcse", model=model, texts=write(folder / "texts.txt", rows), length=length,
        batch=batch, steps=steps, chunk=chunk, device=setting.device,
    )  # fmt: skip
    # Two views, forward and twice that backward; with cached gradients forward once more.
    operations = 2 * shape.operations(counts) * (4 if chunk else 3)
    formats = ("bf16", "fp32") if batch <= 64 and not setting.small else ("bf16",)
    works = [
        (f"{who} {precision}", replace(base, who=who, precision=precision))
        for precision in formats
        for who in ("simcse", PEER)
    ]
    works.insert(2, (f"{PEER} bf16, unpadded", replace(works[1][1], unpad=True)))
    about = {**about, "chunk": chunk}
    tokens, padding = tokenising(base)
    about["padding"] = round(padding, 3)
    for precision in formats:
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        took = floor(setting, shape, counts, dtype) * 2 * (4 if chunk else 3) / 3
        rates[precision] = max(operations / took / 4, 1e12)
        setting.keep("speed", None, who=f"floor {precision}", **about, ms=1000 * took)
    for who, work in works:
        about_it = rates.get(str(about["encoder"]), 8.0)
        needs = (steps + 1) * operations / rates[work.precision] + about_it
        if not setting.small and needs > setting.left:
            why = f"about {needs:.0f} s are needed, {max(setting.left, 0):.0f} are left"
            setting.keep("speed", None, who=who, **about, left_out=why)
            continue
        if work.unpad and importlib.util.find_spec("flash_attn") is None:
            setting.keep("speed", None, who=who, **about, left_out="flash_attn is not installed")
            continue
        with setting.trying("speed", who=who, **about):
            began = time.monotonic()
            seconds = measured(work).seconds
            rates[str(about["encoder"])] = max(time.monotonic() - began - sum(seconds), 1.0)
            took = sum(seconds) / len(seconds) + (tokens if work.who == "simcse" else 0.0)
            facts = {"ms": 1000 * took, "sentences_a_second": batch / took}
            setting.keep("speed", None, who=who, **about, **facts)


def floor(setting: Setting, shape: Shape, counts: list[int], dtype: torch.dtype) -> float:
    """Return the seconds of the products of one view, forward and backward."""
    most = AT_ONCE  # no more at once than a step encodes; more take as much longer
    tokens, hidden, inner = min(sum(counts), most), shape.hidden, shape.inner
    mean = round(sum(counts) / len(counts))
    rows = max(tokens // mean, 1)

    def made(*size: int) -> torch.Tensor:
        return torch.randn(*size, dtype=dtype, device=setting.device)

    thin, wide = made(tokens, hidden), made(tokens, inner)
    own, out, back = made(hidden, hidden), made(hidden, inner), made(inner, hidden)
    heads = made(rows * shape.heads, mean, hidden // shape.heads)
    scores = made(rows * shape.heads, mean, mean)

    def layer() -> None:
        for given, weight, result in ((thin, own, thin),) * 4 + (
            (thin, out, wide),
            (wide, back, thin),
        ):
            given @ weight
            result @ weight.mT
            given.mT @ result
        for _ in range(3):  # forward, and twice backward
            heads @ heads.mT
            scores @ heads

    return setting.seconds(layer) * shape.layers * sum(counts) / tokens
