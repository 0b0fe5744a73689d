"""Steps of a run that leaves sentences without a soft negative, alone or as one of two processes.

``python steps_left_out.py OUT ENCODER RECIPE``, with torch.distributed's variables where there are
several processes.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from cse_testkit import Rig, compose, tiny_corpus

from cse_core.data import Corpus

UNSURE = "How to paint the boat number {}?"
"""A text that the rules leave out."""
BATCHES = (8, 5, 1, 8)


def mixed(rows: int = 26) -> Corpus:
    """Return texts of which the first eight, then every other one, are left out."""
    texts = list(tiny_corpus(rows).column("text"))
    unsure = (row < 8 or row % 2 == 0 for row in range(rows))
    pairs = zip(texts, unsure, strict=True)
    return Corpus.from_columns(
        {"text": [UNSURE.format(n) if out else text for n, (text, out) in enumerate(pairs)]}
    )


def run(encoder: Path, recipe: str, *sets: str) -> dict[str, Any]:
    """Return losses and shares after steps of unequal batches, the first without soft negatives."""
    corpus = mixed()
    composition = compose(
        recipe=recipe,
        sets=["model.dropout=0", "train.batch_size=8", "train.lr=1e-6", *sets],
        encoder=encoder,
        corpus=corpus,
    )
    rig = Rig(composition, corpus)
    results = [rig.step(1, rows=size)[0] for size in BATCHES]
    return {
        "losses": [float(result.loss) for result in results],
        "parts": [
            {name: float(value) for name, value in result.parts.items()} for result in results
        ],
    }


def main(out: str, encoder: str, recipe: str) -> None:
    """Join the other process, run, and write a file for each."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    found = run(Path(encoder), recipe)
    Path(out, f"{os.environ['RANK']}.json").write_text(json.dumps(found), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
