from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cse_cli.training.feeds import feeds
from cse_cli.training.plan_text import plan_dict, plan_lines
from cse_core.errors import CseError
from cse_core.recipes.compose import resolve
from cse_core.recipes.composition import PlannedPass
from cse_core.records import RunInfo
from cse_core.registry.registry import Registry
from cse_core.schedule import Schedule
from cse_core.training.recipe_file import as_recipe
from tests.fixtures.parts import BERT, compose, made_up_registry


def recipe(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_views_come_only_where_something_needs_them() -> None:
    made = compose(kinds={"loss": ["+margin"], "aug": ["negate", "nudge"]})
    assert [(v.name, v.role, v.column, v.made_by, v.augmenters) for v in made.views] == [
        ("anchor", "anchor", "text", None, ()),
        ("positive", "positive", "text", None, ("aug.nudge",)),
        ("identical", "identical", "text", None, ()),
        ("soft_negative", "soft_negative", None, "aug.negate", ("aug.negate",)),
    ]


def test_columns_of_views(tmp_path: Path) -> None:
    from dataclasses import replace

    pairs = replace(BERT, columns=("text", "positive", "negative", "fraternal"))
    made = compose(facts=pairs)
    assert [(v.name, v.column) for v in made.views] == [
        ("anchor", "text"),
        ("positive", "positive"),
    ]
    made = compose(None, "views.negative.column=negative", facts=pairs)
    negative = made.view("negative")
    assert negative is not None and (negative.role, negative.column) == ("negative", "negative")
    assert made.warnings == ()
    made = compose(None, "views.positive.column=text", facts=pairs)
    positive = made.view("positive")
    assert positive is not None and positive.column == "text"
    path = recipe(tmp_path, '[views.other]\ncolumn = "fraternal"\n[[loss]]\nuse = "infonce"')
    other = compose(path, "loss.infonce.target=other", facts=pairs).view("other")
    assert other is not None and (other.role, other.column) == ("aux", "fraternal")
    fraternal = compose(None, "loss.infonce.target=fraternal", facts=pairs).view("fraternal")
    assert fraternal is not None and fraternal.column == "fraternal"


def test_one_pass_a_branch(tmp_path: Path) -> None:
    plain = compose()
    assert plain.passes == (
        PlannedPass(
            branch="online", views=("anchor", "positive"), gradient=True, why="the objective"
        ),
    )
    made = compose(None, "views.positive.branch=ema")
    assert [(p.branch, p.views, p.gradient) for p in made.passes] == [
        ("online", ("anchor",), True),
        ("ema", ("positive",), False),
    ]
    made = compose(None, "views.positive.branch=twin")
    assert [(p.branch, p.gradient) for p in made.passes] == [("online", True), ("twin", True)]


def test_fresh_gradients_cost_a_pass() -> None:
    made = compose(kinds={"aug": ["nudge"]})
    assert [(p.views, p.gradient) for p in made.passes] == [
        (("anchor", "positive"), True),
        (("anchor", "positive"), True),
    ]
    assert made.passes[0].why == "input gradients of aug.nudge (off in this pass)"
    previous = compose(None, "aug.nudge.gradient=previous", kinds={"aug": ["nudge"]})
    assert len(previous.passes) == 1
    made = compose(None, "views.positive.branch=ema", kinds={"aug": ["nudge"]})
    assert [(p.branch, p.views, p.gradient) for p in made.passes] == [
        ("online", ("anchor",), True),
        ("online", ("anchor",), True),
        ("ema", ("positive",), False),
        ("ema", ("positive",), False),
    ]


def test_what_a_store_keeps_of_another_branch_is_one_pass_shared_by_equal_ones() -> None:
    made = compose(None, "negatives.two.view=anchor",
                   kinds={"negatives": ["ring", "ring:again", "ring:two"]})  # fmt: skip
    assert [(p.branch, p.views, p.gradient, p.why) for p in made.passes] == [
        ("online", ("anchor", "positive"), True, "the objective"),
        ("ema", ("positive", "anchor"), False, "negatives.ring, negatives.again, negatives.two"),
    ]
    own = compose(None, "views.positive.branch=ema", kinds={"negatives": ["ring"]})
    assert [(p.branch, p.views, p.gradient) for p in own.passes] == [
        ("online", ("anchor",), True),
        ("ema", ("positive",), False),
    ]
    online = compose(None, "negatives.ring.branch=none", kinds={"negatives": ["ring"]})
    assert [(p.branch, p.gradient) for p in online.passes] == [("online", True)]
    joined = compose(None, "views.positive.branch=ema", "negatives.ring.view=anchor",
                     kinds={"negatives": ["ring"]})  # fmt: skip
    assert [(p.branch, p.views, p.why) for p in joined.passes] == [
        ("online", ("anchor",), "the objective"),
        ("ema", ("positive", "anchor"), "the objective, negatives.ring"),
    ]
    online = compose(None, "views.positive.branch=ema", "negatives.ring.branch=online",
                     kinds={"negatives": ["ring"]})  # fmt: skip
    assert [(p.branch, p.views, p.gradient) for p in online.passes] == [
        ("online", ("anchor",), True),
        ("online", ("positive",), False),
        ("ema", ("positive",), False),
    ]


def test_feeds_say_who_feeds_whom() -> None:
    made = compose(
        None,
        "loss.infonce.negatives=in-batch",
        "loss.infonce.in_batch=both",
        "loss.near.target=neighbours",
        "loss.near.negatives=[noise]",
        "loss.bare.negatives=stored",
        kinds={
            "negatives": ["ring", "noise"],
            "positives": ["near"],
            "loss": ["infonce", "infonce:near", "infonce:bare"],
        },
    )
    assert tuple(feeds(made)) == (
        "positive -> loss.infonce (in-batch: both)",
        "positives.near (group neighbours) -> loss.near (in-batch: target)",
        "negatives.noise (positive by branch online) -> loss.near",
        "positive -> loss.bare (no in-batch negatives)",
        "negatives.ring (positive by branch ema) -> loss.bare",
        "negatives.noise (positive by branch online) -> loss.bare",
        "branch.frozen -> negatives.noise",
    )


def test_feeds_name_the_views_that_a_loss_reads_beside_its_target() -> None:
    made = compose(kinds={"loss": ["margin"], "aug": ["negate"]})
    assert tuple(feeds(made)[:2]) == (
        "positive -> loss.margin (in-batch: target)",
        "identical -> loss.margin (view)",
    )


def test_notes_of_records_see_options_and_facts() -> None:
    made = compose(None, "negatives.ring.size=96", kinds={"negatives": ["ring"]})
    assert "negatives.ring: keeps 96 vectors, 1.5 batches" in made.notes


def test_the_plan_in_lines() -> None:
    made = compose(
        None,
        "train.chunk_size=16",
        "negatives.ring.size=128",
        kinds={"negatives": ["ring"], "aug": ["nudge"]},
        facts=replace(BERT, starter=False),
    )
    assert plan_lines(made) == [
        "recipe: default",
        "model: starter (bert, hidden 256, 4 layers, lower-cased)",
        "data: starter; 1000 rows; columns text",
        "train: batches of 64, learning rate 3e-05, 16 steps, seed 42, precision auto",
        "parts:",
        "  aug.nudge (cse-alpha 0.1.0)",
        "  pool.cls (cse-toolkit 0.1.0)",
        "  pool.mlp (cse-toolkit 0.1.0)",
        "  negatives.ring (cse-alpha 0.1.0): size = 128",
        "  loss.infonce (cse-toolkit 0.1.0)",
        "  branch.online (cse-toolkit 0.1.0)",
        "  branch.ema (cse-toolkit 0.1.0)",
        "views:",
        "  anchor: column text, branch online",
        "  positive: column text, branch online, changed by aug.nudge",
        "encoder passes per step:",
        "  1. online: anchor, positive, with gradient, for input gradients of aug.nudge "
        "(off in this pass)",
        "  2. online: anchor, positive, with gradient, for the objective",
        "  3. ema: positive, without gradient, for negatives.ring",
        "  in chunks of 16; those with gradient run twice (gradient caching)",
        "data flow:",
        "  positive -> loss.infonce (in-batch: target)",
        "  negatives.ring (positive by branch ema) -> loss.infonce",
        "  aug.nudge -> positive",
        "notes:",
        "  branch.ema added with its defaults, for negatives.ring.branch",
        "  negatives.ring: keeps 128 vectors, 2 batches",
    ]


def test_the_plan_for_machines_is_json(tmp_path: Path) -> None:
    path = recipe(tmp_path, '[params]\nalpha = 0.5\n[[loss]]\nuse = "infonce"\nweight = "alpha"')
    made = compose(path, "inference.pool=mean", kinds={"negatives": ["ring"]})
    plan = json.loads(json.dumps(plan_dict(made)))
    assert plan["recipe"] == "mine"
    assert plan["params"] == {"alpha": 0.5}
    assert [part["name"] for part in plan["parts"]][0] == "cls"
    assert plan["passes"][1] == {
        "branch": "ema", "views": ["positive"], "gradient": False, "why": "negatives.ring",
    }  # fmt: skip
    assert plan["inference_pool"] == "mean"
    assert plan["facts"]["columns"] == ["text"]
    assert plan["settings"]["negatives"][0]["size"] == 64
    assert any("params: alpha = 0.5" in line for line in plan_lines(made))


# -- what follows from the run --------------------------------------------------------------------


def _sized(options: Any, facts: RunInfo) -> Any:
    decay = Schedule.parse(facts.branches[options.branch]["decay"]).start
    if facts.views["positive"]["column"] != "text" or decay >= 1:
        raise ValueError(f"no size for a decay of {decay:g}")
    return options.model_copy(update={"size": 3 * facts.batch_size})


def _with_ring(**changes: Any) -> Registry:
    registry = made_up_registry()
    ring = registry.find("negatives", "ring")
    others = [found for found in registry.parts() if found.spec.name != "ring"]
    return Registry([*others, replace(ring, spec=replace(ring.spec, **changes))])


def test_a_part_derives_options_from_the_run_before_its_notes() -> None:
    registry = _with_ring(
        resolve_options=_sized, plan_warnings=lambda options, facts: [f"size {options.size}"]
    )
    made = resolve(registry, kinds={"negatives": ["ring"]}, facts=BERT)
    (ring,) = made.of("negatives")
    assert (
        getattr(ring.options, "size", None) == 192
        and as_recipe(made)["negatives"][0]["size"] == 192
    )
    assert "negatives.ring: keeps 192 vectors, 3 batches" in made.notes
    assert "negatives.ring: size 192" in made.warnings
    assert plan_dict(made)["facts"]["branches"]["ema"]["decay"] == 0.995
    json.dumps(plan_dict(made))


def test_what_cannot_be_derived_is_refused_in_one_line() -> None:
    with pytest.raises(CseError) as caught:
        resolve(
            _with_ring(resolve_options=_sized),
            kinds={"negatives": ["ring"]},
            sets=["branch.ema.decay=1"],
            facts=BERT,
        )
    assert caught.value.line() == "negatives.ring: no size for a decay of 1"


def test_a_view_that_a_store_makes_is_encoded_by_the_stores_branch() -> None:
    registry = _with_ring(provides=("view:kept",))
    made = resolve(registry, kinds={"negatives": ["ring"]}, facts=BERT)
    kept = made.view("kept")
    assert kept is not None and (kept.branch, kept.made_by) == ("ema", "negatives.ring")
    sets = ["views.kept.branch=online"]
    other = resolve(registry, kinds={"negatives": ["ring"]}, sets=sets, facts=BERT).view("kept")
    assert other is not None and other.branch == "online"


def test_a_store_may_want_several_views_of_its_branch() -> None:
    registry = _with_ring(encodes=lambda options: ("anchor", options.view))
    made = resolve(registry, kinds={"negatives": ["ring"]}, facts=BERT)
    last = made.passes[-1]
    assert (last.branch, last.views, last.gradient) == ("ema", ("anchor", "positive"), False)
    assert last.why == "negatives.ring"
    assert "negatives.ring (anchor, positive by branch ema) -> loss.infonce" in feeds(made)
