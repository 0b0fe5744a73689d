"""Runs of decoders: what they train, keep and refuse, and that sentence-transformers agrees."""

import json
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

import cse
from cse_core.errors import CseError
from cse_core.types import Hidden
from cse_defaults.basics.options import MeanOptions
from cse_defaults.basics.poolers import Mean
from cse_defaults.transformers.pretrained import load_tokenizer
from cse_defaults.transformers.tokenizer import TextTokenizer
from tests.engine.step.test_processes import as_one
from tests.fixtures.decoders import FAMILIES, make_decoder, make_tokenizer
from tests.fixtures.processes import TwoProcesses
from tests.fixtures.tiny import metrics, sentences

TEXTS = ["ba be", "bi", "bo bu da de di do du fa fe fi fo fu ga ge gi go gu ka ke ki"]
LAST, MEAN = "last-token", "mean"
BOTH_WAYS = {"model.attention": "bidirectional"}
WITHOUT_PROMPT = {"model.prompt": "Instruct: find.\nQuery:", "pool.mean.include_prompt": False}
FILE = "model.safetensors"
OPTIONS = {"train.max_steps": 2, "train.batch_size": 4, "train.precision": "fp32", "train.lr": 1e-3}


def trained(folder: Path, family: str, pool: str, out: str = "run", **options: Any) -> cse.Run:
    base, texts = folder / "base", folder / "texts.txt"
    texts.write_text("\n".join(sentences(12)))
    if not base.exists():
        make_decoder(base, family)
    adapter = options.pop("adapter", None)
    return cse.train(model=base, data=texts, dev="none", pool=pool, out=folder / out,
                     adapter=adapter, options=OPTIONS | options)  # fmt: skip


def theirs(model: Path, **how: Any) -> NDArray[np.float32]:
    st = pytest.importorskip("sentence_transformers", reason="its vectors are what is compared")
    found: NDArray[np.float32] = st.SentenceTransformer(str(model), device="cpu").encode(
        TEXTS, **how
    )
    return found


def check(run: cse.Run) -> None:
    found = run.load().encode(TEXTS)
    assert float(found.std(axis=0).mean()) > 1e-3, "the texts differ"
    np.testing.assert_allclose(theirs(run.model), found, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "family, pool, options",
    [
        ("mistral", LAST, BOTH_WAYS | {"model.prompt": "Query: "}),
        *(
            pytest.param(family, *how, marks=pytest.mark.slow)
            for family in FAMILIES
            for how in ((LAST, {}), (MEAN, BOTH_WAYS | WITHOUT_PROMPT))
        ),
    ],
)
def test_a_saved_decoder_is_that_of_sentence_transformers(
    tmp_path: Path, family: str, pool: str, options: dict[str, Any]
) -> None:
    run = trained(tmp_path, family, pool, **options)
    check(run)
    before = load_file(tmp_path / "base" / "model.safetensors")
    after = load_file(run.model / "model.safetensors")
    moved = [n for n, value in after.items() if not torch.equal(value, before[f"model.{n}"])]
    assert len(moved) > 10
    again = cse.train(model=run.model, data=tmp_path / "texts.txt", dev="none", pool="model",
                      out=tmp_path / "again", options=OPTIONS | {"train.lr": 0.0})  # fmt: skip
    np.testing.assert_array_equal(again.load().encode(TEXTS), run.load().encode(TEXTS))


@pytest.mark.slow
@pytest.mark.parametrize("adapter", [None, "lora"])
def test_a_resumed_run_is_the_same_bit_for_bit_and_so_are_layers_that_run_again(
    tmp_path: Path, adapter: str | None
) -> None:
    dropout = {"model.dropout": 0.1, "train.max_steps": 4, "train.save_steps": 2}
    if adapter:
        dropout |= {"adapter.lora.targets": "all-linear", "adapter.lora.dropout": 0.05}
    run = trained(tmp_path, "gemma2", LAST, adapter=adapter, **dropout)
    check(run)
    again = Path(shutil.copytree(run.folder, tmp_path / "again"))
    (again / "result.json").unlink()
    shutil.rmtree(again / "model")
    shutil.rmtree(again / "checkpoints/step-4")
    cse.resume(again, quiet=True)
    recomputed = trained(tmp_path, "gemma2", LAST, "recomputed", adapter=adapter,
                         **dropout, **{"model.gradient_checkpointing": True})  # fmt: skip
    for other in (again / "model", recomputed.model):
        assert (other / FILE).read_bytes() == (run.model / FILE).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["causal", "bidirectional"])
def test_two_processes_train_as_one(
    tmp_path: Path, two_processes: TwoProcesses, direction: str
) -> None:
    recipe = '[[pool]]\nuse = "last-token"\n[[loss]]\nuse = "infonce"\n'
    encoder = make_decoder(tmp_path / "base", "mistral")
    sets = (f"model.attention={direction}", "train.lr=1e-4")
    as_one(two_processes, tmp_path, encoder, recipe, *sets, rtol=1e-5, far=1e-6)


