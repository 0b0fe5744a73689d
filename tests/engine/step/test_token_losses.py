"""Losses on token states, transforms, losses of several sizes: one process, chunks, processes."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor
from torch.nn.functional import cross_entropy

from cse_core.errors import CseError, PartError
from cse_core.functional import hashed_uniform
from cse_core.options import LossOptions
from cse_core.types import Negatives, TokenSums
from cse_engine.step.objective import _of_sizes
from cse_engine.step.part_calls import PartCalls
from tests.engine.step.test_processes import as_one, close
from tests.fixtures.processes import TwoProcesses
from tests.fixtures.small_parts import Centre, Guess
from tests.fixtures.tiny import Bench
from tests.shared import golden, tensor

TOKENS = """
[[aug]]
use = "third"
[[pool]]
use = "cls"
[[loss]]
use = "guess"
weight = 0.5
"""
BOTH = TOKENS + '[[loss]]\nuse = "infonce"\n[[transform]]\nuse = "centre"\n'
BATCHES = [[0, 1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12, 13]]
QUIET = ("model.dropout=0", "train.lr=1e-4")


def test_chunks_and_processes_give_the_losses_and_weights_of_one_call(
    encoder: str, folder: Path, two_processes: TwoProcesses
) -> None:
    for recipe in (TOKENS, BOTH):
        both = partial(as_one, two_processes, folder, encoder, recipe, batches=BATCHES, rtol=1e-6)
        (expected, losses), _ = both(*QUIET)
        (found, numbers), _ = both(*QUIET, "train.chunk_size=2")
        assert len({*losses}) == 3
        np.testing.assert_allclose(numbers, losses, rtol=1e-6)
        close(found, expected)


def test_the_value_is_the_mean_over_all_labelled_tokens(encoder: str, folder: Path) -> None:
    """Against a loop over rows, whose gradients are those of the step."""
    bench = Bench(encoder, folder, TOKENS, *QUIET)
    loss, seen = bench.part("loss.guess"), bench.seen()
    head = [value.detach().clone() for value in loss.guess.parameters()]
    result = bench.step(0, [3, 4, 5, 6])
    [(views, *_)] = seen["loss.guess", "sums"]
    view = views["anchor"]
    weight, bias = (value.requires_grad_() for value in head)
    terms: list[Tensor] = []
    for row in range(view.tokens.rows):
        for place in range(int(view.tokens.offsets[row]), int(view.tokens.offsets[row + 1])):
            if int(view.tokens.labels[place]) >= 0:
                state = (view.states[place] + view.vectors[row]).detach()
                wanted = view.tokens.labels[place : place + 1]
                terms.append(cross_entropy((weight @ state + bias)[None], wanted))
    value = torch.stack(terms).mean()
    assert float(result.parts["guess.loss"]) == pytest.approx(float(value), rel=1e-5)
    assert float(result.parts["guess.most"]) == pytest.approx(float(value), rel=1e-5)
    assert float(result.loss) == pytest.approx(0.5 * float(value), rel=1e-5)
    gradient = torch.autograd.grad(value, weight)[0] * 0.5
    torch.testing.assert_close(bench.gradients["loss.guess.guess.weight"], gradient)
    assert view.place.tolist() == [0, 1, 2, 3]


def test_it_is_added_to_other_losses_with_its_weight(encoder: str, folder: Path) -> None:
    result = Bench(encoder, folder, BOTH, *QUIET).step()
    summed = result.parts["infonce.loss"] + 0.5 * result.parts["guess.loss"]
    assert float(result.loss) == pytest.approx(float(summed), rel=1e-6)


def test_a_batch_without_labels_leaves_every_weight_alone(encoder: str, folder: Path) -> None:
    bench = Bench(encoder, folder, TOKENS, *QUIET)
    bench.assembly.augmenters.clear()
    result = bench.step(0)
    assert float(result.loss) == 0
    assert not any(bool(gradient.any()) for gradient in bench.gradients.values())


def test_what_a_loss_on_token_states_promises(encoder: str, folder: Path) -> None:
    bench = Bench(encoder, folder, TOKENS, *QUIET)
    loss = bench.part("loss.guess")
    one = torch.ones(())
    wrong: tuple[tuple[Any, str], ...] = (
        (TokenSums(torch.ones(2), one), "promised a scalar tensor"),
        (TokenSums(one, one), "without gradient"),
        (TokenSums(one.clone().requires_grad_(), one.clone().requires_grad_()), "count with"),
        (one, "promised TokenSums"),
    )
    for returned, said in wrong:
        loss.__class__ = type("Wrong", (Guess,), {"sums": lambda *_, given=returned: given})
        with pytest.raises(PartError, match=said):
            bench.step(0)
    loss.__class__ = type("Asks", (Guess,), {"sums": lambda _, views, ctx: ctx.vectors("anchor")})
    with pytest.raises(TypeError):
        bench.step(0)


def test_views_of_a_loss_have_one_branch_that_is_trained(encoder: str, folder: Path) -> None:
    frozen = TOKENS + '[[branch]]\nuse = "frozen"\n[views.anchor]\nbranch = "frozen"\n'
    with pytest.raises(CseError, match="loss.guess: reads token states.*anchor by frozen"):
        Bench(encoder, folder, frozen, *QUIET)
    with pytest.raises(CseError, match=r"loss.guess: needs the labels 'anchor'.*--aug \+third"):
        Bench(encoder, folder, '[[loss]]\nuse = "guess"\n[[pool]]\nuse = "cls"\n', *QUIET)


def test_a_transform_sees_all_views_and_parts_see_vectors_before_it(
    encoder: str, folder: Path
) -> None:
    recipe = '[[pool]]\nuse = "cls"\n[[transform]]\nuse = "centre"\n[[loss]]\nuse = "infonce"\n'
    bench = Bench(encoder, folder, recipe, *QUIET)
    seen = bench.seen()
    bench.step(0, [0, 1, 2])
    [(before, _, after)] = seen["transform.centre", "__call__"]
    [(batch, _, _, ctx, _)] = seen["loss.infonce", "__call__"]
    assert set(before) == {"anchor", "positive"}
    mean = torch.cat([before[name].vectors for name in before]).mean(dim=0)
    torch.testing.assert_close(after["anchor"].vectors, before["anchor"].vectors - mean)
    assert torch.equal(batch.anchors, after["anchor"].vectors)
    asked = ctx.vectors("anchor", None)["sentence"]
    assert torch.equal(asked.vectors, before["anchor"].vectors.detach())
    wrong = {"__call__": lambda _, views, ctx: {"anchor": views["anchor"].take(slice(0, 1))}}
    bench.part("transform.centre").__class__ = type("Wrong", (Centre,), wrong)
    with pytest.raises(PartError, match=r"promised anchor \[3, 32\], returned \[1, 32\]"):
        bench.step(1, [0, 1, 2])


def test_sizes_are_those_of_the_published_matryoshka_loss() -> None:
    """The sum over sizes of the first numbers, weighted; gradients too."""
    cases = golden("goldB")["matryoshka"]["cases"]
    tried = 0
    for case in cases:
        if case["inner"] != "mnrl" or case["n_dims_per_step"] != -1:
            continue
        tried += 1
        given = {n: tensor(case[n]).requires_grad_() for n in ("anchor", "positive")}
        if "negative_1" in case:
            given["negative"] = tensor(case["negative_1"]).requires_grad_()
        roles: Any = {name: name for name in given if name != "anchor"}
        batch = make_batch(given, views=roles)
        options = LossOptions(dimensions=case["dims_used"], dimension_weights=case["weights_used"])
        ctx = make_context(batch)
        loss = make_part("loss", "infonce")
        calls = PartCalls()
        negatives: Negatives = ctx.negatives(batch, options)
        targets = batch.targets["positive"]
        found = _of_sizes(options, calls, loss, batch, targets, negatives, ctx)
        assert float(found.value.detach()) == pytest.approx(case["loss"], abs=1e-9)
        found.value.backward()
        for name, values in given.items():
            wanted = case["grad_negative_1" if name == "negative" else f"grad_{name}"]
            torch.testing.assert_close(values.grad, tensor(wanted), rtol=0, atol=1e-9)
    assert tried == 2


def test_sizes_are_checked(encoder: str, folder: Path) -> None:
    recipe = '[[pool]]\nuse = "scaled"\n[[loss]]\nuse = "infonce"\ndimensions = [8, 64]\n'
    with pytest.raises(CseError, match="loss.infonce.dimensions: is more than .*64"):
        Bench(encoder, folder, recipe, *QUIET)
    with pytest.raises(ValueError, match="1 dimension_weights for 2 dimensions"):
        LossOptions(dimensions=(8, 4), dimension_weights=(1.0,))


def test_hashed_draws_are_uniform_and_belong_to_their_keys() -> None:
    rows, places = torch.arange(40_000) // 20, torch.arange(40_000) % 20
    drawn = hashed_uniform(7, rows, places)
    assert 0 <= float(drawn.min()) and float(drawn.max()) < 1
    shares = torch.histc(drawn, 50, 0, 1) / len(drawn)
    assert float((shares - 0.02).abs().max()) < 0.004
    assert abs(float(torch.corrcoef(torch.stack([drawn[:-1], drawn[1:]]))[0, 1])) < 0.02
    order = torch.randperm(40_000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(hashed_uniform(7, rows[order], places[order]), drawn[order])
    assert float((hashed_uniform(8, rows, places) == drawn).float().mean()) < 0.001
