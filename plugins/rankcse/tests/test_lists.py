"""Several teachers, weights, ties and lists with holes; in a run, and what is refused."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_rankcse.lists import lists
from cse_rankcse.options import ListMleOptions, TaughtOptions
from cse_rankcse.teaching import list_mle, published_list_mle
from cse_testkit import (
    compose,
    make_batch,
    make_context,
    make_part,
    run_steps,
    shared_encoder,
    tiny_corpus,
)

from cse_core.types import Batch, Positives, StepContext
from tests.fixtures.methods import refusal

WIDE, OTHER = str(shared_encoder(hidden=48)), str(shared_encoder(family="electra"))


def taught(batch: Batch, *teachers: Batch) -> StepContext:
    return make_context(batch, vectors=lambda view, branch: teachers[int(branch or 0)].views[view])


def test_teachers_are_summed_with_their_weights_and_temperatures() -> None:
    """They have other dimensions than the model, and than each other."""
    batch = make_batch(sentences=3)
    teachers = [make_batch(sentences=3, dimension=size, seed=size) for size in (5, 12)]
    ctx, targets = taught(batch, *teachers), batch.targets["positive"]
    options = TaughtOptions(
        teachers=("0", "1"), weights=(0.3, 0.9), teacher_temperatures=(0.1, 0.5), temperature=2.0
    )
    student, teacher, seen = lists(batch, targets, ctx, options)
    assert bool(seen.all())
    for a in range(3):
        for b in range(3):
            close = torch.cosine_similarity(batch.anchors[a], targets.vectors[b, 0], dim=0) / 2
            assert float(student[a, b]) == pytest.approx(float(close))
            total = 0.0
            for each, weight, warm in zip(teachers, (0.3, 0.9), (0.1, 0.5), strict=True):
                one = each.anchors[a]
                other = each.targets["positive"].vectors[b, 0]
                total += weight / warm * float(torch.cosine_similarity(one, other, dim=0))
            assert float(teacher[a, b]) == pytest.approx(total)
    alone = lists(batch, targets, ctx, options.model_copy(update={"teacher_views": "anchor"}))[1]
    same = [make_batch({"anchor": t.anchors, "positive": t.anchors}) for t in teachers]
    assert torch.equal(alone, lists(batch, targets, taught(batch, *same), options)[1])
    even = TaughtOptions(teachers=("0", "1"), teacher_temperatures=(0.1,))
    halves = replace_weights(even, (0.5, 0.5))
    assert torch.equal(lists(batch, targets, ctx, even)[1], lists(batch, targets, ctx, halves)[1])


def replace_weights(options: TaughtOptions, weights: tuple[float, ...]) -> TaughtOptions:
    return options.model_copy(update={"weights": weights})


def test_ties_keep_the_order_of_the_batch() -> None:
    student = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    teacher, seen = torch.zeros(1, 2, dtype=torch.float64), torch.ones(1, 2, dtype=torch.bool)
    wanted = math.log(math.e + math.e**2) - 1
    assert float(list_mle(student, teacher, seen)) == pytest.approx(wanted)
    assert float(published_list_mle(student, teacher, seen)) == pytest.approx(wanted, abs=1e-6)
    gone = torch.full_like(teacher, -1.0)
    assert float(published_list_mle(student, gone, seen)) == 0
    assert float(list_mle(student, gone, seen)) == pytest.approx(wanted)


def test_large_logits_have_finite_gradients() -> None:
    student = torch.tensor([[500.0, -500.0, 0.0]], requires_grad=True)
    teacher, seen = torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([[True, True, False]])
    for terms in (list_mle(student, teacher, seen),
                  published_list_mle(student, teacher, seen)):  # fmt: skip
        (gradient,) = torch.autograd.grad(terms.sum(), student)
        assert bool(gradient.isfinite().all()) and float(terms.detach()) > 0


def test_anchors_without_a_positive_are_not_counted() -> None:
    batch = make_batch(sentences=3)
    weights = torch.tensor([[1.0], [0.0], [1.0]], dtype=torch.float64)
    some = Positives(batch.targets["positive"].vectors, weights)
    two = make_batch({n: batch.views[n]["sentence"].vectors[[0, 2]] for n in batch.views})
    for name in ("list-net", "list-mle", "ranking-consistency"):
        options = {} if name == "ranking-consistency" else {"teachers": ("0",)}
        part: Any = make_part("loss", name, **options)  # type: ignore[arg-type]
        found, wanted = (
            part(each, targets, None, taught(each, each)).value
            for each, targets in ((batch, some), (two, two.targets["positive"]))
        )
        assert float(found) == pytest.approx(float(wanted)), name


def test_consistent_lists_have_no_divergence() -> None:
    same = make_batch(sentences=4).anchors
    batch = make_batch({"anchor": same, "positive": same})
    ctx, targets = make_context(batch), batch.targets["positive"]
    paper = make_part("loss", "ranking-consistency")
    assert float(paper(batch, targets, None, ctx).value) == pytest.approx(0, abs=1e-12)
    published = make_part("loss", "ranking-consistency", variant="published", temperature=1e5)
    flat = float(published(batch, targets, None, ctx).value)
    assert flat == pytest.approx(-math.log(4), abs=1e-6), "it is least where all are equal"


def test_two_teachers_in_a_run() -> None:
    sets = [f"branch.first.model={WIDE}", f"branch.second.model={OTHER}", "train.batch_size=4"]
    rig = run_steps(recipe="rankcse", sets=sets, steps=2)
    for total, parts in zip(rig.losses, rig.scalars, strict=True):
        names = ("infonce", "ranking-consistency", "list-mle")
        assert total == pytest.approx(sum(parts[f"{name}.loss"] for name in names), rel=1e-5)
    run = compose(recipe="rankcse-listnet", sets=sets)
    assert [part.name for part in run.of("loss")] == ["infonce", "ranking-consistency", "list-net"]
    shown = [(each.branch, each.views) for each in run.passes]
    assert shown[1:] == [(name, ("anchor",)) for name in ("first", "second")]
    both = compose(recipe="rankcse", sets=["loss.list-mle.teacher_views=both"])
    assert both.passes[1].views == ("anchor", "positive")
    assert not any("teaches itself" in line for line in run.warnings)
    (line,) = (w for w in compose(recipe="rankcse-listnet").warnings if "teaches" in w)
    assert "--branch.first.model MODEL --branch.second.model MODEL" in line


def test_defaults_are_those_of_the_paper() -> None:
    for options in (TaughtOptions(), ListMleOptions()):
        assert options.own and options.temperature == 0.05
        assert options.teacher_temperatures == (options.temperature / 2,)
    assert ListMleOptions().variant == "paper"


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ("weights=[0.1]", "one for each of 2 teachers, not 1"),
        ("teacher_temperatures=[0.1, 0.2, 0.3]", "one for all 2 teachers"),
        ("teachers=['first', 'online']", "online is the model in training"),
        ("teachers=['first', 'third']", "third"),
    ],
)
def test_what_cannot_be_is_one_line(sets: str, says: str) -> None:
    assert says in refusal(compose, recipe="rankcse", sets=[f"loss.list-mle.{sets}"])


def test_lists_of_a_text_and_their_scores() -> None:
    """A text's own texts in the order of their scores, or of ranks, of which the least is first."""
    roles: Any = {"positive": "positive", "negative": "negative"}
    batch = make_batch(sentences=3, views=roles)
    vectors = torch.randn(3, 2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    weights = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    rows = batch.views["negative"]["sentence"]
    two = replace(rows, owner=torch.tensor([0, 1, 1]), slot=torch.tensor([0, 0, 1024]))
    batch = replace(batch, views={**batch.views, "negative": {"sentence": two}})
    scores = {"p": torch.tensor([[3.0, 1.0], [2.0, 0.0], [0.0, 0.0]]),
              "n": torch.tensor([[2.0, 0.0], [4.0, 1.0], [0.0, 0.0]])}  # fmt: skip
    ctx = make_context(batch).replace(values=scores.__getitem__)
    close = [
        [torch.cosine_similarity(batch.anchors[a], each, dim=0) / 0.3 for each in own]
        for a, own in enumerate([[*vectors[0], rows.vectors[0]],
                                 [vectors[1, 0], rows.vectors[1], rows.vectors[2]]])
    ]  # fmt: skip
    orders = {"highest": ([0, 2, 1], [1, 0, 2]), "lowest": ([1, 2, 0], [2, 0, 1])}
    for best, places in orders.items():
        total = 0.0
        for logits, order in zip(close, places, strict=True):
            for n, place in enumerate(order):
                left = sum(math.exp(logits[other]) for other in order[n:])
                total += math.log(left) - float(logits[place])
        part: Any = make_part("loss", "list-mle", candidates="list", views=("negative",),
                              scores=("p", "n"), best=best, temperature=0.3)  # fmt: skip
        found = part(batch, Positives(vectors, weights), None, ctx).value
        assert float(found) == pytest.approx(total / 2), best
    net: Any = make_part("loss", "list-net", candidates="list", views=("negative",),
                         scores=("p", "n"), temperature=0.3,
                         teacher_temperatures=(2.0,))  # fmt: skip
    total = 0.0
    for logits, wanted in zip(close, ([3.0, 1.0, 2.0], [2.0, 4.0, 1.0]), strict=True):
        p, q = ([math.exp(x) for x in each] for each in ([w / 2 for w in wanted], logits))
        total -= sum(x / sum(p) * math.log(y / sum(q)) for x, y in zip(p, q, strict=True))
    found = net(batch, Positives(vectors, weights), None, ctx).value
    assert float(found) == pytest.approx(total / 2)


def test_teachers_rank_the_texts_of_lists() -> None:
    batch, wide = make_batch(sentences=3, groups={"found": 2}), make_batch(sentences=3, seed=4)
    options = TaughtOptions(candidates="list", target="positive", teachers=("0",))
    student, teacher, seen = lists(batch, batch.targets["positive"], taught(batch, wide), options)
    assert seen.tolist() == torch.eye(3, dtype=torch.bool).tolist() and student.shape == (3, 3)
    close = torch.cosine_similarity(wide.anchors, wide.targets["positive"].vectors[:, 0])
    torch.testing.assert_close(teacher.diagonal(), close / 0.025)


@pytest.mark.parametrize(
    ("sets", "says"),
    [("scores=['a']", "candidates = list"), ("views=['negative']", "candidates = list")],
)
def test_lists_that_cannot_be(sets: str, says: str) -> None:
    assert says in refusal(compose, recipe="rankcse", sets=[f"loss.list-mle.{sets}"])


def test_scores_take_the_place_of_teachers() -> None:
    sets = ["loss.list-mle.candidates=list", "loss.list-mle.scores=['score']"]
    corpus = tiny_corpus(columns={"positive": "text", "score": "float"})
    run = compose(kinds={"loss": ["list-mle"]}, sets=sets, corpus=corpus)
    assert [part.name for part in run.of("branch")] == ["online"]
    assert run.needed_columns.beside == {"score": "positive"}
    short = [*sets, "loss.list-mle.scores=['score', 'score']"]
    line = refusal(compose, kinds={"loss": ["list-mle"]}, sets=short, corpus=corpus)
    assert "one column each for positive" in line
