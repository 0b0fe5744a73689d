"""Static models: both kinds of folder, training, saving, distillation, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_static.distil import principal, zipf_weights
from cse_static.folders import write
from cse_testkit import shared_encoder, tiny_corpus
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

import cse
from tests.fixtures.methods import refusal

TEXTS = [*tiny_corpus(30).column("text"), "", "xyzzy boat", "boat"]
SHORT = {"train.max_steps": 4, "train.batch_size": 8, "train.lr": 1e-1, "train.save_steps": 2}


def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(Path(shared_encoder(), "tokenizer.json")))


@pytest.fixture(params=[True, False], ids=["normalized", "plain"])
def static(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder as sentence-transformers writes it."""
    folder, words = tmp_path / "static", tokenizer()
    folder.mkdir()
    vectors = torch.randn(words.get_vocab_size(), 16, generator=torch.Generator().manual_seed(1))
    write(folder, vectors, words, normalize=request.param, model2vec=False)
    return folder


@pytest.fixture
def model2vec(tmp_path: Path) -> Path:
    """A folder as model2vec writes it, with a mapping and weights of its tokens."""
    folder, words = tmp_path / "model2vec", tokenizer()
    folder.mkdir()
    count = words.get_vocab_size()
    draws = torch.Generator().manual_seed(2)
    tensors = {
        "embeddings": torch.randn(count // 2, 16, generator=draws).half(),
        "mapping": torch.arange(count) % (count // 2),
        "weights": torch.rand(count, generator=draws, dtype=torch.float64),
    }
    save_file(tensors, folder / "model.safetensors")
    words.save(str(folder / "tokenizer.json"))
    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": True}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def model2vec_vectors(folder: Path, texts: list[str]) -> Any:
    """Encode as model2vec does: known tokens, weighted, their mean, of length one."""
    tensors, words = load_file(folder / "model.safetensors"), tokenizer()
    if "weights" in tensors:
        table = tensors["embeddings"].float()[tensors["mapping"]]
        table = table * tensors["weights"].float()[:, None]
    else:
        table = tensors["embeddings"]
    unknown, rows = words.token_to_id("[UNK]"), []
    for text in texts:
        ids = [i for i in words.encode(text, add_special_tokens=False).ids if i != unknown][:512]
        mean = table[ids].mean(0) if ids else torch.zeros(16)
        rows.append(mean / mean.norm().clamp_min(1e-32))
    return torch.stack(rows).numpy()


def test_a_folder_of_sentence_transformers_has_its_vectors(static: Path) -> None:
    wanted = SentenceTransformer(str(static), device="cpu").encode(TEXTS)
    assert np.abs(cse.load(str(static)).encode(TEXTS) - wanted).max() < 1e-6


def test_a_folder_of_model2vec_has_its_vectors(model2vec: Path) -> None:
    vectors = cse.load(str(model2vec)).encode(TEXTS)
    assert np.abs(vectors - model2vec_vectors(model2vec, TEXTS)).max() < 1e-6


def trained(model: Path, out: Path, **settings: Any) -> Path:
    texts = out.with_suffix(".txt")
    texts.write_text("\n".join(filter(None, TEXTS)))
    sets = {**SHORT, **settings}
    cse.train(None, model=str(model), data=str(texts), dev="none", out=str(out), options=sets,
                    pool=["mean"], loss="infonce")  # fmt: skip
    return out


def test_what_is_trained_loads_with_equal_vectors(static: Path, tmp_path: Path) -> None:
    run = trained(static, tmp_path / "run")
    vectors = cse.load(str(run)).encode(TEXTS)
    assert np.abs(vectors - cse.load(str(static)).encode(TEXTS)).max() > 1e-2
    wanted = SentenceTransformer(str(run / "model"), device="cpu").encode(TEXTS)
    assert np.abs(vectors - wanted).max() < 1e-6


def test_what_is_trained_of_model2vec_is_for_model2vec(model2vec: Path, tmp_path: Path) -> None:
    run = trained(model2vec, tmp_path / "run")
    vectors = cse.load(str(run)).encode(TEXTS)
    assert np.abs(vectors - model2vec_vectors(run / "model", TEXTS)).max() < 1e-6
    assert "unknown tokens are left out" in (run / "model" / "README.md").read_text()


def test_a_head_is_trained_over_a_frozen_table(static: Path, tmp_path: Path) -> None:
    for number, settings in enumerate(({"model.freeze_embeddings": True}, {})):
        out, texts = tmp_path / f"run{number}", tmp_path / "texts.txt"
        texts.write_text("\n".join(filter(None, TEXTS)))
        run = cse.train(
            None, model=str(static), data=str(texts), dev="none", out=str(out),
            options={**SHORT, **settings, "pool.mlp.keep": "always", "pool.mlp.activation": "none",
                  "loss.infonce.dimensions": "[4,16]"},
            pool=["mean", "mlp"], loss="infonce", adapter=[] if number == 0 else ["heads-only"],
        )  # fmt: skip
        before, after = (load_file(f / "model.safetensors") for f in (static, out / "model"))
        assert torch.equal(*(each["embedding.weight"] for each in (before, after)))
        assert (out / "model" / "heads.safetensors").exists()
        assert run.load().encode(["boat"]).shape == (1, 16)
    line = refusal(trained, static, tmp_path / "none", **{"model.freeze_embeddings": True})
    assert "nothing is trained" in line


def test_options_about_layers_are_refused(static: Path) -> None:
    for name, value in (("dropout", 0.1), ("attention", "padded"), ("train_layers", [0])):
        line = refusal(cse.plan, None, model=str(static), options={f"model.{name}": value})
        assert f"model.{name}: has no meaning for a static model" in line
    assert "mask token" in refusal(cse.plan, "mlm", model=str(static))


def test_distillation(tmp_path: Path) -> None:
    from cse_static.distil import distil

    folder = distil(None, str(shared_encoder()), tmp_path / "out", dimension=8)
    vectors = cse.load(str(folder)).encode(TEXTS)
    assert vectors.shape == (len(TEXTS), 8)
    wanted = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    assert np.abs(vectors - wanted).max() < 1e-6
    line = refusal(distil, None, str(folder), tmp_path / "again")
    assert "is not a transformer" in line
    assert "is there already" in refusal(distil, None, str(shared_encoder()), folder)


def test_principal_components_and_weights() -> None:
    vectors = torch.randn(50, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    kept = principal(vectors, 6)
    centred = vectors - vectors.mean(dim=0)
    assert torch.allclose(kept @ kept.T, centred @ centred.T)
    spread = kept.var(dim=0)
    assert bool((spread.diff() <= 1e-9).all())
    assert zipf_weights(3, 0.5).tolist() == pytest.approx(
        [0.5 / (0.5 + (1 / rank) / (1 / 2 + 1 / 3 + 1 / 4)) for rank in (2, 3, 4)]
    )


def test_damaged_folders(static: Path) -> None:
    settings = static / "config_sentence_transformers.json"
    for text, says in (
        ("{", "is not valid JSON"),
        ('{"similarity_fn_name": "hamming"}', "hamming"),
    ):
        settings.write_text(text)
        assert says in refusal(cse.load, str(static))
    settings.unlink()
    (static / "model.safetensors").write_bytes(b"no")
    assert "cannot be read" in refusal(cse.load, str(static))
    (static / "tokenizer.json").unlink()
    assert "has no tokenizer.json" in refusal(cse.load, str(static))
