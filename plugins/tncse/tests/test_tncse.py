"""Losses beside the authors' numbers, a second encoder of another start, the saved ensemble."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_testkit import compose, make_batch, make_context, make_part, tiny_corpus, tiny_encoder
from cse_testkit.runs import Rig
from torch import Tensor

import cse
from cse_core.errors import CseError
from cse_core.types import Batch
from cse_engine.step.negatives import negatives_for_loss, reversed_batch

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))
VIEWS = ("anchor", "positive", "second-anchor", "second-positive")


def case_of(case: Any) -> tuple[dict[str, Tensor], Batch]:
    """Return a case's leaves and their batch."""
    leaves = {name: torch.tensor(rows, dtype=torch.float64, requires_grad=True)
              for name, rows in case["vectors"].items()}  # fmt: skip
    roles = {"positive": "positive", VIEWS[2]: "aux", VIEWS[3]: "aux"}
    batch = make_batch({name: leaves[name] for name in VIEWS}, views=roles)  # type: ignore[arg-type]
    views = {}
    for name, levels in batch.views.items():
        rows = levels["sentence"]
        views[name] = {**levels, "pooled": replace(rows, vectors=leaves[f"pooled {name}"])}
    return leaves, replace(batch, views=views)


def gradients(value: Tensor, leaves: dict[str, Tensor]) -> dict[str, Any]:
    made = torch.autograd.grad(value, [*leaves.values()], allow_unused=True)
    return {name: None if one is None else one for name, one in zip(leaves, made, strict=True)}


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_the_losses_are_those_of_the_authors_code(case: Any) -> None:
    leaves, batch = case_of(case)
    losses = {
        "infonce": make_part("loss", "infonce", in_batch="both"),
        "two-encoders": make_part("loss", "two-encoders"),
        "norms": make_part("loss", "norm-constraint", ratio="published"),
    }
    sums: dict[str, Tensor] = {}
    turned, anchors = reversed_batch(batch, "positive")
    for seen, targets in ((batch, batch.targets["positive"]), (turned, anchors)):
        for name, loss in losses.items():
            negatives = negatives_for_loss(batch, loss.options, (), seen_by=seen)
            made = loss(seen, targets, negatives, make_context(batch))
            for part, value in {name: made.value, **made.parts}.items():
                sums[part] = sums.get(part, torch.zeros(())) + value / 2
    wanted = case["values"]
    for name in ("infonce", "second", "across"):
        assert sums[name].item() == pytest.approx(wanted[name], rel=1e-9), name
    assert sums["norms"].item() * 2 == pytest.approx(wanted["norms"], rel=1e-9)
    for name, value in {"contrast": sums["two-encoders"], "norms": 2 * sums["norms"]}.items():
        made = gradients(value, leaves)
        for leaf, expected in case["gradients"][name].items():
            ours = torch.zeros_like(leaves[leaf]) if made[leaf] is None else made[leaf]
            right = (
                torch.zeros_like(ours)
                if expected is None
                else torch.tensor(expected, dtype=ours.dtype)
            )
            torch.testing.assert_close(ours, right, rtol=1e-9, atol=1e-9, msg=f"{name}, {leaf}")


def rig(**sets: Any) -> Rig:
    given = {"pool.pooler-output.start": "random", "train.lr": 0.01, **sets}
    lines = [f"{name}={value}" for name, value in given.items()]
    return Rig(compose(recipe="tncse", sets=lines, corpus=tiny_corpus()))


def test_both_encoders_are_saved_and_joined(tmp_path: Path) -> None:
    """The folder's vectors are the mean of both encoders' [CLS] states."""
    run = rig()
    run.step(2)
    run.session.save(tmp_path / "model")
    texts = [*tiny_corpus().column("text")[:4]]
    both = cse.load(tmp_path / "model", device="cpu").encode(texts)
    branches = [run.session.parts[f"branch.{name}"] for name in ("online", "second")]
    weights = [dict(branch.encoder.named_parameters()) for branch in branches]
    apart = [name for name in weights[0] if not torch.equal(weights[0][name], weights[1][name])]
    assert len(apart) > 5, "the second encoder learned what the first did"
    first = cse.load(tmp_path / "model" / "members" / "second", device="cpu").encode(texts)
    assert not np.allclose(both, first) and both.shape == first.shape


def test_the_second_encoder_starts_from_another_model(tmp_path: Path) -> None:
    other = rig(**{"train.seed": 9, "train.lr": 0.1})
    other.step(2)
    other.session.save(tmp_path / "other")
    folder = tmp_path / "other"
    run = rig(**{"branch.second.model": str(folder)})
    second = run.session.parts["branch.second"].encoder.state_dict()
    trained = other.session.parts["branch.online"].encoder.state_dict()
    assert all(torch.equal(second[name], trained[name]) for name in trained)
    frozen = rig(**{"branch.second.model": str(folder), "model.freeze_embeddings": True})
    branches = [frozen.session.parts[f"branch.{name}"] for name in ("online", "second")]
    words = [next(branch.encoder.parameters()) for branch in branches]
    assert not torch.equal(*words), "a weight that is not trained stays with its encoder"
    small = tiny_encoder(tmp_path / "small", hidden=16)
    with pytest.raises(CseError, match="weights of other names or sizes") as found:
        rig(**{"branch.second.model": str(small)}).session.prepare()
    assert found.value.where == "branch.second.model"
    cased = tiny_encoder(tmp_path / "cased", cased=True)
    with pytest.raises(CseError, match="reads texts as other tokens"):
        rig(**{"branch.second.model": str(cased)}).session.prepare()


def test_hard_negatives_are_refused() -> None:
    corpus = tiny_corpus(columns=("positive", "negative"))
    with pytest.raises(CseError, match="second encoder has no vectors of view negative"):
        compose(recipe="tncse", sets=["views.negative.column=negative"], corpus=corpus)
