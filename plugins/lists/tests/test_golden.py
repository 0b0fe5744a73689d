"""The authors' own functions gave these numbers, in float64; the parts give the same."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_lists.ranked import by_order
from cse_testkit import make_batch, make_context, make_part

from cse_core.types import SLOTS_PER_TEXT, Embeddings, Negatives, Positives
from tests.shared import compare, tensor

BOUND = 1e-9


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(__file__).with_name(name).read_text())["cases"]
    assert len(found) == 2
    return found


@pytest.mark.parametrize("case", cases("gcse.json"), ids=lambda case: case["name"])
def test_gaussian_decay(case: dict[str, Any]) -> None:
    """Logits above those of the frozen model, below, and far below."""
    names = ("anchor", "positive", "negative")
    leaves = {name: tensor(case[name]).requires_grad_(True) for name in names}
    roles: Any = {"positive": "positive", "negative": "negative"}
    batch = make_batch(leaves, views=roles)
    frozen = make_batch({name: tensor(case["frozen"][name]) for name in names}, views=roles)
    ctx = make_context(batch, vectors=lambda view, branch: frozen.views[view])
    loss = make_part("loss", "infonce", temperature=case["temperature"])
    decay = make_part("negatives", "gaussian-decay", width=case["alpha"])
    given = ctx.negatives(batch, loss.options)
    weighed = decay.weigh(given, batch, ctx)
    compare(loss(batch, batch.targets["positive"], weighed, ctx).value, leaves, case, BOUND)
    with pytest.raises(AssertionError):
        compare(loss(batch, batch.targets["positive"], given, ctx).value, leaves, case, BOUND)


@pytest.mark.parametrize("case", cases("syncse.json"), ids=lambda case: case["name"])
def test_syncse(case: dict[str, Any]) -> None:
    """Its recipe's loss with a hard negative of each text."""
    leaves = {name: tensor(case[name]).requires_grad_(True)
              for name in ("anchor", "positive", "negative")}  # fmt: skip
    batch = make_batch(leaves, views={"positive": "positive", "negative": "negative"})
    ctx, loss = make_context(batch), make_part("loss", "infonce", temperature=case["temperature"])
    given = batch.targets["positive"], ctx.negatives(batch, loss.options), ctx
    compare(loss(batch, *given).value, leaves, case, BOUND)


def test_ranked_sentences() -> None:
    """Each list in a batch of its own, as in the code; both in one batch give their mean."""
    found, lists = [], []
    for case in cases("ranked.json"):
        sentences, teacher = tensor(case["sentences"]).requires_grad_(True), tensor(case["teacher"])
        within = torch.nn.functional.normalize(teacher, dim=1)
        logits = (within @ within.T).unsqueeze(0) / case["teacher_temperature"]
        there = torch.ones(1, len(teacher), dtype=torch.bool)
        torch.testing.assert_close(by_order(logits, there)[0], tensor(case["moved"]))
        value = ranked([sentences], [teacher], case["omega"])
        compare(value, {"sentences": sentences}, case, BOUND)
        lists.append((sentences, teacher))
        found.append([float(ranked([s.detach()], [t], 0.5)) for s, t in lists])
    both = ranked([s.detach() for s, _ in lists], [t for _, t in lists], 0.5)
    assert float(both) == pytest.approx(sum(found[-1]) / 2, abs=BOUND)


def ranked(lists: list[torch.Tensor], teachers: list[torch.Tensor], omega: float) -> torch.Tensor:
    """Return the loss of lists, whose first sentences are the texts, in one batch."""
    most = max(map(len, lists)) - 1
    size = lists[0].shape[1]
    empty = torch.zeros(len(lists), most, size, dtype=torch.float64)
    vectors = torch.stack([torch.cat([s[1:], e[len(s) - 1 :]]) for s, e in
                           zip(lists, empty, strict=True)])  # fmt: skip
    weights = tensor([[float(n < len(s) - 1) for n in range(most)] for s in lists])
    batch = make_batch({"anchor": torch.stack([s[0] for s in lists]), "positive": vectors[:, 0]})
    targets = Positives(vectors, weights)
    batch = replace(batch, targets={"positive": targets})
    rows = {}
    for view, parts in (("anchor", [t[:1] for t in teachers]),
                        ("positive", [t[1:] for t in teachers])):  # fmt: skip
        owner = torch.cat([torch.full((len(p),), n) for n, p in enumerate(parts)])
        slot = torch.cat([torch.arange(len(p)) for p in parts]) * SLOTS_PER_TEXT
        rows[view] = {"sentence": Embeddings(torch.cat(parts), owner, slot, torch.ones_like(slot))}
    ctx = make_context(batch, vectors=lambda view, branch: rows[view])
    part = make_part("loss", "ranked-sentences", omega=omega)
    none = Negatives.of(torch.zeros(0, size), len(lists), name="none")
    value: torch.Tensor = part(batch, targets, none, ctx).value
    return value
