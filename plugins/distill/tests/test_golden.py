"""sentence-transformers' own code gave these numbers; the losses give the same."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.types import Batch, Embeddings, StepContext
from tests.shared import compare, golden, tensor

BOUND = 1e-9


def cases(implementation: str) -> list[dict[str, Any]]:
    found = golden("goldB")["distillation"]["cases"]
    return [case for case in found if case["implementation"] == implementation]


def check(
    part: Any, batch: Batch, ctx: StepContext, case: Mapping[str, Any], names: Mapping[str, str]
) -> None:
    """Compare the value, and the gradients of views by their names in the file."""
    value = part(batch, batch.targets["positive"], ctx.negatives(batch, part.options), ctx).value
    leaves = {name: batch.views[view]["sentence"].vectors for view, name in names.items()}
    compare(value, leaves, case, BOUND)


def teacher(vectors: Tensor) -> Any:
    owner = torch.arange(len(vectors))
    rows = Embeddings(vectors, owner, torch.zeros_like(owner), torch.ones_like(owner))
    return lambda view, branch: {"sentence": rows}


def test_vectors() -> None:
    (case,) = cases("MSELoss")
    student = tensor(case["student_1"]).requires_grad_(True)
    batch = make_batch({"anchor": student, "positive": tensor(case["teacher"])})
    ctx = make_context(batch, vectors=teacher(tensor(case["teacher"])))
    part = make_part("loss", "mse", sides="anchor")
    check(part, batch, ctx, case, {"anchor": "student_1"})


def listed(case: Mapping[str, Any]) -> tuple[Batch, tuple[str, ...]]:
    names = ["anchor", "positive", *(name for name in case if name.startswith("negative"))]
    vectors = {name: tensor(case[name]).requires_grad_(True) for name in names}
    roles: Any = {name: name.partition("_")[0] for name in names if name != "anchor"}
    return make_batch(vectors, views=roles), tuple(names[2:])


def with_scores(batch: Batch, columns: Sequence[str], scores: Tensor) -> StepContext:
    """Return a context whose columns have scores in float64."""
    values = dict(zip(columns, scores.unbind(dim=1), strict=True))
    return make_context(batch).replace(values=values.__getitem__)


def test_margins() -> None:
    """Labels are margins, or the scores of a positive and two negatives."""
    one, two = cases("MarginMSELoss")
    for case, columns in ((one, ("m",)), (two, ("p", "n", "o"))):
        batch, views = listed(case)
        labels = tensor(case["labels"]).reshape(len(batch.rows), -1)
        ctx = with_scores(batch, columns, labels)
        part = make_part("loss", "margin-mse", scores=columns, views=views)
        check(part, batch, ctx, case, {name: name for name in ("anchor", "positive", *views)})


def test_distributions() -> None:
    """Of two candidates with temperature 1, and of four with temperature 2."""
    found = cases("DistillKLDivLoss")
    assert len(found) == 2
    for case in found:
        batch, views = listed(case)
        scores = tensor(case["teacher_scores"])
        columns = tuple(f"c{number}" for number in range(scores.shape[1]))
        ctx = with_scores(batch, columns, scores)
        warm = case["temperatures"].get("temperature", 1.0)
        part = make_part("loss", "kl", scores=columns, views=views, temperature=warm)
        check(part, batch, ctx, case, {name: name for name in ("anchor", "positive", *views)})
