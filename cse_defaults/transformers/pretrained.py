"""Loading encoders and tokenizers from their folders, with a line for whatever goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import normalizers
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedModel,
)
from transformers import PreTrainedTokenizerBase as Tokenizer

from cse_core.errors import CseError
from cse_core.files import SUMS, read_json, verify_checksums
from cse_core.weights import check_finite
from cse_defaults.transformers.model_files import DECODERS, model_folder

WHERE = "model.name"

_DROPOUTS = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "hidden_dropout", "attention_dropout"),
    *("embedding_dropout", "mlp_dropout", "embd_pdrop", "attn_pdrop", "resid_pdrop"),
    *("dropout", "dropout_rate"),
)
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_DAMAGED = f"copy the folder again, or remove its {SUMS} to use it as it is"
_TOKENIZER_FILES = (
    *("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "source.spm"),
    *("sentencepiece.bpe.model", "tokenizer.model"),
)


def load_model(
    path: str | Path,
    *,
    from_scratch: bool = False,
    dropout: float | None = None,
    seed: int = 0,
    head: bool = False,
    direction: str | None = None,
) -> tuple[PreTrainedModel, bool]:
    """Load a Hugging Face encoder in fp32, with its pooling layer where the weights hold one.

    Weights that are pickled, cut short or do not fit are refused; remote code is never run.

    Returns:
        The model, and whether the weights hold all of it: of an encoder whether its pooling layer,
        of one with a head whether that.

    Args:
        path: A folder with ``config.json`` and safetensors weights.
        from_scratch: Read the configuration alone and draw the weights from ``seed``.
        dropout: Sets every dropout probability of the configuration; None leaves them.
        seed: Seeds weights that are drawn.
        head: With the head that predicts masked tokens, in decoders the next one, drawn where the
            weights hold none.
        direction: ``causal`` or ``bidirectional`` attention of a decoder; None leaves it.
    """
    folder = model_folder(Path(path), str(path))
    name = str(folder)
    drawn: list[str] = []
    with translate_load_errors(name):
        config = load_config(path)
        kind: Any = headed(config) if head else AutoModel
        if direction is not None:
            _set_direction(config, causal=direction == "causal")
        if getattr(config, "attn_logit_softcapping", None) is not None:
            config._attn_implementation = "eager"  # older transformers leave the cap out elsewhere
        if not from_scratch:
            check_weights(folder, config)
            if wrong := verify_checksums(folder):
                what = f"is not what was saved: {wrong}"
                raise CseError(what, where=WHERE, value=name, hint=_DAMAGED)
        if dropout is not None:
            _set_dropout(config, dropout)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if from_scratch:
                model = kind.from_config(config, dtype=torch.float32, trust_remote_code=False)
            else:
                model, report = kind.from_pretrained(
                    name,
                    config=config,
                    dtype=torch.float32,
                    use_safetensors=True,
                    trust_remote_code=False,
                    local_files_only=True,
                    ignore_mismatched_sizes=True,
                    output_loading_info=True,
                )
                if head:
                    inner = f"{model.base_model_prefix}."
                    drawn = [k for k in report["missing_keys"] if not k.startswith(inner)]
                    report["missing_keys"] = {*report["missing_keys"]} - {*drawn}
                check_fit(report, name)
                check_finite(dict(model.named_parameters()), name)
        for tensor in (*model.parameters(), *model.buffers()):
            tensor.data = tensor.data.clone()  # what is mapped ends the process if its file is cut
    if head:
        return model, not (from_scratch or drawn)
    whole = not from_scratch and not any(k.startswith("pooler.") for k in report["missing_keys"])
    if not whole and getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model, whole


def headed(config: Any) -> Any:
    """Return the class of transformers that has a head to predict tokens, masked or the next."""
    return AutoModelForCausalLM if config.model_type in DECODERS else AutoModelForMaskedLM


def load_config(path: str | Path) -> Any:
    """Return the configuration of a folder's encoder, without how its attention was computed."""
    name = str(model_folder(Path(path), str(path)))
    config = AutoConfig.from_pretrained(name, trust_remote_code=False, local_files_only=True)
    config._attn_implementation = None  # may name a kernel of the hub
    return config


def load_tokenizer(path: str | Path, *, lower_case: bool = False) -> Tokenizer:
    """Load the fast tokenizer of an encoder's folder; ``lower_case`` lower-cases its texts."""
    folder = model_folder(Path(path), str(path))
    name = str(folder)
    if not any((folder / file).exists() for file in _TOKENIZER_FILES):
        hint = "copy the encoder's tokenizer.json and tokenizer_config.json into it"
        raise CseError("no tokenizer in the folder", where=WHERE, value=name, hint=hint)
    with translate_load_errors(name, part="the tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(
            name, use_fast=True, trust_remote_code=False, local_files_only=True
        )
        if lower_case:
            backend = tokenizer.backend_tokenizer
            present = [] if backend.normalizer is None else [backend.normalizer]
            backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *present])
    return tokenizer


