"""The kit over the distribution, and both steps of LLM2Vec after one another."""

from pathlib import Path

import numpy as np
import pytest
import torch
from cse_testkit import part_suites, recipe_suites, shared_encoder, tiny_corpus
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

import cse

globals().update(recipe_suites("cse-llm2vec", Path(__file__).parent / "settings"))
globals().update(
    part_suites(
        "cse-llm2vec",
        {
            "pool.one-word": {"options": {"template": '"[X]" means:"'}},
            "pool.echo": {"variants": ({"pooling": "last"},)},
        },
    )
)


SHORT = {"train.max_steps": 2, "train.batch_size": 4, "train.precision": "fp32", "train.lr": 1e-2}


@pytest.mark.slow
def test_one_step_follows_the_other(tmp_path: Path) -> None:
    texts = list(tiny_corpus(20).column("text"))
    data = tmp_path / "texts.txt"
    data.write_text("\n".join(texts))
    base = shared_encoder(family="llama")
    first = cse.train("llm2vec-mntp", model=base, data=data, dev="none", out=tmp_path / "mntp",
                      options=SHORT)  # fmt: skip
    second = cse.train("llm2vec", model=first.folder, data=data, dev="none", out=tmp_path / "two",
                       options=SHORT)  # fmt: skip
    folders = [Path(base), first.model, second.model]
    before, between, after = (load_file(folder / "model.safetensors") for folder in folders)
    projections = {name for name in before if "_proj." in name}
    for one, two in ((before, between), (between, after)):
        moved = {name for name in one if not torch.equal(one[name], two[name])}
        assert moved == projections, "the adapters' layers and no others"
    found = second.load().encode(texts[:5])
    theirs = SentenceTransformer(str(second.model), device="cpu").encode(texts[:5])
    np.testing.assert_allclose(found, theirs, atol=1e-5)
    last_changed = [texts[0], f"{texts[0]} boat"]
    states = SentenceTransformer(str(second.model), device="cpu").encode(
        last_changed, output_value="token_embeddings"
    )
    assert float((states[0][0] - states[1][0]).abs().max()) > 1e-4, "it reads in both directions"
