"""Files and folders that a table of inputs names under ``made``, by what makes them."""

import contextlib
import gzip
import json
import os
import random
import shutil
import socket
import zipfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from cse_core.loading import package_path
from cse_core.records import EncoderSpec

Maker = Callable[[Path], None]
LINES = b"a text\nanother text\n"
TABLE = "bert.embeddings.word_embeddings.weight"
LAYER = "bert.encoder.layer.1.attention.output.dense.weight"


@cache
def starter_folder() -> Path:
    from cse_cli.plugins.installed import Installed

    return package_path(Installed().registry.one(EncoderSpec, "starter").spec.path)


def encoder(path: Path) -> None:
    shutil.copytree(starter_folder(), path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(path.parent):
        made.bind(path.name)


def huge_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def links_in_a_circle(path: Path) -> None:
    """Make a folder with a link to itself, and a text file beside it."""
    path.mkdir()
    (path / "again").symlink_to(path, target_is_directory=True)
    (path / "texts.txt").write_bytes(LINES * 4)


def two_links(path: Path) -> None:
    other = path.with_name(f"other-{path.name}")
    path.symlink_to(other.name)
    other.symlink_to(path.name)


def gz_bomb(path: Path, chunk: bytes, times: int) -> None:
    path.write_bytes(gzip.compress(chunk, 1) * times)


def gz_cut_short(path: Path) -> None:
    whole = gzip.compress(os.urandom(2000).hex().encode())
    path.write_bytes(whole[: len(whole) // 2])


def a_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("texts.txt", "a text\n")


def parquet(path: Path, columns: dict[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)


def parquet_of_texts(path: Path) -> None:
    """Write twenty rows, their text in the third column."""
    texts = [f"a text of number {n}" for n in range(20)]
    parquet(path, {"id": list(range(20)), "when": [0.5] * 20, "text": texts})


def long_texts(path: Path) -> None:
    """Write a text of a megabyte that hardly packs, which a hundred thousand rows hold."""
    import pyarrow as pa

    text = random.Random(0).randbytes(500_000).hex()
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 10**5, pa.int8()), [text])
    parquet(path, {"text": values})


def parquet_without_rows(path: Path) -> None:
    import pyarrow as pa

    parquet(path, {"text": pa.array([], pa.string())})


def parquet_changed(path: Path, change: Callable[[bytes], bytes]) -> None:
    parquet_of_texts(path)
    path.write_bytes(change(path.read_bytes()))


def written(content: bytes) -> Maker:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


def linked(target: str) -> Maker:
    return lambda path: path.symlink_to(target or path.name)


MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2Model", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
    "gpt2 that continues texts": ("GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
    "llama": ("LlamaModel", {}),
    "llama that continues texts": ("LlamaForCausalLM", {}),
    "mistral": ("MistralModel", {"num_key_value_heads": 2}),
    "qwen2": ("Qwen2Model", {"num_key_value_heads": 2}),
    "opt": ("OPTModel", {"ffn_dim": 32, "word_embed_proj_dim": 32}),
    "bloom": ("BloomModel", {"n_layer": 2, "n_head": 2}),
    **{
        title: (name, {"d_model": 32, "d_ff": 32, "num_layers": 2, "num_heads": 2, "d_kv": 16})
        for title, name in {
            "t5": "T5Model", "t5 that continues texts": "T5ForConditionalGeneration",
            "t5 without its decoder": "T5EncoderModel",
        }.items()
    },
    "bart": ("BartModel", {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
                           "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}),
    "bert": ("BertModel", {}),
    "bert with causal attention": ("BertModel", {"is_decoder": True}),
    "roberta": ("RobertaModel", {}),
    "distilbert": ("DistilBertModel", {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}),
    "albert": ("AlbertModel", {"embedding_size": 32}),
    "electra": ("ElectraModel", {"embedding_size": 32}),
    "modernbert": ("ModernBertModel", {}),
    "clip": ("CLIPVisionModel", {}),
    "vit": ("ViTModel", {}),
}  # fmt: skip
"""Classes of transformers, and how they are made tiny."""
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 32, "pad_token_id": 0}  # fmt: skip


def vocabulary_size() -> int:
    config = json.loads((starter_folder() / "config.json").read_text("utf-8"))
    return int(config["vocab_size"])


def transformers_model(path: Path, name: str) -> None:
    """Save a tiny model with random weights, and the embedded encoder's tokenizer beside it."""
    import torch
    import transformers

    model, sizes = MODELS[name]
    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()
    made = getattr(transformers, model)
    config = made.config_class(**{**SIZES, "vocab_size": vocabulary_size(), **sizes})
    made(config).save_pretrained(path)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(starter_folder() / file, path)


def with_weights(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    from safetensors.torch import load_file, save_file

    encoder(path)
    tensors = load_file(path / "model.safetensors")
    change(tensors)
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})


def both_infinities(held: dict[str, Any]) -> None:
    held[LAYER][0, 0], held[LAYER][0, 1] = float("inf"), float("-inf")


def smaller_table(path: Path) -> None:
    """Cut the embedding matrix, and say so in the config."""

    def change(held: dict[str, Any]) -> None:
        for name in [name for name in held if held[name].shape[:1] == (vocabulary_size(),)]:
            held[name] = held[name][:500].contiguous()

    with_weights(path, change)
    config = json.loads((path / "config.json").read_text("utf-8"))
    (path / "config.json").write_text(json.dumps({**config, "vocab_size": 500}))


def cse_model(path: Path) -> None:
    encoder(path)
    row = {"use": "mean", "name": "mean", "distribution": "cse-toolkit", "options": {}}
    manifest = {"format": 1, "max_length": 64, "row": row, "heads": [], "slice": None}
    (path / "cse.json").write_text(json.dumps({**manifest, "origin": "starter", "about": {}}))


def sentence_transformers_model(path: Path, weight: float | None = None) -> None:
    """Copy the embedded encoder, with a pooling module and a dense one."""
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
    kernel = torch.eye(8, 256) if weight is None else torch.full((8, 256), weight)
    weights = {"linear.weight": kernel, "linear.bias": torch.zeros(8)}
    save_file(weights, path / "2_Dense" / "model.safetensors")
    (path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64}))


