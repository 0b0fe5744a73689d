"""Steps of a run with a queue, alone or as one of several processes; writes what it came to.

``python steps_of_a_queue.py OUT ENCODER UPDATE``, with torch.distributed's variables where there
are several processes.
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


def run(encoder: Path, update: str) -> dict[str, Any]:
    """Return losses and the queue after steps of unequal batches, one of a single row."""
    corpus = tiny_corpus(26)
    composition = compose(
        kinds={"negatives": ["queue"]},
        sets=[
            "model.dropout=0",
            f"negatives.queue.update={update}",
            "negatives.queue.size=6",
            "negatives.queue.first_fill=2",
            "branch.ema.decay=0.5",
        ],
        encoder=encoder,
        corpus=corpus,
    )
    rig = Rig(composition, corpus)
    losses = [float(rig.step(1, rows=size)[0].loss) for size in BATCHES]
    state = rig.assembly.parts["negatives.queue"].state_dict()
    plain = {name: v.tolist() if hasattr(v, "tolist") else v for name, v in state.items()}
    return {"losses": losses, **plain}


def main(out: str, encoder: str, update: str) -> None:
    """Join the other processes, run, and write a file for each."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    found = run(Path(encoder), update)
    Path(out, f"{os.environ['RANK']}.json").write_text(json.dumps(found), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
