"""Losses beside the authors' numbers, chunks by hand, a saved model in sentence-transformers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_late.maxsim import maxsim
from cse_testkit import compose, make_batch, make_context, make_part, tiny_corpus, tiny_tokenizer
from cse_testkit.runs import Rig
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from torch import Tensor
from torch.nn.functional import normalize

import cse
from cse_core.errors import CseError
from cse_core.types import Embeddings, Negatives

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


def rows(vectors: list[Tensor]) -> Embeddings:
    owner = torch.tensor([i for i, part in enumerate(vectors) for _ in part])
    slot = torch.tensor([n for part in vectors for n in range(len(part))])
    return Embeddings(torch.cat(vectors), owner, slot, torch.ones_like(slot))


@pytest.mark.parametrize("case", GOLDEN["insent"])
def test_insent_is_that_of_the_authors_code(case: Any) -> None:
    queries = torch.tensor(case["queries"], dtype=torch.float64, requires_grad=True)
    chunks = rows([torch.tensor(part, dtype=torch.float64) for part in case["chunks"]])
    batch = make_batch({"anchor": queries, "positive": queries.detach()})
    views = {**batch.views, "positive": {**batch.views["positive"], "chunk": chunks}}
    batch = replace(batch, views=views)
    options = {name: case[name] for name in ("sequence_weight", "temperature")}
    loss = make_part("loss", "insent", **options)
    ctx = make_context(batch, values={"chunk": case["gold"]})
    none = Negatives.of(queries.detach()[:0], len(queries), name="none")
    made = loss(batch, batch.targets["positive"], none, ctx)
    assert made.value.item() == pytest.approx(case["loss"], rel=1e-9)
    (gradient,) = torch.autograd.grad(made.value, queries)
    torch.testing.assert_close(gradient, torch.tensor(case["query_gradient"], dtype=torch.float64))
    # A row whose chunk is not there leaves the others as they are.
    ctx = make_context(batch, values={"chunk": [99, *case["gold"][1:]]})
    fewer = loss(batch, batch.targets["positive"], none, ctx)
    assert fewer.value.isfinite() and fewer.value.item() != made.value.item()
    assert float(fewer.parts["missing"]) == pytest.approx(1 / len(queries))


def test_scores_are_those_of_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts too, whose gradients are those of all at once; a text without vectors scores 0."""
    from sentence_transformers.util.similarity import maxsim as theirs

    draws = torch.Generator().manual_seed(3)
    sides = [[normalize(torch.randn(n, 5, generator=draws), dim=-1) for n in counts]
             for counts in ((2, 4, 1), (3, 1, 6, 2))]  # fmt: skip
    queries, documents = map(rows, sides)
    leaf = queries.vectors.requires_grad_(True)

    def scores() -> Tensor:
        return maxsim(leaf, queries.owner, documents.vectors, documents.owner, (3, 5))

    whole = scores()
    torch.testing.assert_close(whole[:, :4].detach(), theirs(*sides))
    assert not whole[:, 4].any()
    (expected,) = torch.autograd.grad(whole.square().sum(), leaf)
    monkeypatch.setattr("cse_late.maxsim.PAIRS", 30)
    parts = scores()
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(torch.autograd.grad(parts.square().sum(), leaf)[0], expected)


@pytest.mark.parametrize(
    ("options", "text", "chunks"),
    [
        ({"size": 2}, "a b c d e", ["a b", "c d", "e"]),
        (
            {"by": "sentences", "size": 1},
            "an old dog. the cat? no",
            ["an old dog.", "the cat?", "no"],
        ),
        ({"by": "sentences", "size": 2}, "old one. the two. no.", ["old one. the two.", "no."]),
        ({"by": "sentences", "size": 1}, "it is 3.1 here! no", ["it is 3.1 here!", "no"]),
        ({"by": "sentences", "size": 1}, "j. old is here. no", ["j. old is here.", "no"]),
        ({"by": "separator", "separator": "the"}, "a the b c the the d", ["a", "b c", "d"]),
        ({"size": 3}, "", ["[CLS] [SEP]"]),
    ],
)
def test_chunks_by_hand(options: dict[str, Any], text: str, chunks: list[str]) -> None:
    pooler, tokenizer = make_part("pool", "chunk-vectors", **options), tiny_tokenizer()
    content = tokenizer.content([text, "old"])
    tokens = tokenizer.wrap(content)
    units = pooler.units(tokens, "positive")
    pieces = torch.split(tokens.ids[units.index], units.lengths.tolist())
    made = [tokenizer.hf.convert_ids_to_tokens(piece.tolist()) for piece in pieces]
    wanted = [tokenizer.hf.tokenize(chunk) for chunk in chunks]
    assert made == [*wanted, ["old"]] and units.row.tolist() == [0] * len(chunks) + [1]
    assert not len(pooler.units(tokens.take_rows(torch.arange(0)), "positive").lengths)


def test_a_saved_run_is_read_by_both_kinds_of_models(tmp_path: Path) -> None:
    """Vectors and scores of sentence-transformers are those of cse, from one folder."""
    corpus = tiny_corpus(columns=("positive",))
    rig = Rig(compose(recipe="colbert", sets=["train.lr=0.01"], corpus=corpus))
    rig.step(2)
    rig.session.save(tmp_path / "model")
    model = cse.load(tmp_path / "model", device="cpu")
    texts = [*corpus.column("text")[:4], "old, old!"]
    plain = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(plain.encode(texts), model.encode(texts), atol=1e-5)
    late = MultiVectorEncoder(str(tmp_path / "model"), device="cpu")
    sides = {"query": late.encode_query(texts), "document": late.encode_document(texts)}
    for role, theirs in sides.items():
        ours = model.encode_several(texts, role=role, normalize=True)  # type: ignore[arg-type]
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other.numpy(), atol=1e-5)
    late.save(str(tmp_path / "theirs"))
    again = cse.load(tmp_path / "theirs", device="cpu")
    for one, other in zip(again.encode_several(texts, role="document", normalize=True),
                          sides["document"], strict=True):  # fmt: skip
        np.testing.assert_allclose(one, other.numpy(), atol=1e-5)
    with pytest.raises(CseError, match="has no vectors of this level"):
        model.encode_several(texts, "chunk")


def test_over_a_frozen_encoder_only_the_head_of_the_row_learns() -> None:
    """MaxSim then has no gradient, without a fault of its own: no head takes its vectors."""
    kinds = {"adapter": ["heads-only"], "pool": ["mean", "+token-vectors", "+mlp"],
             "loss": ["infonce", "+maxsim"]}  # fmt: skip
    rig = Rig(compose(kinds=kinds, sets=["pool.mlp.level=row"]))
    rig.step(2)
    assert all(float(loss) > 0 for loss in rig.losses)