def test_what_is_refused_before_weights_are_read(tmp_path: Path) -> None:
    """The folder has none, and a plan reads none."""
    base = Path(make_decoder(tmp_path / "base", "qwen3"))
    (base / FILE).unlink()
    (base / "generation_config.json").unlink(missing_ok=True)
    data = tmp_path / "texts.txt"
    data.write_text("ba\nbe\n")
    plan = partial(cse.plan, data=data, dev="none")
    both = {"model.attention": "bidirectional"}
    assert "2 layers, cased, bidirectional)" in str(plan(model=base, pool=LAST, options=both))
    assert "2 layers, cased, causal)" in str(plan(model=base, pool=MEAN))
    with pytest.raises(CseError, match=r"^pool.cls: pools the first token.*last-.*bidirectional"):
        plan("simcse", model=base)
    with pytest.raises(CseError, match="^--pooling: pools the first token.*name last-token or"):
        cse.load(base, pooling="cls")
    plan("simcse", model=base, options=both)
    with pytest.raises(CseError, match="has no meaning for bert: the families llama, mistral"):
        plan("simcse", options=both)
    config = base / "config.json"
    said = json.loads(config.read_text())
    config.write_text(json.dumps({"model_type": "gemma3", "text_config": said}))
    with pytest.raises(CseError, match="a model of texts and something else"):
        plan(model=base, pool=LAST)


def test_a_tokenizer_without_an_end_token_is_refused_before_weights_are_read(
    tmp_path: Path,
) -> None:
    base = Path(make_decoder(tmp_path / "base", "qwen3"))
    data = tmp_path / "texts.txt"
    data.write_text("ba\nbe\n")
    plan = partial(cse.plan, model=base, data=data, dev="none", pool=LAST)
    (base / "model.safetensors").unlink()
    plan()
    config = base / "tokenizer_config.json"
    said = {k: v for k, v in json.loads(config.read_text()).items() if k != "eos_token"}
    config.write_text(json.dumps(said))
    with pytest.raises(CseError, match="pool.last-token: needs.* set eos_token in its tokenizer"):
        plan()
    plan(options={"pool.last-token.end": False})
    with pytest.raises(CseError, match="^there: the tokenizer has no end token"):
        TextTokenizer(load_tokenizer(base)).end_rows("there")


def test_the_mean_leaves_the_instruction_out_and_counts_the_end() -> None:
    tokenizer = TextTokenizer(make_tokenizer(), "ba be:")
    tokenizer.end_rows("here")
    tokens = tokenizer.wrap(tokenizer.content(["bi bo", "", "ga"]))
    states = torch.arange(len(tokens.ids), dtype=torch.float32)[:, None]
    setup: Any = SimpleNamespace(dimension=1, tokenizer=tokenizer)
    pooled = Mean(MeanOptions(include_prompt=False), setup).pool(Hidden(states, {}), tokens)
    lead = 1 + len(tokenizer.prompt_ids("ba be:"))
    rows = states.squeeze(1).split(tokens.lengths.tolist())
    assert len(rows[1]) == lead + 1
    torch.testing.assert_close(pooled.squeeze(1), torch.stack([row[lead:].mean() for row in rows]))
    tokenizer.prompt = ""
    bare = tokenizer.wrap(tokenizer.content(["bi bo"]))
    states = states[: len(bare.ids)]
    whole = Mean(MeanOptions(include_prompt=False), setup).pool(Hidden(states, {}), bare)
    assert float(whole) == float(states.mean()), "a row without a prompt has all of its tokens"


def test_queries_have_an_instruction_that_the_folder_keeps(tmp_path: Path) -> None:
    queries, documents = sentences(8), sentences(8, seed=1)
    data = tmp_path / "pairs.jsonl"
    rows = [{"text": q, "positive": d} for q, d in zip(queries, documents, strict=True)]
    data.write_text("\n".join(map(json.dumps, rows)))
    base, asked = make_decoder(tmp_path / "base", "qwen3"), "Instruct: find.\nQuery:"
    options = OPTIONS | {"train.max_steps": 1, "train.lr": 0.0, "train.batch_size": 8}
    options["model.max_length"] = 48
    train = partial(cse.train, "pairs", model=base, dev="none", pool=LAST)
    run = train(data=data, out=tmp_path / "run", options=options | {"views.anchor.prompt": asked})
    said = json.loads((run.model / "config_sentence_transformers.json").read_text())
    assert said["prompts"] == {"query": asked} and said["default_prompt_name"] is None
    found = cse.load(run.model, prompt="query").encode(TEXTS)
    np.testing.assert_allclose(theirs(run.model, prompt_name="query"), found, atol=1e-5, rtol=0)
    assert float(np.abs(found - theirs(run.model)).max()) > 1e-3
    data.write_text("\n".join(json.dumps({**r, "text": asked + r["text"]}) for r in rows))
    by_hand = train(data=data, out=tmp_path / "by-hand", options=options)
    losses = [metrics(each.folder)[-1]["loss"] for each in (run, by_hand)]
    assert losses[0] == losses[1] and "prompt" in (run.folder / "run.toml").read_text()
    data.write_text("\n".join(map(json.dumps, rows)))
    bare = train(data=data, out=tmp_path / "bare", options=options)
    assert metrics(bare.folder)[-1]["loss"] != losses[0]
