"""Products of rows: against a loop over rows in fp64, and their sum against the whole batch."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_blame.products import Moved, Pair, Products, second_moments
from torch.nn.functional import cosine_similarity, cross_entropy

import cse
from tests.fixtures.tiny import sentences

TEXTS = sentences(24)
PAIR = Pair(TEXTS[20], TEXTS[21], "cosine")
RATE = 1e-3
SMALL = 1e-5
"""Moves of the similarity where numbers have the digits of fp64."""


@contextmanager
def double(encoder: str, data: Path, recipe: str, **options: Any) -> Iterator[cse.Session]:
    """A session over the tiny encoder in fp64."""
    settings = {"train.batch_size": 6, "train.device": "cpu", "train.precision": "fp32",
                "train.lr": RATE, "train.schedule": "constant", "train.threads": 1,
                "model.max_length": 32, "train.clip": 0.0}  # fmt: skip
    settings |= {name.replace("__", "."): value for name, value in options.items()}
    chosen: dict[str, Any] = {"model": encoder, "data": str(data), "dev": "none"}
    with cse.Session(recipe, **chosen, options=settings) as session:
        assembly = session._prepared.assembly
        for model in assembly.encoders.values():
            for module in (*model.modules(), *model.heads.values()):
                module.double()
        for part in session.parts.values():
            if isinstance(part, torch.nn.Module):
                part.double()
        yield session


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Twelve rows with a positive each."""
    path = tmp_path / "pairs.jsonl"
    rows = [{"text": TEXTS[n], "positive": TEXTS[n + 4]} for n in range(12)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_a_row_s_share_is_that_of_a_loop_over_rows(encoder: str, pairs: Path) -> None:
    with double(encoder, pairs, "pairs", model__dropout=0.0) as session:
        products = Products(session, PAIR, size=SMALL)
        made = products.step(1)
        rows = made.rows
        named = session.trained
        weights = list(named.values())

        def gradient(value: torch.Tensor) -> torch.Tensor:
            value.backward()
            filled = [torch.zeros_like(w) if w.grad is None else w.grad.clone() for w in weights]
            for weight in weights:
                weight.grad = None
            return torch.cat([g.flatten() for g in filled])

        texts = [TEXTS[row] for row in rows.tolist()], [TEXTS[row + 4] for row in rows.tolist()]
        left, right = (session.embed(side).double().detach().requires_grad_() for side in texts)

        def at_rows(kept: list[int]) -> tuple[torch.Tensor, ...]:
            logits = torch.stack([cosine_similarity(left[one], right[kept], dim=1) for one in kept])
            loss = cross_entropy(logits / 0.05, torch.arange(len(kept)))
            return torch.autograd.grad(loss, [left, right])

        query, document = session.embed([PAIR.query]), session.embed([PAIR.document])
        of_pair = gradient(cosine_similarity(query.double(), document.double()).sum())

        def product(place: int, slopes: tuple[torch.Tensor, ...]) -> float:
            """Through the vectors of a row, whose gradients are given."""
            mine = (
                (session.embed([side[place]]).double()[0] * slope[place]).sum()
                for side, slope in zip(texts, slopes, strict=True)
            )
            return -RATE * sum(float(gradient(vector) @ of_pair) for vector in mine)

        every = list(range(6))
        parts = [product(place, at_rows(every)) for place in every]
        assert made.parts.tolist() == pytest.approx(parts, rel=2e-4, abs=1e-9)
        assert made.whole == pytest.approx(sum(parts), rel=2e-4)
        for place in every:
            slopes = at_rows([other for other in every if other != place])
            rest = sum(product(other, slopes) for other in every)
            by = float(made.by[place])
            assert by == pytest.approx(sum(parts) - rest, rel=2e-4, abs=1e-9), place


RECIPES = {
    "simcse": {},
    "simcse, chunks": {"train__chunk_size": 4},
    "mocose": {},
    "esimcse": {"negatives__momentum-queue__size": 12},
    "infocse": {},
    "diffcse": {},
    "hicl": {"pool__segments__length": 4},
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_rows_sum_to_the_product_of_the_whole_batch(
    encoder: str, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "texts.jsonl"
    with path.open("w") as out:
        for n in range(4):
            body = [["a", TEXTS[6 * n : 6 * n + 6]]]
            out.write(json.dumps({"id": n, "title": f"t{n}", "sections": body}) + "\n")
    with double(encoder, path, name.split(",")[0], **RECIPES[name]) as session:
        before = {n: w.detach().clone() for n, w in session.trained.items()}
        products = Products(session, PAIR, size=SMALL)
        for step in (0, 1):
            made = products.step(step)
            assert made.rows.tolist() == session.batch(step).tolist()
            assert float(made.by.abs().min()) > 0 and float(made.parts.abs().min()) > 0
            assert float(made.parts.sum()) == pytest.approx(made.whole, rel=1e-4)
        assert all(torch.equal(before[n], w) for n, w in session.trained.items())


def test_a_loss_on_token_states_is_split_by_the_tokens_of_each_row(
    encoder: str, pairs: Path
) -> None:
    with double(encoder, pairs, "mlm", train__warmup=0) as session:
        made = Products(session, PAIR, size=SMALL).step(0)
    assert int((made.parts != 0).sum()) >= 4, "rows with masked words"
    assert made.by.tolist() == made.parts.tolist(), "no row sees another"


def test_a_step_is_divided_by_the_moments_of_adamw(encoder: str, pairs: Path) -> None:
    with double(encoder, pairs, "pairs", model__dropout=0.0) as session:
        assert second_moments(session) == {}
        grads: dict[str, torch.Tensor] = {}

        def keep() -> None:
            for name, weight in session.trained.items():
                if weight.grad is not None:
                    grads[name] = weight.grad.clone()

        session.before_update(keep)
        session.step()
        moments = second_moments(session)
        words = next(name for name in moments if name.endswith("word_embeddings.weight"))
        unseen = grads[words] == 0
        assert unseen.any() and not unseen.all()
        # After a step the corrected moments are the gradient.
        assert torch.allclose(moments[words], grads[words].abs(), rtol=1e-4)
        products = Products(session, PAIR, moments, size=SMALL)
        mean = moments[words][~unseen].square().mean().sqrt()
        divided = torch.where(unseen, mean, moments[words])
        wanted = products.gradient[words] / divided
        assert torch.allclose(products.divided[words], wanted)
        made = products.step(1)
        assert float(made.parts.sum()) == pytest.approx(made.whole, rel=1e-3)


@pytest.mark.parametrize("kind", ["cosine", "dot", "euclidean", "manhattan"])
def test_a_pair_is_compared_as_the_saved_model_compares(kind: Any) -> None:
    one, two = torch.randn(2, 1, 8, generator=torch.Generator().manual_seed(0))
    wanted = cse.similarities(kind, one.numpy(), two.numpy())
    assert float(Pair("a", "b", kind).of(one, two)) == pytest.approx(float(wanted[0, 0]), rel=1e-5)


def test_a_gradient_that_is_clipped_moves_less(encoder: str, pairs: Path) -> None:
    def moved(clip: float) -> tuple[Moved, float]:
        with double(encoder, pairs, "pairs", model__dropout=0.0, train__clip=clip) as session:
            products = Products(session, PAIR, size=SMALL)
            norms: list[torch.Tensor] = []

            def keep() -> None:
                gradients = (w.grad for w in session.trained.values() if w.grad is not None)
                norms.append(torch.cat([g.flatten() for g in gradients]).norm())
                products._forget()

            session.before_update(keep)
            return products.step(1), float(norms[0])

    free, norm = moved(0.0)
    clipped, _ = moved(0.5)
    assert norm > 0.5
    assert torch.allclose(clipped.by, free.by * 0.5 / norm, rtol=1e-4)
    assert clipped.whole == pytest.approx(free.whole * 0.5 / norm, rel=1e-4)
