"""Teachers of other dimensions, several candidates, and what is refused."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_distill.options import KlOptions, ListOptions, MseOptions
from cse_testkit import (
    compose,
    make_batch,
    make_context,
    make_part,
    recipe_suites,
    run_steps,
    shared_encoder,
    tiny_corpus,
)

from cse_core.types import Batch, Embeddings
from tests.fixtures.command_line import Cse, refused
from tests.fixtures.methods import refusal

globals().update(recipe_suites("cse-distill", Path(__file__).parent / "settings"))

ROLES: Any = {"positive": "positive", "negative": "negative"}
WIDE = str(shared_encoder(hidden=48))


def by(teacher: Batch) -> Any:
    return lambda view, branch: teacher.views[view]


def value(part: Any, batch: Batch, teacher: Batch, **changes: Any) -> float:
    ctx = make_context(batch, vectors=by(teacher), **changes)
    given = batch.targets["positive"], ctx.negatives(batch, part.options), ctx
    return float(part(batch, *given).value.detach())


def test_a_teacher_of_other_dimensions_has_lists_all_the_same() -> None:
    batch, wide = make_batch(views=ROLES), make_batch(views=ROLES, dimension=20, seed=3)
    for name in ("kl", "margin-mse"):
        for candidates in ("own", "batch"):
            part = make_part("loss", name, candidates=candidates, views=("negative",))
            assert value(part, batch, wide) > 0
            assert value(part, batch, batch) == pytest.approx(0, abs=1e-12)


def test_other_dimensions_are_refused_with_the_flag_that_maps_them() -> None:
    sets = [f"branch.frozen.model={WIDE}"]
    line = refusal(run_steps, recipe="distill", sets=sets, steps=1)
    assert "48 dimensions, the model of 32" in line and "--loss.mse.dimension 48" in line
    rig = run_steps(recipe="distill", sets=[*sets, "loss.mse.dimension=48"], steps=3)
    part: Any = rig.session.parts["loss.mse"]
    moved = part.map.weight
    assert tuple(moved.shape) == (48, 32) and rig.losses[0] > 0
    sets.append("loss.mse.dimension=40")
    assert "the model of 40" in refusal(run_steps, recipe="distill", sets=sets, steps=1)


def test_leaf_maps_to_the_teachers_dimension() -> None:
    """Its head takes the size of the teacher's vectors; squared distances are sums."""
    sets = [f"branch.frozen.model={WIDE}", "model.dropout=0", "pool.mlp.dimension=48"]
    sums = run_steps(recipe="leaf", sets=sets, steps=1).losses[0]
    means = run_steps(recipe="leaf", sets=[*sets, "loss.mse.metric=mse"], steps=1).losses[0]
    assert sums == pytest.approx(48 * means, rel=1e-5)
    line = refusal(run_steps, recipe="leaf", sets=[*sets[:2], "pool.mlp.dimension=40"], steps=1)
    assert "--pool +mlp --pool.mlp.dimension 48 --pool.mlp.keep always" in line


