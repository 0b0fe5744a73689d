"""A BERT in NumPy: the vectors of the loaded model, or none."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from cse_testkit import shared_encoder

import cse
from cse_cli.api import PROBE, Installed, Loading, few_texts_encoder

TEXTS = ["a lamp in the garden", "", "the", "Ünïcode, it's 北京 here", "bell " * 40, "a  b\tc"]


def saved(folder: Path, family: str, **changes: Any) -> str:
    """Save a small model with random weights that are far from zero."""
    words = Path(shared_encoder())
    vocabulary = len(json.loads((words / "tokenizer.json").read_text())["model"]["vocab"])
    kind = {"bert": "Bert", "roberta": "Roberta"}[family]
    sizes = {"vocab_size": vocabulary, "hidden_size": 32, "num_hidden_layers": 2,
             "num_attention_heads": 4, "intermediate_size": 48, "max_position_embeddings": 34,
             "layer_norm_eps": 1e-5, "pad_token_id": 1, **changes}  # fmt: skip
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**sizes))
    for weights in model.parameters():
        torch.nn.init.normal_(weights, std=0.3)
    model.save_pretrained(folder)
    for file in words.glob("*token*"):
        shutil.copy(file, folder)
    return str(folder)


def both(name: str, **how: Any) -> tuple[Any, Any]:
    """Return the encoder of the loaded model, and the one without torch."""
    loaded = cse.TextEncoder(cse.load(name, device="cpu", **how).loaded)
    probe = loaded([PROBE], role="query")[0].tolist()
    again = cse.TextEncoder(cse.load(name, device="cpu", **how).loaded)
    return again, few_texts_encoder(name, Installed().registry, Loading(**how), probe)


@pytest.mark.parametrize("how", [{}, {"max_length": 9, "pooling": "cls"}, {"prompt": "query: "}])
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_vectors_are_those_of_the_loaded_model(
    tmp_path: Path, family: str, how: dict[str, Any]
) -> None:
    loaded, few = both(saved(tmp_path / "model", family), **how)
    wanted, made = loaded(TEXTS, role="query"), few(TEXTS, role="query")
    np.testing.assert_allclose(made, wanted, atol=2e-6 * np.abs(wanted).max())
    assert few.note == loaded.note and few.similarity == loaded.similarity
    assert (few.texts, few.cut, few.tokens) == (loaded.texts, loaded.cut, loaded.tokens)


def test_cuts_prompts_and_lengths_of_a_saved_model(tmp_path: Path) -> None:
    """What its folder says of prompts, length 1 and the numbers that are kept."""
    folder = Path(saved(tmp_path / "model", "bert"))
    library = "sentence_transformers.models"
    modules = [{"idx": i, "name": str(i), "path": path, "type": f"{library}.{kind}"}
               for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"),
                                                 ("2_Normalize", "Normalize")])]  # fmt: skip
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    said = {"prompts": {"query": "ask: ", "document": "read: "}, "truncate_dim": 20}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(said))
    loaded, few = both(str(folder))
    for role in ("query", "document", None):
        made = few(TEXTS, role=role)
        np.testing.assert_allclose(made, loaded(TEXTS, role=role), atol=2e-6)
        assert made.shape == (len(TEXTS), 20)
    assert not np.allclose(few(TEXTS, role="query"), few(TEXTS, role="document"), atol=1e-3)


@pytest.mark.parametrize("changes", [{"hidden_act": "gelu_new"}, {"is_decoder": True}])
def test_what_it_does_not_understand_is_loaded(tmp_path: Path, changes: dict[str, Any]) -> None:
    _, few = both(saved(tmp_path / "model", "bert", **changes))
    assert few is None


def test_a_configuration_that_lacks_a_number_is_loaded(tmp_path: Path) -> None:
    """The library fills it in; here it is not guessed."""
    file = Path(saved(tmp_path / "model", "bert"), "config.json")
    file.write_text(file.read_text().replace('"layer_norm_eps"', '"other"'))
    assert both(str(file.parent))[1] is None


def test_another_vector_of_the_probe_is_not_trusted(tmp_path: Path) -> None:
    name, registry = saved(tmp_path / "model", "bert"), Installed().registry
    probe = cse.TextEncoder(cse.load(name, device="cpu").loaded)([PROBE], role="query")[0]
    assert few_texts_encoder(name, registry, Loading(), probe.tolist()) is not None
    other = probe.copy()
    other[3] += 1e-3 * np.abs(probe).max()
    for wrong in (other, probe[:-1]):
        assert few_texts_encoder(name, registry, Loading(), wrong.tolist()) is None
    for loading in (
        Loading(precision="bf16"),
        Loading(device="mps"),
        Loading(pooling="last-token"),
    ):
        assert few_texts_encoder(name, registry, loading, probe.tolist()) is None


def test_weights_that_are_missing_are_loaded_with_their_error(tmp_path: Path) -> None:
    name = saved(tmp_path / "model", "bert")
    Path(name, "model.safetensors").write_bytes(b"{}")
    assert few_texts_encoder(name, Installed().registry, Loading(), [0.0] * 32) is None


def test_torch_is_not_imported(tmp_path: Path) -> None:
    name = saved(tmp_path / "model", "bert")
    probe = cse.TextEncoder(cse.load(name, device="cpu").loaded)([PROBE], role="query")[0]
    code = """if True:
        import json, sys
        from cse_cli.api import Installed, Loading, few_texts_encoder
        name, probe = sys.argv[1], json.loads(sys.argv[2])
        encode = few_texts_encoder(name, Installed().registry, Loading(), probe)
        assert encode(["a lamp"], role="query").shape == (1, 32)
        print(sorted({"torch", "transformers", "scipy", "pyarrow", "datasets"} & {*sys.modules}))
    """
    words = [sys.executable, "-c", code, name, json.dumps(probe.tolist())]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
