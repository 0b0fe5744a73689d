"""The authors' code gave these numbers in fp64 (``source`` in golden.json); ours are the same."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_redundancy.expander import Expander
from cse_redundancy.options import ExpanderOptions, SigregOptions
from cse_redundancy.sigreg import epps_pulley
from cse_testkit import make_batch, make_context, make_part, make_setup
from torch import Tensor

from cse_core.errors import CseError
from cse_core.types import Batch, Positives, StepContext
from tests.shared import compare, tensor

BOUND = 1e-9
CASES = {
    case["name"]: case
    for case in json.loads((Path(__file__).parent / "golden.json").read_text())["cases"]
}


def leaves(case: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: tensor(case[name]).requires_grad_(True) for name in ("anchor", "positive")}


def value(part: Any, batch: Batch, ctx: StepContext | None = None) -> Tensor:
    ctx = ctx or make_context(batch)
    negatives = ctx.negatives(batch, part.options)
    found: Tensor = part(batch, batch.targets["positive"], negatives, ctx).value
    return found


@pytest.mark.parametrize("name", ["barlow-twins", "vicreg"])
def test_both_views(name: str) -> None:
    vectors = leaves(CASES[name])
    part = make_part("loss", name)
    compare(value(part, make_batch(vectors)), vectors, CASES[name], BOUND)


@pytest.mark.parametrize("name", ["barlow-twins", "vicreg"])
def test_a_target_network(name: str) -> None:
    """Both views behind the expander against both by the teacher, as UNSEE's code adds them."""
    case = CASES[f"unsee {name}"]
    vectors = leaves(case)
    expander = expander_of(case)
    batch = make_batch({name: expander.mapped(rows) for name, rows in vectors.items()})
    taught = {name: tensor(case[f"teacher_{name}"]) for name in vectors}
    views = make_batch(taught).views
    part = make_part("loss", name, teacher="ema", **({"affine": True} if "scale" in case else {}))
    if "scale" in case:
        part = part.double()
        part.scale.data, part.shift.data = tensor(case["scale"]), tensor(case["shift"])
    ctx = make_context(batch, vectors=lambda view, branch: views[view])
    compare(value(part, batch, ctx), vectors, case, BOUND)


def expander_of(case: Mapping[str, Any]) -> Expander:
    options = ExpanderOptions(blocks=2, wide=6, norms="first")
    made = Expander(options, make_setup(dimension=4)).double()
    for name, values in case["expander"].items():
        block, _, place, kind = name.split(".")
        here = {"0": 0, "1": 1, "3": 3, "5": 6}[place]  # theirs has nothing for the second norm
        kind = {"weight": "scale", "bias": "shift"}[kind] if here == 1 else kind
        weight = getattr(made.blocks[int(block)][here], kind)  # type: ignore[index]
        if weight is None:  # a bias that the next norm takes away
            assert (here, kind) == (0, "bias") or (block, here, kind) == ("0", 6, "bias")
        else:
            weight.data = tensor(values)
    return made


def test_sigreg_on_given_lines() -> None:
    case = CASES["sigreg"]
    vectors, lines = leaves(case), tensor(case["directions"])
    weights = torch.ones(6, 1, dtype=torch.float64)
    shapes = [epps_pulley(rows @ lines, weights, 3.0, 17).mean() for rows in vectors.values()]
    apart = ((vectors["anchor"] - vectors["positive"]) / 2).square().mean()
    compare(0.98 * apart + 0.02 * torch.stack(shapes).mean(), vectors, case, BOUND)
    assert SigregOptions().share == 0.02


def test_a_teacher_of_another_dimension() -> None:
    batch = make_batch(dimension=6)
    views = make_batch(dimension=4).views
    ctx = make_context(batch, vectors=lambda view, branch: views[view])
    part = make_part("loss", "vicreg", teacher="ema")
    with pytest.raises(CseError, match=r"ema has vectors of 4 dimensions, the views of 6"):
        value(part, batch, ctx)


@pytest.mark.parametrize("name", ["barlow-twins", "vicreg", "sigreg"])
def test_weights_choose_among_positives(name: str) -> None:
    """Of three positives with one weight each, the loss is that of the one that has the weight."""
    batch, part = make_batch(sentences=5), make_part("loss", name)
    one = batch.targets["positive"].vectors
    others = torch.randn(5, 2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    place = torch.tensor([0, 2, 1, 2, 0])
    three = torch.cat([one, others], dim=1)
    three = torch.stack([torch.roll(row, int(p), 0) for row, p in zip(three, place, strict=True)])
    weights = torch.nn.functional.one_hot(place, 3).double() * 0.7
    ctx = make_context(batch)
    given = (ctx.negatives(batch, part.options), ctx)
    found = part(batch, Positives(three, weights), *given).value
    assert torch.allclose(found, part(batch, Positives(one), *given).value, rtol=0, atol=1e-12)


def test_a_teacher_is_joined_by_key() -> None:
    batch, views = make_batch(), make_batch(seed=1).views
    order = torch.tensor([2, 0, 3, 1])
    moved = {name: {"sentence": of["sentence"].take(order)} for name, of in views.items()}
    part = make_part("loss", "vicreg", teacher="ema")
    values = [value(part, batch, make_context(batch, vectors=lambda view, _, of=of: of[view]))
              for of in (views, moved)]  # fmt: skip
    assert torch.allclose(*values, rtol=0, atol=1e-12)
