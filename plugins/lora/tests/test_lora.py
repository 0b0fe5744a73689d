"""Runs with low-rank adapters: what trains, what is saved, who loads it, what is refused."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import peft
import pytest
import torch
from cse_testkit import shared_encoder, tiny_corpus
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

import cse
from tests.fixtures.methods import refusal

TEXTS = list(tiny_corpus(40).column("text"))
SHORT = {
    "train.max_steps": 6, "train.batch_size": 8, "train.lr": 1e-2, "train.precision": "fp32",
    "train.save_steps": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def encoder() -> str:
    return str(shared_encoder())


@pytest.fixture(scope="module")
def run(encoder: str, tmp_path_factory: pytest.TempPathFactory) -> cse.Run:
    folder = tmp_path_factory.mktemp("run")
    (folder / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    return cse.train(
        "simcse", model=encoder, data=folder / "texts.txt", dev="none", adapter="lora",
        out=folder / "run", quiet=True, options=SHORT,
    )  # fmt: skip


def first_tokens(model: Any, folder: str) -> torch.Tensor:
    """Return the last state of [CLS] of a few texts, by transformers."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(TEXTS[:9], padding=True, return_tensors="pt")
    with torch.no_grad():
        states: torch.Tensor = model(**batch)[0][:, 0]
    return states


def test_the_saved_model_is_the_base_with_its_adapter(run: cse.Run, encoder: str) -> None:
    base = AutoModel.from_pretrained(encoder, add_pooling_layer=False).eval()
    plain = first_tokens(base, encoder)
    merged = AutoModel.from_pretrained(run.model, add_pooling_layer=False).eval()
    found = first_tokens(merged, encoder)
    adapted = peft.PeftModel.from_pretrained(base, str(run.model / "adapter")).eval()
    torch.testing.assert_close(first_tokens(adapted, encoder), found, rtol=1e-5, atol=1e-5)
    assert float((found - plain).abs().max()) > 1e-2
    ours = run.load().encode(TEXTS[:9])
    theirs = SentenceTransformer(str(run.model), device="cpu").encode(TEXTS[:9])
    np.testing.assert_allclose(ours, found.numpy(), atol=1e-5)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)

    merged_weights, before = (
        load_file(Path(p) / "model.safetensors") for p in (run.model, encoder)
    )
    assert merged_weights.keys() == before.keys()
    changed = {n for n, value in merged_weights.items() if not torch.equal(value, before[n])}
    assert changed == {
        f"encoder.layer.{layer}.attention.self.{name}.weight"
        for layer in range(2)
        for name in ("query", "value")
    }
    config = json.loads((run.model / "adapter/adapter_config.json").read_text())
    assert config["target_modules"] == ["query", "value"]
    assert config["base_model_name_or_path"] == Path(encoder).name, "no folder of this machine"


def test_the_plan_and_the_run_say_how_much_is_trained(run: cse.Run, encoder: str) -> None:
    model = AutoModel.from_pretrained(encoder, add_pooling_layer=False)
    added = 2 * 2 * 2 * 8 * 32  # layers, query and value, A and B, rank, hidden
    total = sum(each.numel() for each in model.parameters()) + added
    said = f"{added:,} of {total:,} parameters of the encoder"
    assert f"adapter.lora trains {said}" in run.messages
    few = {"data.limit": 64}
    plan = cse.plan("simcse", model=encoder, adapter="lora", options=few)
    assert f"adapter: {said} train" in str(plan).splitlines()
    assert plan.to_dict()["adapter"] == {"trained": added, "all": total}
    assert cse.plan("simcse", model=encoder, options=few).to_dict()["adapter"] is None


def test_only_its_matrices_have_moments_and_a_resumed_run_writes_the_same(
    run: cse.Run, tmp_path: Path
) -> None:
    saved = load_file(run.folder / "checkpoints/step-6/state.safetensors")
    held = {n.removeprefix("optimizer.").rpartition(":")[0] for n in saved if "exp_avg" in n}
    ours = {name for name in held if name.startswith("encoder.")}
    assert ours and all("lora_" in name for name in ours)
    assert held - ours == {"pool.mlp.stages.0.weight", "pool.mlp.stages.0.bias"}
    again = Path(shutil.copytree(run.folder, tmp_path / "again"))
    (again / "result.json").unlink()
    shutil.rmtree(again / "model")
    shutil.rmtree(again / "checkpoints/step-6")
    cse.resume(again, quiet=True)
    for file in ("model.safetensors", "adapter/adapter_model.safetensors",
                 "adapter/adapter_config.json"):  # fmt: skip
        assert (again / "model" / file).read_bytes() == (run.model / file).read_bytes(), file


def test_refusals_are_one_line(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from peft import LoraModel

    few = {"data.limit": 64}
    given: Any = {"model": encoder, "adapter": "lora", "options": few}
    wrong = {**given, "options": {**few, "adapter.lora.targets": ["query", "walue"]}}
    assert refusal(cse.plan, "simcse", **wrong) == (
        "adapter.lora.targets: BertModel has no linear layer of this name (got 'walue'); "
        "did you mean value?"
    )
    merging = {"train.merge": [0.5], "train.select_start": True}
    more = {"data": TEXTS, "dev": "none", "quiet": True, "options": {**SHORT, **merging}}
    assert refusal(cse.train, "simcse", **{**given, **more}).startswith(
        "train.merge: the mean of the matrices of adapter.lora is not the mean of what they change"
    )
    monkeypatch.setattr(LoraModel, "target_module_mapping", {})
    line = refusal(cse.plan, "simcse", **given)
    assert line.startswith("adapter.lora: BertModel cannot be adapted: ")
    assert line.endswith("name layers in targets: dense, key, query, value, or all-linear")
    monkeypatch.setitem(sys.modules, "peft", None)
    line = refusal(cse.plan, "simcse", **given)
    assert line.startswith("adapter.lora: the adapter lora needs peft: ")
    assert line.endswith("; pip install 'peft>=0.19'")