def encoder_with(path: Path, put: Maker, *files: str) -> None:
    encoder(path)
    for file in files:
        (path / file).unlink()
        put(path / file)


def weights_changed(change: Callable[[dict[str, Any]], object]) -> Maker:
    return partial(with_weights, change=change)


nan, inf = float("nan"), float("inf")
MAKERS: dict[str, Maker] = {
    "encoder": encoder,
    "fifo": os.mkfifo,
    "socket": a_socket,
    "endless": linked("/dev/zero"),
    "link to itself": linked(""),
    "link to ok.txt": linked("ok.txt"),
    "two links to each other": two_links,
    "links in a circle": links_in_a_circle,
    "huge file": huge_file,
    "bytes that are no text": written(b"caf\xe9 \xff\xfe\n" * 3),
    "UTF-16": written(LINES.decode().encode("utf-16")),
    "UTF-32": written(LINES.decode().encode("utf-32-le")),
    "latin-1": written("caf\xe9 cr\xe8me\n".encode("latin-1") * 9),
    "a zip": a_zip,
    "gz bomb of zeros": partial(gz_bomb, chunk=bytes(2**24), times=64),
    "gz bomb of one line": partial(gz_bomb, chunk=b"a" * 2**24, times=32),
    "gz of gz": written(gzip.compress(gzip.compress(LINES * 9))),
    # In two members, as ``cat a.gz b.gz`` gives them.
    "gz of texts": written(gzip.compress(b"a x text\n" * 9) + gzip.compress(b"a y text\n" * 9)),
    "gz cut short": gz_cut_short,
    "gz with bytes behind": written(gzip.compress(LINES * 9) + b"more\n"),
    "parquet of texts": parquet_of_texts,
    "parquet with nulls in the middle": partial(
        parquet, columns={"text": [f"a text {n}" if n % 5 else None for n in range(40)]}
    ),
    "parquet of one long text many times": long_texts,
    "parquet of lists": partial(parquet, columns={"text": [["a"], ["b", "c"]] * 5}),
    "parquet without rows": parquet_without_rows,
    "parquet without columns": partial(parquet, columns={}),
    "parquet cut short": partial(parquet_changed, change=lambda held: held[:400]),
    "parquet flipped": partial(
        parquet_changed,
        change=lambda held: held[:20] + bytes(255 - byte for byte in held[20:120]) + held[120:],
    ),
    **{name: partial(transformers_model, name=name) for name in MODELS},
    "NaN among the weights": weights_changed(lambda held: held[LAYER][3].fill_(nan)),
    "NaN in the word table": weights_changed(lambda held: held[TABLE][-1].fill_(nan)),
    "infinity among the weights": weights_changed(lambda held: held[LAYER][0].fill_(inf)),
    "both infinities among the weights": weights_changed(both_infinities),
    "a layer's weights missing": weights_changed(lambda held: held.pop(LAYER)),
    "no weights at all in the file": weights_changed(dict.clear),
    "weights of another shape": weights_changed(
        lambda held: held.update({LAYER: held[LAYER][:, :100].contiguous()})
    ),
    "weights of integers": weights_changed(lambda held: held.update({LAYER: held[LAYER].long()})),
    "a smaller word table": smaller_table,
    "a cse model": cse_model,
    "a sentence-transformers model": sentence_transformers_model,
    "NaN in a dense module": partial(sentence_transformers_model, weight=nan),
    "a fifo among the weights": lambda path: encoder_with(path, os.mkfifo, "model.safetensors"),
    "a fifo for a config": lambda path: encoder_with(path, os.mkfifo, "config.json"),
    "a fifo for a tokenizer": lambda path: encoder_with(
        path, os.mkfifo, "tokenizer.json", "vocab.txt"
    ),
    "endless settings of a tokenizer": lambda path: encoder_with(
        path, linked("/dev/zero"), "tokenizer_config.json"
    ),
}
"""What makes what, by the name in a table."""
