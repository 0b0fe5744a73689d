"""The map against numpy, the saved model against both libraries, and what is refused."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from cse_testkit import make_setup, shared_encoder, tiny_corpus
from cse_whitening import whitening as module
from cse_whitening.options import WhiteningOptions
from cse_whitening.whitening import Whitening, whitening
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

import cse
from cse_core.errors import CseError
from cse_defaults.texts import Corpus
from tests.fixtures.methods import finished, planned, refusal, round_context

CORPUS = tiny_corpus(60)
TEXTS = list(dict.fromkeys(CORPUS.column("text")))
"""Each once."""


def begin(head: Whitening, vectors: torch.Tensor, **context: Any) -> None:
    """Begin a run on as many texts, which have these vectors."""
    rows = {text: row for row, text in enumerate(TEXTS[: len(vectors)])}
    ctx = round_context(
        Corpus.from_columns({"text": [*rows]}),
        encode=lambda texts: vectors[[rows[text] for text in texts]],
        **context,
    )
    head.begin_round(cast(Any, None), ctx)


def head_of(size: int, **options: Any) -> Whitening:
    setup = make_setup("whitening", dimension=size)
    return Whitening(WhiteningOptions(**options), setup).double()


def by_hand(vectors: NDArray[Any], kept: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the kernel ``[D, k]`` and the mean, as the paper's code finds them."""
    values, vectors_of = np.linalg.eig(np.cov(vectors.T))
    order = np.argsort(-values.real)[:kept]
    return vectors_of.real[:, order] / np.sqrt(values.real[order]), vectors.mean(axis=0)


def gram(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return inner products, which know no sign of a direction."""
    return vectors @ vectors.T


def test_the_map_is_that_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64, whatever is summed at once, far from zero; cut to k directions too."""
    vectors = np.random.default_rng(0).normal(size=(50, 6)) @ np.diag([5, 3, 2, 1, 0.5, 0.1]) + 40
    given = torch.from_numpy(vectors)
    for kept in (6, 2):
        kernel, mean = by_hand(vectors, kept)
        wanted = gram((vectors - mean) @ kernel)
        covariance = torch.from_numpy(np.cov(vectors.T))
        weight, bias, rank = whitening(given.mean(dim=0), covariance, kept)
        assert rank == 6 and weight.shape == (kept, 6)
        found = gram((given @ weight.T + bias).numpy())
        assert np.allclose(found, wanted, rtol=0, atol=1e-9)
        for at_once in (7, 4096):
            monkeypatch.setattr(module, "_AT_ONCE", at_once)
            head = head_of(6, dimension=kept)
            begin(head, given)
            found = gram(head(given).detach().numpy())
            assert np.allclose(found, wanted, rtol=0, atol=1e-9)
            assert np.allclose(np.cov(head(given).detach().numpy().T), np.eye(kept), atol=1e-9)


def test_a_direction_without_variance_is_zero() -> None:
    """Means of states behind a layer norm have one; as many as there are may be asked for."""
    vectors = torch.randn(30, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    vectors[:, 3] = 7 - vectors[:, :3].sum(dim=1)
    weight, bias, rank = whitening(vectors.mean(dim=0), vectors.T.cov(), 4)
    found = vectors @ weight.T + bias
    assert rank == 3 and not weight[3].any() and not bias[3]
    assert torch.allclose(found[:, :3].T.cov(), torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize("dimension", [32, 5])
def test_a_run_saves_what_sentence_transformers_loads(tmp_path: Path, dimension: int) -> None:
    """The vectors of the saved model are those of the encoder, whitened by numpy."""
    kinds = {"pool": ["mean", "+whitening"]}
    sets = ["train.max_steps=0", *[f"pool.whitening.dimension={dimension}"] * (dimension < 32)]
    run = finished(tmp_path, None, *sets, corpus=CORPUS, kinds=kinds)  # type: ignore[arg-type]
    every = list(CORPUS.column("text"))
    plain = cse.load(shared_encoder(), pooling="mean").encode(every)
    kernel, mean = by_hand(plain.astype(np.float64), min(dimension, 31))
    wanted = gram((plain - mean) @ kernel)
    saved = cse.load(run).encode(every)
    assert saved.shape == (60, dimension)
    scale = float(np.abs(wanted).max())
    assert np.allclose(gram(saved.astype(np.float64)), wanted, rtol=0, atol=1e-3 * scale)
    theirs = SentenceTransformer(str(run / "model"), device="cpu").encode(every)
    assert np.allclose(theirs, saved, rtol=0, atol=1e-4)


def test_first_last_is_the_encoder_as_it_is(tmp_path: Path) -> None:
    assert planned("first-last").train.max_steps == planned("whitening").train.max_steps == 0
    run = finished(tmp_path, "first-last", "train.max_steps=0", corpus=tiny_corpus(4))
    found = cse.load(run).encode(TEXTS[:3])
    tokens = SentenceTransformer(str(shared_encoder()), device="cpu")
    model = tokens[0].auto_model.eval()
    for text, vector in zip(TEXTS[:3], found, strict=True):
        states = model(**tokens.tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        both = (states.hidden_states[0] + states.hidden_states[-1])[0] / 2
        assert np.allclose(both.mean(dim=0).detach().numpy(), vector, atol=1e-5)


def test_what_the_head_cannot_see_is_refused(tmp_path: Path) -> None:
    kinds: Any = {"pool": ["mean", "+whitening", "+mlp"]}
    sets = ("train.max_steps=0", "pool.mlp.keep=always")
    line = refusal(finished, tmp_path, None, *sets, corpus=CORPUS, kinds=kinds)
    assert line.startswith("pool.whitening: a head behind it is saved too, and changes")
    head = head_of(8, dimension=3)
    vectors = torch.randn(9, 8, generator=torch.Generator().manual_seed(0)).double()
    assert "normalises" in refusal(begin, head, torch.nn.functional.normalize(vectors, dim=1))
    assert "--set inference.truncate_dim=none" in refusal(begin, head, vectors[:, :4])
    assert "vary in 1 directions alone" in refusal(begin, head, vectors[:, :1].expand(9, 8))
    few = torch.randn(5, 8, generator=torch.Generator().manual_seed(0)).double()
    warnings: list[str] = []
    begin(head_of(8), few, warning=warnings.append)
    begin(head_of(8, dimension=4), few, warning=warnings.append)
    (line,) = warnings
    assert line.startswith("pool.whitening: the vectors of 5 texts vary in 4 directions alone")
    with pytest.raises(CseError, match="there are 8 dimensions to keep"):
        head_of(8, dimension=9)
