"""The authors' and sentence-transformers' own code gave these numbers; the losses give the same."""

from typing import Any

from cse_testkit import make_batch, make_context, make_part

from tests.shared import compare, golden, tensor

ROLES: Any = {"positive": "positive", "negative_1": "negative", "negative_2": "negative"}
BOUND = 1e-9


def given(case: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return vectors by view, and each view's name in the file."""
    names = {
        "anchor": "a" if "a" in case else "anchor",
        "positive": "b" if "b" in case else "positive",
    }
    names |= {name: name for name in case if name.startswith("negative")}
    return {view: tensor(case[name]).requires_grad_(True) for view, name in names.items()}, names


def check(part: str, case: dict[str, Any], temperature: float) -> None:
    vectors, names = given(case)
    batch = make_batch(vectors, views={name: ROLES[name] for name in vectors if name != "anchor"})
    triplets = case["labels"] is None
    options: Any = {"column": None, "own_negatives": True} if triplets else {}
    loss = make_part("loss", part, temperature=temperature, **options)
    ctx = make_context(batch, values={} if triplets else {"score": case["labels"]})
    value = loss(batch, batch.targets["positive"], ctx.negatives(batch, loss.options), ctx).value
    compare(value, {name: vectors[view] for view, name in names.items()}, case, BOUND)


def test_cosent() -> None:
    cases = golden("goldB")["cosent"]["cases"]
    assert len(cases) == 3
    for case in cases:
        check("cosent", case, 1 / case["scale"])


def test_angle_of_sentence_transformers() -> None:
    """Pairs, an odd number of dimensions, and texts with two negatives each."""
    cases = [c for c in golden("goldB")["angle"]["cases"] if "AnglELoss" in c["implementation"]]
    assert len(cases) == 3
    for case in cases:
        check("angle", case, 1 / case["scale"])


def test_angle_of_the_authors() -> None:
    """Their pooling ``mean`` divides the sum by the dimensions, as a temperature would."""
    (case,) = (c for c in golden("goldB")["angle"]["cases"] if "angle_loss" in c["implementation"])
    check("angle", case, len(case["a"][0]) / case["tau"])
