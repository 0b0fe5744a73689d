"""Two processes hold one queue: the same keys, in the same order, as one process does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cse_testkit import Rig, compose, shared_encoder, tiny_corpus

from tests.fixtures.processes import TwoProcesses

BATCHES = (8, 5, 1, 3, 8)


def run(encoder: str, update: str) -> dict[str, Any]:
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
        encoder=Path(encoder),
        corpus=corpus,
    )
    rig = Rig(composition)
    losses = [float(rig.step(1, rows=size)[0].loss) for size in BATCHES]
    state = rig.session.parts["negatives.queue"].state_dict()
    plain = {name: v.tolist() if hasattr(v, "tolist") else v for name, v in state.items()}
    return {"losses": losses, **plain}


@pytest.mark.parametrize("update", ["normal", "latest"])
def test_two_processes_hold_one_queue(update: str, two_processes: TwoProcesses) -> None:
    encoder = str(shared_encoder())
    one = run(encoder, update)
    for other in two_processes(f"{__name__}:run", encoder, update):
        assert other["losses"] == pytest.approx(one["losses"], rel=1e-4)
        assert (other["row"], other["age"]) == (one["row"], one["age"])
        assert other.get("texts") == one.get("texts")
        for mine, theirs in zip(other["vectors"], one["vectors"], strict=True):
            assert mine == pytest.approx(theirs, abs=1e-3)
