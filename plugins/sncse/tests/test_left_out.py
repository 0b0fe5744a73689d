"""Sentences without a soft negative: views without their rows, batches that have none at all."""

import json
from pathlib import Path

import pytest
import torch
from cse_testkit import installed_registry, make_context, make_part, run_steps, shared_encoder

from cse_core.records import RecipeSpec
from cse_core.types import View
from cse_defaults.texts import Corpus
from plugins.sncse.tests import steps_left_out
from tests.fixtures.methods import finished
from tests.fixtures.processes import TwoProcesses

TEXTS = ["Anna paints the boat.", "...", "How to paint a boat?", "It isn't cold"]
NEGATED = ["Anna does not paint the boat.", "It is cold"]


def test_the_view_holds_the_rows_that_can_be_negated() -> None:
    ctx = make_context(texts={"text": TEXTS})
    part = make_part("aug", "negation")
    (view,) = part.views(torch.arange(4), ctx)
    assert (view.texts, view.owner.tolist()) == ([TEXTS[0], TEXTS[3]], [0, 3])
    assert part(view.texts, None, view, ctx) == NEGATED
    # In another view a text that cannot be negated stays.
    part = make_part("aug", "negation", views=["positive"])
    view = View("positive", "positive", "online")
    assert part(TEXTS, None, view, ctx) == [NEGATED[0], *TEXTS[1:3], NEGATED[1]]
    assert part.views(torch.arange(4), ctx) == []


def test_a_batch_without_soft_negatives_has_the_other_losses_alone() -> None:
    unsure = [steps_left_out.UNSURE.format(row) for row in range(24)]
    corpus = Corpus.from_columns({"text": unsure})
    sets = ["model.max_length=64"]
    run = run_steps(recipe="sncse", sets=sets, corpus=corpus)
    alone = run_steps(
        recipe="sncse", kinds={"aug": ["~negation"], "loss": ["infonce"]}, sets=sets, corpus=corpus
    )
    assert run.losses == alone.losses
    assert [step["bml.soft_negatives"] for step in run.scalars] == [0, 0, 0]
    weights = run.weights()
    for name, value in alone.weights().items():
        assert torch.equal(weights[name], value), name


def needs(recipe: str) -> None:
    if recipe not in {each.name for each in installed_registry().all(RecipeSpec)}:
        pytest.skip("cse-hicl is not installed")


@pytest.mark.parametrize("recipe", ["sncse", "hicl-sncse"])
def test_chunks_give_the_same(recipe: str) -> None:
    """Batches of 8 without any, 5 with one, 1 without and 8 with four."""
    needs(recipe)
    whole = steps_left_out.run(str(shared_encoder()), recipe, "train.chunk_size=none")
    chunked = steps_left_out.run(str(shared_encoder()), recipe, "train.chunk_size=3")
    for one, other in zip(whole, chunked, strict=True):
        assert other["loss"] == pytest.approx(one["loss"], rel=1e-3, abs=1e-5)
        assert other["bml.soft_negatives"] == one["bml.soft_negatives"]
    assert [step["bml.soft_negatives"] for step in whole] == pytest.approx([0, 0.2, 0, 0.5])
    assert [step["bml.loss"] for step in whole][::2] == [0, 0]


@pytest.mark.slow
def test_two_processes_equal_one(two_processes: TwoProcesses) -> None:
    needs("hicl-sncse")
    given = str(shared_encoder()), "hicl-sncse"
    one = steps_left_out.run(*given)
    for found in two_processes(f"{steps_left_out.__name__}:run", *given):
        for mine, theirs in zip(found, one, strict=True):
            assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-3, abs=1e-5)
            assert mine["bml.soft_negatives"] == pytest.approx(theirs["bml.soft_negatives"])


def test_the_share_is_in_metrics(tmp_path: Path) -> None:
    sets = ["train.batch_size=13", "train.log_steps=1"]
    run = finished(tmp_path, "sncse", *sets, corpus=steps_left_out.mixed())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    shares = [line["bml.soft_negatives"] for line in lines if "bml.soft_negatives" in line]
    assert sum(shares) / len(shares) == pytest.approx(9 / 26)