def test_leaf_takes_the_dimension_of_its_teacher(cse: Cse, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("one\ntwo\n", encoding="utf-8")
    plan = ("train", "--recipe", "leaf", "--data", str(texts), "--dry-run", "--json")
    ask = (*plan, "--model", str(shared_encoder()), "--branch.frozen.model")
    for teacher, size in ((WIDE, 48), ("self", None)):
        said = json.loads(cse(*ask, teacher).out)
        (head,) = (part for part in said["settings"]["pool"] if part["use"] == "mlp")
        assert head.get("dimension") == size
    refused(cse(*ask, WIDE, "--pool.mlp.like", "teacher"), "this run has no branch of this name")


def test_beginnings_of_vectors_learn_those_of_a_teacher() -> None:
    """A teacher may be wider: the student's first numbers learn its first numbers."""
    sets = ["branch.frozen.model=" + WIDE, "loss.mse.dimensions=[8,16]", "model.dropout=0"]
    rig = run_steps(recipe="distill", sets=sets, steps=0)
    terms: list[float] = []

    def look(part: Any, method: str, given: Any, came: Any) -> None:
        if part.path != "loss.mse" or method != "__call__":
            return
        batch, targets, _, ctx = given
        size = batch.anchors.shape[1]
        for view, rows in (("anchor", batch.anchors), ("positive", targets.vectors[:, 0])):
            wide = ctx.vectors(view, "frozen")["sentence"].vectors[:, :size]
            terms.append(float((rows - wide).detach().square().mean()))
        assert float(came.value.detach()) == pytest.approx(sum(terms[-2:]) / 2, rel=1e-5)

    rig.session.watch(look)
    rig.step(1)
    assert len(terms) == 4


def test_lists_of_a_wide_teacher_train_without_a_layer() -> None:
    sets = [f"branch.frozen.model={WIDE}", "loss.kl.candidates=batch"]
    rig = run_steps({"loss": ["kl"]}, sets, "distill", steps=2)
    assert all(loss > 0 for loss in rig.losses)


def test_each_side_counts_half() -> None:
    batch, teacher = make_batch(), make_batch(seed=1)
    both, anchor = (make_part("loss", "mse", sides=sides) for sides in ("both", "anchor"))
    other = replace(batch, anchors=batch.targets["positive"].vectors[:, 0])
    swapped = make_batch({"anchor": teacher.targets["positive"].vectors[:, 0],
                          "positive": teacher.anchors})  # fmt: skip
    halves = value(anchor, batch, teacher) + value(anchor, other, swapped)
    assert value(both, batch, teacher) == pytest.approx(halves / 2)
    near = make_part("loss", "mse", metric="cosine", sides="anchor")
    doubled = make_batch({"anchor": 3 * batch.anchors, "positive": batch.anchors})
    assert value(near, batch, doubled) == pytest.approx(0, abs=1e-12)


def test_several_negatives_of_a_text_are_its_candidates() -> None:
    """Two rows of one owner in a view are two candidates; a text without any has loss zero."""
    batch = make_batch(views=ROLES)
    rows = batch.views["negative"]["sentence"]
    own = torch.tensor([0, 0, 1, 2])
    doubled = Embeddings(rows.vectors, own, torch.tensor([0, 1, 0, 0]), rows.length)
    batch = replace(batch, views={**batch.views, "negative": {"sentence": doubled}})
    part = make_part("loss", "margin-mse", scores=("m",), views=("negative",))
    margins = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    found = value(part, batch, batch, values={"m": margins.tolist()})
    total = 0.0
    for a in range(3):
        close = [
            float(batch.anchors[a] @ v) for v, o in zip(rows.vectors, own, strict=True) if o == a
        ]
        right = float(batch.anchors[a] @ batch.targets["positive"].vectors[a, 0])
        total += sum((right - each - float(margins[a])) ** 2 for each in close) / len(close)
    assert found == pytest.approx(total / 4)
    turned = {"sentence": doubled.take(torch.tensor([1, 3, 0, 2]))}
    teacher = replace(batch, views={**batch.views, "negative": turned})
    by_branch = make_part("loss", "kl", views=("negative",))
    assert value(by_branch, batch, teacher) == pytest.approx(0, abs=1e-12)


def test_options_are_those_of_the_public_codes() -> None:
    assert (KlOptions().temperature, KlOptions().similarity) == (1.0, "dot")
    assert ListOptions().similarity == "dot" and MseOptions().metric == "mse"


def test_the_plan_names_views_passes_and_a_teacher_that_is_the_model() -> None:
    run = compose(
        recipe="distill",
        kinds={"loss": ["margin-mse"]},
        sets=["views.negative.column=negative"],
        corpus=tiny_corpus(columns=("negative",)),
    )
    options: Any = next(part.options for part in run.of("loss"))
    assert options.views == ("negative",)
    assert run.passes[-1].views == ("anchor", "positive", "negative")
    assert any("--branch.frozen.model MODEL" in line for line in run.warnings)
    named = compose(sets=[f"branch.frozen.model={WIDE}"], recipe="distill")
    assert not any("teacher" in line for line in named.warnings)


@pytest.mark.parametrize(
    ("loss", "sets", "says"),
    [
        ("kl", {"scores": "['a']"}, "one column each for positive, negative"),
        ("kl", {"scores": "['a', 'b']", "candidates": "batch"}, "candidates = own"),
        ("margin-mse", {"scores": "['a']"}, "--set data.columns.a=COLUMN"),
        ("mse", {"teacher": "online"}, "online is the model in training"),
        ("mse", {"teacher": "tutor"}, "unknown branch"),
        ("mse", {"dimension": "8", "dimensions": "[8]"}, "dimension maps whole vectors"),
    ],
)
def test_what_cannot_be_is_one_line(loss: str, sets: Mapping[str, str], says: str) -> None:
    given = [f"loss.{loss}.{name}={text}" for name, text in sets.items()]
    columns = {"negative": "text"} | ({"a": "float", "b": "float"} if loss == "kl" else {})
    assert says in refusal(
        compose,
        recipe="distill",
        kinds={"loss": [loss]},
        sets=[*given, "views.negative.column=negative"],
        corpus=tiny_corpus(columns=columns),
    )
