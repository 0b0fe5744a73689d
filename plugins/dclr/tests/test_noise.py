"""The noise: new in each step, and its ascent against autograd."""

import pytest
import torch
from cse_dclr.noise import harder
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor
from torch.nn.functional import cross_entropy

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


def test_the_ascent_is_that_of_autograd() -> None:
    anchors, positives, noise = drawn(5, seed=1), drawn(5, seed=2), drawn(7, seed=3)
    for batch in (True, False):
        wanted = by_autograd(noise, anchors, positives, batch=batch, steps=4, size=0.1)
        seen = positives if batch else None
        found = harder(noise, anchors, seen, steps=4, size=0.1, temperature=0.05)
        assert torch.allclose(found, wanted, rtol=0, atol=1e-10)
        each = (found - noise).norm(dim=1)
        assert bool((each <= 0.4 + 1e-9).all()) and bool((each > 0.1).all())


def test_a_vector_without_a_gradient_stays() -> None:
    """Noise that lies on the only anchor has gradient zero; no anchors give none at all."""
    for dtype in (torch.float32, torch.float64):
        anchor = torch.tensor([[1.0, 0.0, 0.0]], dtype=dtype)
        noise = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=dtype)
        found = harder(noise, anchor, None, steps=3, size=0.5, temperature=0.05)
        assert bool(found.isfinite().all()) and torch.equal(found[0], noise[0])
        none = harder(noise, anchor[:0], None, steps=3, size=0.5, temperature=1.0)
        assert torch.equal(none, noise)


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


def test_how_many() -> None:
    for sentences, times, count in ((4, 1.0, 4), (4, 2.5, 10), (3, 2.5, 7), (1, 0.5, None)):
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
