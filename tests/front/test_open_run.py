"""``cse.open_run`` reads what a run's folder holds."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cse_testkit import shared_encoder, tiny_corpus

import cse


def test_a_run_is_read(tmp_path: Path) -> None:
    texts = list(tiny_corpus().column("text"))
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")
    options = {"train.batch_size": 4, "train.max_steps": 3, "train.save_steps": 2}
    made = cse.train(
        model=str(shared_encoder()), data=file, dev="none", negatives="queue", loss="infonce",
        options=options, out=tmp_path / "run", quiet=True,
    )  # fmt: skip
    run = cse.open_run(made.folder)
    assert [part.path for part in run.composition.of("negatives")] == ["negatives.queue"]
    assert list(run.corpus.column("text")) == texts
    assert run.rounds == {} and run.result is not None
    assert run.result["step"] == made.outcome.step
    assert [line["step"] for line in run.metrics if "loss" in line][-1] == 3
    assert run.checkpoints[-1] == (0, 3) and (0, 2) in run.checkpoints
    states = (run.state("negatives.queue", step=2), run.state("negatives.queue"))
    early, late = (state["vectors"][state["row"] >= 0] for state in states)  # the rest are a draw
    assert (len(early), len(late)) == (8, 12)
    assert any(torch.equal(part, early) for part in (late[:8], late[4:]))
    refused = {"pool.none": None, "negatives.queue": 9}
    for part, step in refused.items():
        with pytest.raises(cse.CseError, match="no state|no checkpoint of this step .* 2, 3"):
            run.state(part, step)
    file.write_text("\n".join(reversed(texts)) + "\n", encoding="utf-8")
    with pytest.raises(cse.CseError, match="the data has changed since this run"):
        cse.open_run(made.folder).corpus  # noqa: B018
    with pytest.raises(cse.CseError, match="is not a run: it has no run.toml"):
        cse.open_run(tmp_path)
