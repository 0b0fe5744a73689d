"""The community's code gave these numbers; the published variants give the same."""

from typing import Any

import torch
from cse_rankcse.teaching import published_list_mle
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.functional import similarity
from cse_core.types import Batch, StepContext
from tests.shared import compare, golden, tensor

BOUND = 1e-9


def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = golden("goldA")["rankcse"]["cases"]
    assert len(found) == 4
    return found


def of_file(case: dict[str, Any]) -> tuple[Batch, StepContext]:
    batch = make_batch({"anchor": leaf(case["z1"]), "positive": leaf(case["z2"])})
    taught = [
        make_batch({"anchor": tensor(each["z1"]), "positive": tensor(each["z2"])}).views
        for each in case["teachers"]
    ]
    return batch, make_context(batch, vectors=lambda view, branch: taught[int(branch or 0)][view])


def leaf(rows: Any) -> Tensor:
    return tensor(rows).requires_grad_(True)


def check(value: Tensor, wanted: dict[str, Any], batch: Batch) -> None:
    names = {"z1": "anchor", "z2": "positive"}
    leaves = {name: batch.views[view]["sentence"].vectors for name, view in names.items()}
    compare(value, leaves, {**wanted, "loss": wanted["value"]}, BOUND)


def value(name: str, batch: Batch, ctx: StepContext, **options: Any) -> Tensor:
    part = make_part("loss", name, **options)
    given = (batch.targets["positive"], ctx.negatives(batch, part.options), ctx)
    found: Tensor = part(batch, *given).value
    return found


def test_infonce_and_both_consistencies() -> None:
    for case in cases():
        batch, ctx = of_file(case)
        warm, parts = case["temp"], case["parts"]
        check(value("infonce", batch, ctx, temperature=warm), parts["infonce"], batch)
        for variant, name in (
            ("published", "consistency"),
            ("paper", "consistency_of_the_paper_own_formula_mean"),
        ):
            found = value("ranking-consistency", batch, ctx, temperature=warm, variant=variant)
            check(found, parts[name], batch)


def test_lists_of_one_and_two_teachers() -> None:
    """The public code shares the temperature tau2 of the teachers, and leaves ListNet's own out."""
    for case in cases()[:3]:
        batch, ctx = of_file(case)
        teachers = tuple(str(number) for number in range(len(case["teachers"])))
        weights = (case["alpha"], 1 - case["alpha"])[: len(teachers)] if len(teachers) > 1 else ()
        options: Any = {
            "teachers": teachers,
            "weights": weights,
            "temperature": case["temp"],
            "teacher_temperatures": (case["tau2"],),
        }
        if case["distillation_loss"] == "listnet":
            found = value("list-net", batch, ctx, own=False, **options)
        else:
            found = value("list-mle", batch, ctx, variant="published", **options)
        check(case["gamma"] * found, case["parts"]["distillation"], batch)


def test_ties_and_entries_that_are_left_out() -> None:
    """Two entries of exactly -1, and ties in the order of the file's permutation."""
    case = cases()[3]
    batch, _ = of_file(case)
    student = similarity(batch.anchors, batch.targets["positive"].vectors[:, 0]) / case["temp"]
    teacher = tensor(case["teacher_similarities_over_tau2"])
    order = torch.tensor(case["permutation_before_sorting"])
    assert int((teacher == -1).sum()) == 2
    student, teacher = student[:, order], teacher[:, order]
    terms = published_list_mle(student, teacher, torch.ones_like(teacher, dtype=torch.bool))
    check(case["gamma"] * terms.mean(), case["parts"]["distillation"], batch)