def check_weights(folder: Path, config: Any) -> None:
    """Refuse a folder without weights, with pickled ones, or smaller ones than its config."""
    files = [folder / _WEIGHTS[0]]
    if not files[0].is_file() and (index := folder / _WEIGHTS[1]).is_file():
        named = read_json(index, str(folder), kind=dict).get("weight_map")
        names = set(map(str, named.values())) if isinstance(named, dict) else {"nothing"}
        files = [folder / Path(name).name for name in sorted(names)]
        wrong = [name for name in names if not name.endswith(".safetensors") or "/" in name]
        if wrong or (wrong := [path.name for path in files if not path.is_file()]):
            what = f"{index.name} names {wrong[0]}, which is not a safetensors file of the folder"
            hint = "copy the whole model folder again, or convert pickled weights to safetensors"
            raise CseError(what, where=WHERE, value=str(folder), hint=hint)
    elif not files[0].is_file():
        what = "no weights in the folder"
        hint = "put model.safetensors there, or add --set model.from_scratch=true"
        if any((folder / file).exists() for file in _PICKLED):
            what = "the weights are pickled, and pickles are never loaded"
            hint = "convert pytorch_model.bin to model.safetensors first"
        raise CseError(what, where=WHERE, value=str(folder), hint=hint)
    shapes: list[list[int]] = []
    for file in files:
        with safe_open(file, "pt") as tensors:
            shapes += [tensors.get_slice(key).get_shape() for key in tensors.keys()]
    largest = max((size for shape in shapes for size in shape), default=0)
    sizes = dict.fromkeys(("vocab_size", "hidden_size", "intermediate_size"), largest)
    for key, most in {"num_hidden_layers": len(shapes), **sizes}.items():
        if isinstance(size := getattr(config, key, None), int) and size > most > 0:
            what = f"config.json says {key} = {size:,}, and the weights have {most:,} at most"
            hint = "copy the config.json that belongs to the weights"
            raise CseError(what, where=WHERE, value=str(folder), hint=hint)


def check_fit(report: dict[str, Any], name: str) -> None:
    """Refuse weights that would leave a part of the encoder as it was drawn."""
    wrong = sorted(str(key[0]) for key in report["mismatched_keys"])
    missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
    if wrong or missing:
        what = f"{wrong[0]} has another shape" if wrong else f"{missing[0]} is missing"
        what = f"the weights do not fit config.json: {what}, and {len(wrong + missing) - 1} more"
        hint = "copy the config.json that belongs to the weights"
        raise CseError(what, where=WHERE, value=name, hint=hint)


@contextmanager
def translate_load_errors(name: str, part: str = "the model") -> Iterator[None]:
    """Turn what transformers raises over a model's files into one line."""
    try:
        yield
    except CseError:
        raise
    except Exception as error:  # whatever the libraries make of other people's files
        raise _explanation(error, name, part) from error


def _explanation(error: Exception, name: str, part: str) -> CseError:
    text = " ".join(str(error).split())
    said = text.split(". ")[0][:240] or type(error).__name__
    if isinstance(error, KeyError | AttributeError | IndexError | ZeroDivisionError):
        said = f"{type(error).__name__}: {said}"
    what, hint = f"{part} cannot be loaded: {said}", None
    if isinstance(error, SafetensorError):
        what = f"the weights are damaged or cut short ({error})"
        hint = "copy model.safetensors again"
    elif isinstance(error, json.JSONDecodeError):
        what, hint = f"a file of {part} is not valid JSON ({error})", "copy it again"
    elif "trust_remote_code" in text:
        what = f"{part} needs custom code, which is never run"
        hint = "name a model that transformers supports without custom code"
    elif "SentencePiece" in text:
        what, hint = f"{part} needs the package sentencepiece", "pip install sentencepiece"
    else:
        hint = "check config.json and the other files in the folder"
    return CseError(what, where=WHERE, value=name, hint=hint)


def _set_direction(config: Any, *, causal: bool) -> None:
    """Let tokens see the whole row, or those before them alone; the saved configuration says so.

    A sliding window of both sides is none that a decoder was trained with: it then has no end.
    """
    config.is_causal = causal
    if causal and getattr(config, "use_bidirectional_attention", None):  # EmbeddingGemma
        config.use_bidirectional_attention = False
    if not causal and getattr(config, "sliding_window", None) is not None:
        config.sliding_window = config.max_position_embeddings


def _set_dropout(config: Any, p: float) -> None:
    known = [key for key in _DROPOUTS if isinstance(getattr(config, key, None), int | float)]
    if not known:
        what = f"the configuration of {config.model_type} has no dropout to set"
        raise CseError(what, where="model.dropout", value=p, hint="leave model.dropout out")
    for key in known:
        setattr(config, key, float(p))
