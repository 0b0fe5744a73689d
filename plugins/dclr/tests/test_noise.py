"""The noise: new in each step, its ascent against autograd, and what must not happen."""

from __future__ import annotations

import pytest
import torch
from cse_dclr.ascent import harder
from cse_dclr.options import NoiseOptions
from cse_testkit import compose, make_batch, make_context, make_part, run_steps
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from cse_core.errors import CseError
from cse_core.types import Negatives


def drawn(rows: int, columns: int = 8, seed: int = 0) -> Tensor:
    draws = torch.Generator().manual_seed(seed)
    return torch.randn(rows, columns, generator=draws, dtype=torch.float64)


def by_autograd(
    noise: Tensor, anchors: Tensor, positives: Tensor, *, batch: bool, steps: int, size: float
) -> Tensor:
    """Ascend one row at a time along the normalised gradient that autograd finds."""
    for _ in range(steps):
        noise = noise.detach().requires_grad_(True)
        total = noise.new_zeros(())
        for i, anchor in enumerate(anchors):
            others = [positives[j] for j in range(len(positives))] if batch else [positives[i]]
            columns = torch.stack([*others, *noise])
            logits = torch.cosine_similarity(anchor.unsqueeze(0), columns) / 0.05
            if batch:
                total = total + cross_entropy(logits.unsqueeze(0), torch.tensor([i]))
            else:  # the paper's L_U: the noise alone is in the denominator
                total = total + logits[1:].logsumexp(0) - logits[0]
        (gradient,) = torch.autograd.grad(total, noise)
        rows = [row / row.norm() if row.norm() > 0 else row for row in gradient]
        noise = noise.detach() + size * torch.stack(rows)
    return noise.detach()


@pytest.mark.parametrize("batch", [True, False])
def test_the_ascent_is_that_of_autograd(batch: bool) -> None:
    anchors, positives, noise = drawn(5, seed=1), drawn(5, seed=2), drawn(7, seed=3)
    wanted = by_autograd(noise, anchors, positives, batch=batch, steps=4, size=0.1)
    found = harder(
        noise, anchors, positives if batch else None, steps=4, size=0.1, temperature=0.05
    )
    assert torch.allclose(found, wanted, rtol=0, atol=1e-10)
    assert not torch.allclose(found, noise, atol=0.05)
    each = (found - noise).norm(dim=1)
    assert bool((each <= 0.4 + 1e-9).all()) and bool((each > 0.1).all())


def test_the_ascent_makes_the_noise_harder() -> None:
    anchors, noise = drawn(6, seed=4), drawn(9, seed=5)
    moved = harder(noise, anchors, None, steps=20, size=0.1, temperature=0.05)
    before, after = (
        (normalize(anchors) @ normalize(each).T / 0.05).logsumexp(1).mean()
        for each in (noise, moved)
    )
    assert after > before + 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_vector_without_a_gradient_stays(dtype: torch.dtype) -> None:
    """Noise that lies on the only anchor has gradient zero; no anchors give none at all."""
    anchor = torch.tensor([[1.0, 0.0, 0.0]], dtype=dtype)
    noise = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=dtype)
    found = harder(noise, anchor, None, steps=3, size=0.5, temperature=0.05)
    assert bool(found.isfinite().all()) and torch.equal(found[0], noise[0])
    assert torch.equal(harder(noise, anchor[:0], None, steps=3, size=0.5, temperature=1.0), noise)


def candidates(step: int = 0, sentences: int = 4, **options: object) -> Negatives | None:
    batch = make_batch(sentences=sentences)
    store = make_part("negatives", "noise", **options)
    return store.candidates(batch, make_context(batch, step=step))


def test_it_is_new_in_each_step_and_the_same_twice() -> None:
    one, again, next_one = candidates(0), candidates(0), candidates(1)
    assert one is not None and again is not None and next_one is not None
    assert torch.equal(one.vectors, again.vectors)
    assert not torch.isclose(one.vectors, next_one.vectors).any()
    assert one.row.tolist() == [-1] * 4 and one.age.tolist() == [0] * 4
    assert not one.mask.any() and not one.log_weights.any()


@pytest.mark.parametrize(
    ("sentences", "times", "count"), [(4, 1.0, 4), (4, 2.5, 10), (3, 2.5, 7), (1, 0.5, None)]
)
def test_how_many(sentences: int, times: float, count: int | None) -> None:
    found = candidates(sentences=sentences, times=times)
    assert (None if found is None else len(found)) == count


def test_its_deviation() -> None:
    wide = candidates(sentences=64, times=20.0, deviation=3.0, steps=0)
    assert wide is not None and float(wide.vectors.std()) == pytest.approx(3.0, rel=0.05)


def test_the_batch_is_seen_only_where_the_objective_says_so() -> None:
    batch, start = make_batch(sentences=4), candidates(steps=0)
    assert start is not None
    positives = batch.targets["positive"].vectors.flatten(0, 1)
    for objective, seen in (("noise", None), ("batch", positives)):
        found = candidates(objective=objective, step_size=0.5, temperature=0.3)
        wanted = harder(start.vectors, batch.anchors, seen, steps=4, size=0.5, temperature=0.3)
        assert found is not None and torch.allclose(found.vectors, wanted)
        assert not torch.allclose(found.vectors, start.vectors)


def test_no_gradient_flows_through_the_noise() -> None:
    anchor = drawn(4).requires_grad_(True)
    batch = make_batch({"anchor": anchor, "positive": drawn(4, seed=1)})
    found = make_part("negatives", "noise").candidates(batch, make_context(batch))
    assert not found.vectors.requires_grad


def test_it_adds_its_columns_in_a_run() -> None:
    run = run_steps(kinds={"negatives": ["noise"]}, sets=["negatives.noise.times=2.5"], steps=1)
    assert run.scalars[0]["infonce.negatives"] == 3 + 10


@pytest.mark.parametrize(
    ("path", "value"),
    [("times", "0"), ("steps", "-1"), ("step_size", "-1"), ("objective", "x"), ("deviation", "0")],
)
def test_wrong_options_are_refused_in_one_line(path: str, value: str) -> None:
    with pytest.raises(CseError) as caught:
        compose(kinds={"negatives": ["noise"]}, sets=[f"negatives.noise.{path}={value}"])
    assert f"negatives.noise.{path}" in str(caught.value) and "\n" not in str(caught.value)


def test_the_defaults_are_those_of_the_published_code() -> None:
    noise = NoiseOptions()
    assert (noise.steps, noise.step_size, noise.deviation) == (4, 1e-3, 1.0)  # models.py, pgd
