"""The kit over IFCL's distribution, parts and recipes, and what the plan says of its parts."""

import math
from pathlib import Path
from typing import Any

from cse_testkit import LossSuite, MetricSuite, compose, part_suites, recipe_suites, tiny_corpus

from cse_core.types import Batch, Negatives, Positives, StepContext
from plugins.ifcl.tests.test_equations import exponential, slow_terms
from tests.fixtures.methods import planned

LEXICON = str(Path(__file__).parent / "lexicon.tsv")


def slow_twins(
    self: Any,
    batch: Batch,
    targets: Positives,
    negatives: Negatives,
    ctx: StepContext,
    options: Any,
) -> float:
    """Return Eqs. 5 to 9 in loops, with masks and weights as the core defines them."""
    weights = [each.start for each in (options.identical, options.fraternal, options.margin)]
    terms = slow_terms(batch, [], options.temperature)
    terms["identical"] = []
    for i, anchor in enumerate(batch.anchors):
        twin = batch.views["identical"]["sentence"].vectors[i]
        mass = own = exponential(anchor, twin, options.temperature)
        for n, negative in enumerate(negatives.vectors):
            if not bool(negatives.mask[i, n]):
                weight = math.exp(float(negatives.log_weights[i, n]))
                mass += weight * exponential(anchor, negative, options.temperature)
        terms["identical"].append(-math.log(own / mass))
    both = zip(weights, ("identical", "fraternal", "margin"), strict=True)
    return sum(weight * sum(terms[name]) for weight, name in both) / len(batch.anchors)


SUITES = recipe_suites("cse-ifcl", Path(__file__).parent / "settings")
globals().update(SUITES)
globals().update(
    part_suites(
        "cse-ifcl",
        {
            "aug.fusion": {
                "variants": (
                    {
                        "at": "word_embeddings",
                        "epsilon": 0.5,
                        "unmatched": "zero",
                        "special": "pad",
                    },
                )
            },
            "aug.random-deletion": {"options": {"rate": 0.3}},
            "aug.synonym": {"options": {"lexicon": LEXICON, "rate": 0.5}},
            "aug.random-insertion": {
                "options": {"lexicon": LEXICON},
                "variants": ({"unit": "character"},),
            },
            "negatives.hippocampus": {
                "variants": ({"batches": 2, "forgetting": 0.0, "view": "positive"},)
            },
            "loss.twins": {
                "options": {"temperature": 0.3, "identical": 0.7, "fraternal": 1.3, "margin": 0.4},
                "slow": slow_twins,
            },
        },
    )
)


class TestMutualInformationOfGoodPairs(MetricSuite):
    part = ("metric", "mutual-information")
    options = {"gold": 4.0, "temperature": 0.5}


class TestTwinsSummedBothWays(LossSuite):
    part = ("loss", "twins")
    options = {"reduction": "sum", "directions": "both", "in_batch": "both"}


class TestTwinsByDotProduct(LossSuite):
    part = ("loss", "twins")
    options = {"similarity": "dot", "margin": 0.0, "temperature": 2.0}


def test_the_parts_defaults_are_the_recipes() -> None:
    """A part alone is as in the recipe, where no second model is named."""
    recipe = SUITES["TestRecipeIfcl"]().resolved("starter")
    parts = [part for part in recipe.parts if part.distribution == "cse-ifcl"]
    assert {part.use for part in parts} == {"fusion", "hippocampus", "twins"}
    for part in parts:
        assert part.options == type(part.options)(), part.path


def test_a_vocabulary_not_made_for_the_other_language_is_warned_of() -> None:
    columns = ("text", "fraternal")
    for encoder, name, sets, warned in (
        ("roberta-base", "roberta-base", (), True),
        ("roberta-large", "xlm-roberta-large", (), False),
        ("bert-base", "bert-base-uncased", (), False),
        ("bert-base", "bert-base-uncased", ("aug.fusion.model=none",), True),
        ("bert-base", "bert-base-multilingual-uncased", ("aug.fusion.model=none",), False),
        ("starter", "starter", (), False),
    ):
        for recipe in ("ifcl", "ifcl-zh"):
            warnings = planned(recipe, *sets, encoder=encoder, model=name, columns=columns).warnings
            start = "aug.fusion: column fraternal is read by"
            found = [each for each in warnings if each.startswith(start)]
            assert bool(found) == warned
            assert not warned or name in found[0]
    made = planned("ifcl", columns=columns, model="all-MiniLM-L6-v2", hidden=384, embedding=384)
    assert any("all-MiniLM-L6-v2 itself" in each for each in made.warnings)


def test_the_plan_says_which_twins_a_store_holds() -> None:
    corpus, kinds = tiny_corpus(columns=("fraternal",)), {"negatives": ["queue"]}
    for view in ("positive", "anchor"):
        sets = [f"negatives.queue.view={view}"]
        made = compose(recipe="ifcl", kinds=kinds, sets=sets, corpus=corpus)  # type: ignore[arg-type]
        printed = [note for note in made.notes if "the fraternal twins; the paper's queue" in note]
        assert len(printed) == (view == "positive")
        assert not printed or "--negatives.queue.view anchor" in printed[0]
    own = compose(recipe="ifcl", corpus=corpus)
    assert not [note for note in own.notes if "fraternal twins" in note]
