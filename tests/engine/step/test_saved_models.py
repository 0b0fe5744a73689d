"""The saved model encodes as the trained one did."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModel, BertModel

from cse_cli.models.saved_model import load
from cse_core.errors import CseError
from cse_core.files import HEADS
from cse_engine.run.export import inference_encoder, save_model
from tests.fixtures.tiny import CPU, WORDS, Bench, Build, registry

RECIPE = '[[pool]]\nuse = "cut"\n[[pool]]\nuse = "scaled"\n[[pool]]\nuse = "mlp"\nkeep = "always"\n'


def test_poolers_and_heads_keep_their_weights(encoder: str, folder: Path) -> None:
    bench = Bench(encoder, folder, RECIPE, "train.lr=1e-1", "inference.slice=true")
    for step in range(3):
        bench.step(step)
    assert not torch.allclose(bench.part("pool.scaled").scale, torch.ones(32), atol=1e-2)
    texts = bench.columns["text"]
    trained = bench.assembly.online.encode(texts, CPU)
    save_model(bench.assembly, folder / "model", chosen="")
    model = load(str(folder / "model"), registry())
    torch.testing.assert_close(torch.from_numpy(model.encode(texts)), trained)
    made = model.sentence_encoder
    assert not made.pooler.training and not made.heads["mlp"].training
    weights = folder / "model" / HEADS
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(CseError, match="heads.safetensors is not what was written"):
        load(str(folder / "model"), registry())
    (folder / "model" / "checksums.json").unlink()
    with pytest.raises(CseError, match="cannot be read"):
        load(str(folder / "model"), registry())
    save_file({}, weights)
    with pytest.raises(CseError, match="scaled are missing or do not fit"):
        load(str(folder / "model"), registry())


@pytest.mark.parametrize("given", [None, 10])
def test_the_length_of_inference(encoder: str, folder: Path, given: int | None) -> None:
    sets = ["model.max_length=6"] + ([f"inference.max_length={given}"] if given else [])
    bench = Bench(encoder, folder, '[[pool]]\nuse = "mean"\n', *sets)
    first = " ".join(WORDS[:8])
    texts = [f"{first} {WORDS[8]}", f"{first} {WORDS[9]}", f"{first} {WORDS[10]} {WORDS[11]}"]
    scored = inference_encoder(bench.assembly)
    longest = given or bench.assembly.online.encoder.max_positions
    assert scored.max_length == longest > bench.assembly.online.max_length == 6
    vectors = scored.encode(texts, CPU)
    assert torch.equal(vectors[0], vectors[1]) == (given is not None)
    assert torch.equal(vectors[0], vectors[2]) == (given is not None)
    save_model(bench.assembly, folder / "model", chosen="")
    model = load(str(folder / "model"), registry())
    assert model.sentence_encoder.max_length == longest
    torch.testing.assert_close(torch.from_numpy(model.encode(texts)), vectors)
    limits = json.loads((folder / "model/sentence_bert_config.json").read_text())
    assert limits["max_seq_length"] == longest


def test_an_inference_pooler_that_nothing_trains_is_refused(build: Build) -> None:
    recipe = '[[pool]]\nuse = "cls"\n[inference]\npool = "scaled"\n'
    with pytest.raises(CseError) as refused:
        build(recipe)
    assert refused.value.line() == (
        "inference.pool: has weights of its own, which this run would not train (got 'scaled'); "
        "train with it: --pool scaled, or choose another for inference.pool"
    )
    assert build(recipe.replace('"scaled"', '"mean"'))


def test_the_pooling_layer_of_a_model_is_kept(encoder: str, folder: Path) -> None:
    """ONNX takes no arguments for the model; without them and the layer, others would draw it."""
    BertModel.from_pretrained(encoder).save_pretrained(folder / "base")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(Path(encoder) / name, folder / "base")
    bench = Bench(str(folder / "base"), folder, '[[pool]]\nuse = "mean"\n')
    bench.step(0)
    save_model(bench.assembly, folder / "model", chosen="")
    made, report = AutoModel.from_pretrained(folder / "model", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    own = bench.assembly.online.encoder.own_pooler
    assert own is not None and torch.equal(made.pooler.dense.weight, own["weight"])
    assert "model_args" not in (folder / "model/sentence_bert_config.json").read_text()
    save_model(
        Bench(encoder, folder, '[[pool]]\nuse = "mean"\n').assembly, folder / "other", chosen=""
    )
    assert "model_args" in (folder / "other/sentence_bert_config.json").read_text()
