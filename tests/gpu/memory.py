"""Peak memory of simcse's steps against the batch, at once and in chunks.

In chunks a larger batch may take at most half as much again as a smaller one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.benchmarks.inputs import write
from tests.benchmarks.steps import own
from tests.benchmarks.work import Work
from tests.gpu.runs import drawn_rows, encoder, sizes
from tests.gpu.setting import Setting

WORKS = (
    ("BERT-base", 32, 64, None), ("BERT-base", 32, 256, None), ("BERT-base", 32, 1024, None),
    ("BERT-base", 32, 4096, None), ("BERT-base", 32, 1024, 64), ("BERT-base", 32, 4096, 64),
    ("BERT-base", 512, 16, None), ("BERT-base", 512, 64, None), ("BERT-base", 512, 256, None),
    ("BERT-base", 512, 256, 16), ("BERT-large", 512, 64, None), ("BERT-large", 512, 256, 16),
)  # fmt: skip
"""Encoder, tokens at most, batch, chunk."""


def run(setting: Setting) -> None:
    """Measure each, and compare those in equal chunks."""
    peaks: dict[tuple[str, int, int], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        works = (("tiny", 16, 8, 4), ("tiny", 16, 16, 4)) if setting.small else WORKS
        for name, length, batch, chunk in works:
            about = {"encoder": name, "tokens": length, "batch": batch, "chunk": chunk}
            if setting.left < 15:
                setting.keep("memory", None, **about, left_out="no time left")
                continue
            with setting.trying("memory", **about):
                model = encoder(Path(folder), name, sizes(setting)[name])
                texts = write(Path(folder) / "texts.txt", drawn_rows(model, 2 * batch, length))
                watch = own(
                    Work(
                        who="simcse", model=model, texts=texts, length=length, batch=batch, steps=1,
                        chunk=chunk, precision="fp32" if setting.small else "bf16",
                        device=setting.device,
                    )
                )  # fmt: skip
                if chunk is not None:
                    peaks.setdefault((name, length, chunk), []).append(watch.most)
                setting.keep(
                    "memory", None, **about, before_mb=round(watch.before),
                    peak_mb=round(watch.most),
                )  # fmt: skip
    for (name, length, chunk), found in peaks.items():
        if len(found) > 1:
            about = {"encoder": name, "tokens": length, "chunk": chunk}
            times = max(found) / min(found)
            setting.keep("memory of chunks", times < 1.5, **about, times_the_smallest=times)
