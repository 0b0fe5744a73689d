"""Whole runs: passes in the plan, the second encoder, resumed bit for bit."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import torch
from cse_testkit import (
    Rig,
    compose,
    installed_registry,
    run_steps,
    shared_encoder,
    tiny_corpus,
    tiny_encoder,
    write_corpus,
)

from cse_core.errors import CseError
from cse_core.recipes.composition import Composition
from cse_core.runtime.reporter import Reporter
from cse_core.training.checkpoint import Checkpoint
from cse_core.training.run import resume, train
from cse_core.training.signals import Stopped

PHI = "negatives.instance-weights.phi=0.05"


class Stopping(Reporter):
    """Asks the run to stop after the second step."""

    def step(self, step: int) -> None:
        if step == 2:
            signal.raise_signal(signal.SIGTERM)


def composed(folder: Path, *sets: str) -> Composition:
    corpus = tiny_corpus()
    file = write_corpus(corpus, folder / "rows.csv")
    given = [f"data.path=[{file}]", "train.max_steps=5", "train.device=cpu", PHI, *sets]
    return compose(recipe="dclr", corpus=corpus, sets=given)


def passes(*sets: str) -> list[tuple[str, tuple[str, ...], bool]]:
    made = compose(recipe="dclr", sets=sets)
    return [(each.branch, each.views, each.gradient) for each in made.passes]


def test_the_plan_shows_the_pass_of_the_second_encoder() -> None:
    online = ("online", ("anchor", "positive"), True)
    assert passes() == [online, ("frozen", ("anchor",), False)]
    two = passes("negatives.instance-weights.view=positive")
    assert two == [online, ("frozen", ("anchor", "positive"), False)]


def test_the_plan_says_where_one_pass_would_do() -> None:
    sets = ["negatives.instance-weights.view=positive"]
    printed = [n for n in compose(recipe="dclr", sets=sets).notes if "one pass less" in n]
    assert len(printed) == 1 and "view = anchor" in printed[0]
    sets.append("branch.frozen.mode=train")
    assert not [n for n in compose(recipe="dclr", sets=sets).notes if "one pass less" in n]


def test_the_plan_warns_of_a_second_encoder_that_was_never_trained() -> None:
    sets = ["negatives.instance-weights.center=false"]
    (line,) = compose(recipe="dclr", sets=sets).warnings
    assert "center = true" in line and "removed" in line
    assert not compose(recipe="dclr").warnings


def test_the_second_encoder_never_changes_and_has_no_gradient() -> None:
    rig = Rig(compose(recipe="dclr", sets=[PHI]), tiny_corpus())
    frozen = rig.assembly.branches["frozen"].encoder
    before = {name: value.clone() for name, value in frozen.state_dict().items()}
    start = rig.weights()
    results = rig.step(3)
    assert all(torch.equal(before[name], value) for name, value in frozen.state_dict().items())
    assert all(value.grad is None for value in frozen.parameters())
    assert any(not torch.equal(start[name], value) for name, value in rig.weights().items())
    assert not rig.assembly.encoders["frozen"].heads, "the head is the online branch's alone"
    removed = [float(each.logged["instance-weights.removed"]) for each in results]
    assert any(removed) and all(share < 1 for share in removed)


def test_the_second_encoder_may_be_another_model(tmp_path: Path) -> None:
    other = tiny_encoder(tmp_path / "other", cased=True, hidden=16, seed=5)
    sets = [f"branch.frozen.model={other}", PHI]
    named, own = (run_steps(recipe="dclr", sets=each) for each in (sets, [PHI]))
    assert named.losses != own.losses and all(loss > 0 for loss in named.losses)


@pytest.mark.parametrize("variant", ["paper", "published"])
def test_a_stopped_run_goes_on_bit_for_bit(variant: str, tmp_path: Path) -> None:
    sets = [f"loss.dclr.variant={variant}"]
    (tmp_path / "one").mkdir()
    composition = composed(tmp_path / "one", *sets)
    registry = installed_registry()
    train(composition, registry, out=tmp_path / "whole", reporter=Reporter())
    with pytest.raises(Stopped):
        train(composition, registry, out=tmp_path / "broken", reporter=Stopping())
    resume(tmp_path / "broken", registry, reporter=Reporter())
    one, other = (
        Checkpoint.read(sorted((tmp_path / name / "checkpoints").glob("step-*"))[-1])
        for name in ("whole", "broken")
    )
    assert one.values["step"] == other.values["step"] == 5
    assert one.tensors.keys() == other.tensors.keys()
    assert all(torch.equal(value, other.tensors[name]) for name, value in one.tensors.items())
    lines = (tmp_path / "broken" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3, 4, 5]


def test_a_missing_second_encoder_is_told_in_one_line(tmp_path: Path) -> None:
    composition = composed(tmp_path, f"branch.frozen.model={tmp_path / 'nothing'}")
    with pytest.raises(CseError) as caught:
        train(composition, installed_registry(), out=tmp_path / "run", reporter=Reporter())
    line = str(caught.value)
    assert line.startswith("branch.frozen.model: ") and "\n" not in line
    assert not (tmp_path / "run" / "run.toml").exists()


def test_gradient_caching_gives_the_loss_of_one_call() -> None:
    """The draws of the noise and the second encoder's weights are those of the whole batch."""
    whole, chunks = (
        run_steps(recipe="dclr", sets=["model.dropout=0", PHI, *sets], encoder=shared_encoder())
        for sets in ([], ["train.chunk_size=2"])
    )
    assert chunks.losses == pytest.approx(whole.losses, rel=1e-4)


def test_it_goes_over_other_recipes() -> None:
    kinds = {"negatives": ["+noise", "+instance-weights"]}
    run = run_steps(recipe="simcse", kinds=kinds, sets=[PHI])  # type: ignore[arg-type]
    assert all(torch.isfinite(torch.tensor(run.losses)))
    assert run.scalars[0]["infonce.negatives"] == 7.0
