import json
from dataclasses import replace
from typing import Any

import pytest

from cse_cli.training.plan import data_flow, plan_dict
from cse_core.errors import CseError
from cse_core.records import Kind, LossSpec, MinerSpec, Record
from cse_core.registry.registry import Registered, Registry
from cse_core.run_info import RunInfo
from cse_core.schedule import Schedule
from cse_engine.compose.compose import resolve
from cse_engine.run.recipe_file import as_recipe
from tests.fixtures.methods import refusal
from tests.fixtures.parts import BERT, made, made_up_registry


def test_views_and_their_columns() -> None:
    views = made("--loss +margin --aug negate,nudge").views
    assert [(v.name, v.role, v.column, v.made_by, v.augmenters) for v in views] == [
        ("anchor", "anchor", "text", None, ()),
        ("positive", "positive", "text", None, ("aug.nudge",)),
        ("identical", "positive", "text", None, ()),
        ("soft_negative", "aux", None, "aug.negate", ("aug.negate",)),
    ]
    columns = ("text", "positive", "negative", "fraternal")
    for words, wanted in (
        ("", [("anchor", "anchor", "text"), ("positive", "positive", "positive")]),
        ("views.positive.column=text", [("positive", "positive", "text")]),
        ("views.negative.column=negative", [("negative", "negative", "negative")]),
        (
            "views.other.column=fraternal loss.infonce.target=other",
            [("other", "positive", "fraternal")],
        ),
        ("loss.infonce.target=fraternal", [("fraternal", "positive", "fraternal")]),
    ):
        found = [(v.name, v.role, v.column) for v in made(words, columns=columns).views]
        assert set(wanted) <= set(found), words
    assert len(made(columns=columns).views) == 2
    assert made("views.negative.column=negative", columns=columns).warnings == ()
    (line,) = made("views.positive.column=text", columns=columns[:2]).warnings
    assert line.endswith("--set views.positive.column=positive takes it in")


PASSES: tuple[tuple[str, list[str]], ...] = (
    ("", ["online: anchor positive, trained, for the objective"]),
    ("views.positive.branch=ema",
     ["online: anchor, trained, for the objective", "ema: positive, for the objective"]),
    ("views.positive.branch=twin",
     ["online: anchor, trained, for the objective", "twin: positive, trained, for the objective"]),
    # Fresh gradients cost a pass.
    ("--aug nudge",
     ["online: anchor positive, trained, for input gradients of aug.nudge (off in this pass)",
      "online: anchor positive, trained, for the objective"]),
    ("aug.nudge.gradient=previous --aug nudge",
     ["online: anchor positive, trained, for the objective"]),
    ("views.positive.branch=ema --aug nudge",
     ["online: anchor, trained, for input gradients of aug.nudge (off in this pass)",
      "online: anchor, trained, for the objective",
      "ema: positive, for input gradients of aug.nudge (off in this pass)",
      "ema: positive, for the objective"]),
    # What stores keep of another branch is one pass.
    ("negatives.two.view=anchor --negatives ring,ring:again,ring:two",
     ["online: anchor positive, trained, for the objective",
      "ema: positive anchor, for negatives.ring, negatives.again, negatives.two"]),
    ("negatives.ring.branch=none --negatives ring",
     ["online: anchor positive, trained, for the objective"]),
    ("views.positive.branch=ema --negatives ring",
     ["online: anchor, trained, for the objective", "ema: positive, for the objective"]),
    ("views.positive.branch=ema negatives.ring.view=anchor --negatives ring",
     ["online: anchor, trained, for the objective",
      "ema: positive anchor, for the objective, negatives.ring"]),
    ("views.positive.branch=ema negatives.ring.branch=online --negatives ring",
     ["online: anchor, trained, for the objective", "online: positive, for negatives.ring",
      "ema: positive, for the objective"]),
)  # fmt: skip
"""What is composed, and the encoder calls of a step."""


def test_one_pass_a_branch_and_those_that_parts_add() -> None:
    for words, wanted in PASSES:
        found = [
            f"{p.branch}: {' '.join(p.views)},{' trained,' * p.gradient} for {p.why}"
            for p in made(words).passes
        ]
        assert found == wanted, words


def test_feeds_say_who_feeds_whom() -> None:
    several = made(
        "loss.infonce.negatives=in-batch loss.infonce.in_batch=both loss.near.target=neighbours "
        "loss.near.negatives=[noise] loss.bare.negatives=stored --negatives ring,noise "
        "--positives near --loss infonce,infonce:near,infonce:bare"
    )
    assert tuple(data_flow(several)) == (
        "positive -> loss.infonce (in-batch: both)",
        "positives.near (group neighbours) -> loss.near (in-batch: target)",
        "negatives.noise (positive by branch online) -> loss.near",
        "positive -> loss.bare (no in-batch negatives)",
        "negatives.ring (positive by branch ema) -> loss.bare",
        "negatives.noise (positive by branch online) -> loss.bare",
        "branch.frozen -> negatives.noise",
    )

    assert tuple(data_flow(made("--loss margin --aug negate"))[:2]) == (
        "positive -> loss.margin (in-batch: target)",
        "identical -> loss.margin (view)",
    ), "the views that a loss reads beside its target"


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
    sized = resolve(registry, kinds={"negatives": ["ring"]}, facts=BERT)
    assert as_recipe(sized)["negatives"][0]["size"] == 192
    assert "negatives.ring: keeps 192 vectors, 3 batches" in sized.notes
    assert "negatives.ring: size 192" in sized.warnings
    plan = json.loads(json.dumps(plan_dict(sized)))
    assert plan["facts"]["branches"]["ema"]["decay"] == 0.995
    line = refusal(
        resolve, _with_ring(resolve_options=_sized), kinds={"negatives": ["ring"]},
        sets=["branch.ema.decay=1"], facts=BERT,
    )  # fmt: skip
    assert line == "negatives.ring: no size for a decay of 1"
    ring = made("negatives.ring.size=96 --negatives ring")
    assert "negatives.ring: keeps 96 vectors, 1.5 batches" in ring.notes


