"""The kit over DCLR's recipe, and what the plan says of its parts."""

from __future__ import annotations

from pathlib import Path

from cse_dclr.options import NoiseOptions
from cse_testkit import compose, recipe_suites

BOTH_VIEWS = "negatives.instance-weights.view=positive"


globals().update(recipe_suites("cse-dclr", Path(__file__).parent / "settings"))


def test_the_defaults_are_those_of_the_published_code() -> None:
    noise = NoiseOptions()
    assert (noise.steps, noise.step_size, noise.deviation) == (4, 1e-3, 1.0)  # models.py, pgd


def test_the_second_encoder_has_a_pass_for_the_views_that_it_judges() -> None:
    one, two = (compose(recipe="dclr", sets=sets) for sets in ([], [BOTH_VIEWS]))
    assert [(each.branch, each.views, each.gradient) for each in one.passes] == [
        ("online", ("anchor", "positive"), True),
        ("frozen", ("anchor",), False),
    ]
    assert two.passes[1].views == ("anchor", "positive")
    (note,) = (note for note in two.notes if "one pass less" in note)
    assert "view = anchor" in note
    other = compose(recipe="dclr", sets=[BOTH_VIEWS, "branch.frozen.mode=train"])
    assert not any("one pass less" in note for note in other.notes)


def test_the_plan_warns_of_a_second_encoder_that_was_never_trained() -> None:
    sets = ["negatives.instance-weights.center=false"]
    (line,) = compose(recipe="dclr", sets=sets).warnings
    assert "center = true" in line and "removed" in line
    assert not compose(recipe="dclr").warnings
