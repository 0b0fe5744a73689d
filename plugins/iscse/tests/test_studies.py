"""Functions behind the paper's studies."""

from __future__ import annotations

from pathlib import Path

from cse_iscse.neighbours import of_point

import cse


def test_neighbours_of_a_run_as_a_function(tmp_path: Path) -> None:
    options = {
        "positives.knn-smoothing.size": 64,
        "positives.knn-smoothing.k": 4,
        "train.batch_size": 16,
        "train.max_steps": 5,
        "data.limit": 200,
    }
    cse.train("is-cse", dev="none", out=tmp_path / "run", quiet=True, options=options)
    found = of_point({"run": str(tmp_path / "run"), "sentences": 2, "k": 3, "seed": 42})
    assert [len(each["neighbours"]) for each in found["sentences"]] == [3, 3]
    assert "64 vectors in the buffer" in found["buffer"]
    assert -1 <= found["mean cosine"] <= 1
