"""Two processes hold the same buffers and clusters, in the same order, as one process does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import Rig, compose, shared_encoder, tiny_corpus

from tests.fixtures.processes import TwoProcesses

BATCHES = (8, 5, 1, 3, 8)


def run(encoder: str) -> dict[str, Any]:
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
        encoder=Path(encoder),
        corpus=corpus,
    )
    rig = Rig(composition)
    losses = [float(rig.step(1, rows=size)[0].loss) for size in BATCHES]
    held = {
        f"{path}.{name}": value.tolist()
        for path in ("positives.knn-smoothing", "positives.kmeans-smoothing")
        for name, value in rig.session.parts[path].state_dict().items()
        if isinstance(value, torch.Tensor)
    }
    return {"losses": losses, **held}


def test_two_processes_hold_the_same_buffers_and_clusters(two_processes: TwoProcesses) -> None:
    encoder = str(shared_encoder())
    one = run(encoder)
    both = two_processes(f"{__name__}:run", encoder)
    assert both[0] == both[1]
    for name, wanted in one.items():
        if name.endswith(".row"):
            assert both[0][name] == wanted, name
        else:
            found, expected = torch.tensor(both[0][name]), torch.tensor(wanted)
            assert torch.allclose(found, expected, rtol=1e-4, atol=1e-3), name
    assert one["losses"][0] == pytest.approx(both[0]["losses"][0], rel=1e-5)
