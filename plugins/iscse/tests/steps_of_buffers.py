"""Steps of a run with both miners, alone or as one of several processes; writes what it came to.

``python steps_of_buffers.py OUT ENCODER``, with torch.distributed's variables where there are
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

BATCHES = (8, 5, 1, 3, 8)


def run(encoder: Path) -> dict[str, Any]:
    """Return losses and state after steps of unequal batches, one of a single row."""
    corpus = tiny_corpus(26)
    composition = compose(
        recipe="is-cse",
        kinds={"positives": ["+kmeans-smoothing"], "loss": ["+infonce:clustered"]},
        sets=[
            "model.dropout=0",
            "positives.knn-smoothing.size=10",
            "positives.knn-smoothing.k=3",
            "positives.kmeans-smoothing.size=10",
            "positives.kmeans-smoothing.clusters=3",
            "loss.clustered.target=kmeans-smoothing",
        ],
        encoder=encoder,
        corpus=corpus,
    )
    rig = Rig(composition, corpus)
    losses = [float(rig.step(1, rows=size)[0].loss) for size in BATCHES]
    tensors, _ = rig.state()
    return {"losses": losses, **{name: value.tolist() for name, value in tensors.items()}}


def main(out: str, encoder: str) -> None:
    """Join the other processes, run, and write a file for each."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    found = run(Path(encoder))
    Path(out, f"{os.environ['RANK']}.json").write_text(json.dumps(found), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