def test_views_of_a_store() -> None:
    registry = _with_ring(provides=("view:kept",))
    kept = resolve(registry, kinds={"negatives": ["ring"]}, facts=BERT).view("kept")
    assert kept is not None and (kept.branch, kept.made_by) == ("ema", "negatives.ring")
    sets = ["views.kept.branch=online"]
    other = resolve(registry, kinds={"negatives": ["ring"]}, sets=sets, facts=BERT).view("kept")
    assert other is not None and other.branch == "online"
    registry = _with_ring(encodes=lambda options: ("anchor", options.view))
    several = resolve(registry, kinds={"negatives": ["ring"]}, facts=BERT)
    last = several.passes[-1]
    assert (last.branch, last.views, last.gradient) == ("ema", ("anchor", "positive"), False)
    assert last.why == "negatives.ring"
    assert "negatives.ring (anchor, positive by branch ema) -> loss.infonce" in data_flow(several)


def contract_registry() -> Registry:
    """Return the made-up parts, and some that say what they read, encode and bring."""
    own: list[Record] = [
        LossSpec(
            name="graded", summary="x", factory="a:B", contrastive=False, requires=("pairs",),
            reads={"score": "float"},
        ),
        LossSpec(
            name="teacher", summary="x", factory="a:B", contrastive=False,
            encodes=("positive", ("anchor", "frozen")), requires=("branch:frozen",),
        ),
        LossSpec(
            name="ordinal", summary="x", factory="a:B", contrastive=False,
            reads={"score": "int"},
        ),
        LossSpec(
            name="triplet", summary="x", factory="a:B", contrastive=False,
            requires=("column:negative",),
        ),
        MinerSpec(
            name="ance", summary="x", factory="a:B", rounds=True, columns=("negative",),
            provides=("pairs",),
        ),
    ]  # fmt: skip
    parts = [Registered(record, "cse-own", "1", "cse-own:it") for record in own]
    base = made_up_registry()
    everything = [part for held in base._parts.values() for part in held]
    return Registry([*everything, *parts])


def test_a_grade_and_a_teacher() -> None:
    registry, there = contract_registry(), ("text", "positive", "score")
    facts = replace(BERT, columns=there)
    run = resolve(registry, kinds={"loss": ["graded"]}, facts=facts)
    assert run.needed_columns.types == {"score": "float"}
    assert set(run.needed_columns.required) == {"positive", "score"}
    sets = ["views.positive.column=text"]
    with pytest.raises(CseError, match=r"--set views\.positive\.column=positive"):
        resolve(registry, kinds={"loss": ["graded"]}, sets=sets, facts=facts)
    with pytest.raises(CseError, match=r"loss\.ordinal: reads int, and loss\.graded reads float"):
        resolve(registry, kinds={"loss": ["graded", "+ordinal"]}, facts=facts)
    with pytest.raises(CseError, match=r"needs the column 'score'"):
        resolve(registry, kinds={"loss": ["graded"]}, facts=replace(BERT, columns=there[:2]))
    run = resolve(contract_registry(), kinds={"loss": ["teacher"]}, facts=BERT)
    assert [(each.branch, each.views, each.why) for each in run.passes] == [
        ("online", ("anchor", "positive"), "the objective"),
        ("frozen", ("anchor",), "loss.teacher"),
    ]
    assert "positive by branch online, anchor by branch frozen -> loss.teacher" in data_flow(run)


def test_what_a_round_brings_counts() -> None:
    registry = contract_registry()
    kinds: dict[Kind, list[str]] = {"loss": ["triplet"]}
    with pytest.raises(CseError, match="needs the column 'negative'"):
        resolve(registry, kinds=kinds, facts=BERT)
    run = resolve(registry, kinds={**kinds, "positives": ["ance"]}, facts=BERT)
    assert [(v.name, v.role, v.column) for v in run.views] == [
        ("anchor", "anchor", "text"),
        ("positive", "positive", "positive"),
        ("negative", "negative", "negative"),
    ]
    assert run.needed_columns.required == ()
    hard = replace(BERT, columns=("text", "negative"))
    with pytest.raises(CseError, match=r"--set views\.negative\.column=negative"):
        resolve(registry, kinds=kinds, facts=hard)
