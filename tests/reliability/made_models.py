"""Folders of models that others made: decoders, broken weights, other tokenizers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.reliability.makers import MAKERS, encoder, maker, starter_folder

_TINY: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
    "llama": ("Llama", {}),
    "mistral": ("Mistral", {"num_key_value_heads": 2}),
    "qwen2": ("Qwen2", {"num_key_value_heads": 2}),
    "opt": ("OPT", {"ffn_dim": 32, "word_embed_proj_dim": 32}),
    "bloom": ("Bloom", {"n_layer": 2, "n_head": 2}),
    "t5": ("T5", {"d_model": 32, "d_ff": 32, "num_layers": 2, "num_heads": 2, "d_kv": 16}),
    "bart": ("Bart", {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
                      "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}),
    "bert": ("Bert", {}),
    "bert with causal attention": ("Bert", {"is_decoder": True}),
    "roberta": ("Roberta", {}),
    "distilbert": ("DistilBert", {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}),
    "albert": ("Albert", {"embedding_size": 32}),
    "electra": ("Electra", {"embedding_size": 32}),
    "modernbert": ("ModernBert", {}),
    "clip": ("CLIPVision", {}),
    "vit": ("ViT", {}),
}  # fmt: skip
_SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
          "intermediate_size": 32, "pad_token_id": 0}  # fmt: skip


def _words() -> int:
    """Return how many words the embedded encoder has."""
    config = json.loads((starter_folder() / "config.json").read_text("utf-8"))
    return int(config["vocab_size"])


def transformers_model(path: Path, name: str, ending: str = "Model") -> None:
    """Save a tiny model with random weights, and the embedded encoder's tokenizer beside it."""
    import torch
    import transformers

    family, sizes = _TINY[name]
    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()
    config = getattr(transformers, f"{family}Config")(**{**_SIZES, "vocab_size": _words(), **sizes})
    getattr(transformers, family + ending)(config).save_pretrained(path)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(starter_folder() / file, path)


def _register(title: str, name: str, ending: str) -> None:
    @maker(title)
    def made(path: Path) -> None:
        transformers_model(path, name, ending)


for _name in _TINY:
    _register(_name, _name, "Model")
_register("gpt2 that continues texts", "gpt2", "LMHeadModel")
_register("llama that continues texts", "llama", "ForCausalLM")
_register("t5 that continues texts", "t5", "ForConditionalGeneration")
_register("t5 without its decoder", "t5", "EncoderModel")


def _with_tensors(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Make a copy of the embedded encoder with other weights."""
    from safetensors.torch import load_file, save_file

    encoder(path)
    tensors = load_file(path / "model.safetensors")
    change(tensors)
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})


_TABLE = "bert.embeddings.word_embeddings.weight"
_LAYER = "bert.encoder.layer.1.attention.output.dense.weight"


@maker("NaN among the weights")
def nan_weights(path: Path) -> None:
    _with_tensors(path, lambda held: held[_LAYER][3].fill_(float("nan")))


@maker("NaN in the word table")
def nan_table(path: Path) -> None:
    _with_tensors(path, lambda held: held[_TABLE][-1].fill_(float("nan")))


@maker("infinity among the weights")
def infinite_weights(path: Path) -> None:
    _with_tensors(path, lambda held: held[_LAYER][0].fill_(float("inf")))


@maker("both infinities among the weights")
def infinities(path: Path) -> None:
    def change(held: dict[str, Any]) -> None:
        held[_LAYER][0, 0], held[_LAYER][0, 1] = float("inf"), float("-inf")

    _with_tensors(path, change)


@maker("a layer's weights missing")
def missing_weights(path: Path) -> None:
    _with_tensors(path, lambda held: held.__delitem__(_LAYER))


@maker("no weights at all in the file")
def no_weights(path: Path) -> None:
    _with_tensors(path, dict.clear)


@maker("weights of another shape")
def other_shape(path: Path) -> None:
    _with_tensors(path, lambda held: held.update({_LAYER: held[_LAYER][:, :100].contiguous()}))


@maker("a smaller word table")
def smaller_table(path: Path) -> None:
    def change(held: dict[str, Any]) -> None:
        for name in [name for name in held if held[name].shape[:1] == (_words(),)]:
            held[name] = held[name][:500].contiguous()

    _with_tensors(path, change)
    config = json.loads((path / "config.json").read_text("utf-8"))
    (path / "config.json").write_text(json.dumps({**config, "vocab_size": 500}))


@maker("weights of integers")
def whole_numbers(path: Path) -> None:
    _with_tensors(path, lambda held: held.update({_LAYER: held[_LAYER].long()}))


@maker("a cse model")
def cse_model(path: Path) -> None:
    """The embedded encoder with a ``cse.json`` as ``cse train`` writes it."""
    encoder(path)
    row = {"use": "mean", "name": "mean", "distribution": "cse-toolkit", "options": {}}
    manifest = {"format": 1, "max_length": 64, "row": row, "heads": [], "slice": None}
    (path / "cse.json").write_text(json.dumps({**manifest, "starter": True, "about": {}}))


@maker("a sentence-transformers model")
def sentence_transformers_model(path: Path) -> None:
    """The embedded encoder with a pooling module and a dense one."""
    import torch
    from safetensors.torch import save_file

    encoder(path)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"}
    modules = [
        {"idx": n, "name": str(n), "path": folder, "type": f"sentence_transformers.models.{kind}"}
        for n, (folder, kind) in enumerate(kinds.items())
    ]
    (path / "modules.json").write_text(json.dumps(modules))
    for folder in ("1_Pooling", "2_Dense"):
        (path / folder).mkdir()
    pooling = {"word_embedding_dimension": 256, "pooling_mode_mean_tokens": True}
    (path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    dense = {"in_features": 256, "out_features": 8, "bias": True,
             "activation_function": "torch.nn.modules.activation.Tanh"}  # fmt: skip
    (path / "2_Dense" / "config.json").write_text(json.dumps(dense))
    weights = {"linear.weight": torch.eye(8, 256), "linear.bias": torch.zeros(8)}
    save_file(weights, path / "2_Dense" / "model.safetensors")
    (path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64}))


@maker("NaN in a dense module")
def nan_dense(path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    sentence_transformers_model(path)
    weights = {"linear.weight": torch.full((8, 256), torch.nan), "linear.bias": torch.zeros(8)}
    save_file(weights, path / "2_Dense" / "model.safetensors")


@maker("a fifo among the weights")
def fifo_weights(path: Path) -> None:
    encoder(path)
    (path / "model.safetensors").unlink()
    MAKERS["fifo"](path / "model.safetensors")


@maker("a fifo for a config")
def fifo_config(path: Path) -> None:
    encoder(path)
    (path / "config.json").unlink()
    MAKERS["fifo"](path / "config.json")


@maker("a fifo for a tokenizer")
def fifo_tokenizer(path: Path) -> None:
    encoder(path)
    for file in ("tokenizer.json", "vocab.txt"):
        (path / file).unlink()
        MAKERS["fifo"](path / file)


@maker("endless settings of a tokenizer")
def endless_settings(path: Path) -> None:
    encoder(path)
    (path / "tokenizer_config.json").unlink()
    (path / "tokenizer_config.json").symlink_to("/dev/zero")
