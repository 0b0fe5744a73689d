"""Loading encoders and tokenizers from disk or the hub, with a line for whatever goes wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from cse_core.errors import CseError
from cse_core.files import SUMS, verify_checksums
from cse_core.runtime.hub import is_hub_reachable
from cse_core.runtime.model_files import model_folder

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
    path_or_name: str | Path,
    *,
    from_scratch: bool = False,
    dropout: float | None = None,
    seed: int = 0,
) -> PreTrainedModel:
    """Load a Hugging Face encoder in fp32, with its pooling layer where the weights hold one.

    Args:
        path_or_name: A folder with ``config.json`` and safetensors weights, or a name on the hub.
        from_scratch: Read the configuration alone and draw the weights from ``seed``.
        dropout: Sets every dropout probability of the configuration; None leaves them.
        seed: Seeds weights that are drawn.

    Raises:
        CseError: If files are missing, cut short or pickled, do not fit, or need remote code.
    """
    name = checked_name(path_or_name)
    folder = Path(name) if Path(name).is_dir() else None
    if folder is not None and not from_scratch:
        check_weights(folder)
        if wrong := verify_checksums(folder):
            raise CseError(
                f"is not what was saved: {wrong}", where=WHERE, value=name, hint=_DAMAGED
            )
    with translate_load_errors(name):
        local = folder is not None or not is_hub_reachable()
        config = AutoConfig.from_pretrained(name, trust_remote_code=False, local_files_only=local)
        if dropout is not None:
            _set_dropout(config, dropout)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if from_scratch:
                model = AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False)
            else:
                model, report = AutoModel.from_pretrained(
                    name,
                    config=config,
                    dtype=torch.float32,
                    use_safetensors=True,
                    trust_remote_code=False,
                    local_files_only=local,
                    ignore_mismatched_sizes=True,
                    output_loading_info=True,
                )
                check_fit(report, name)
        check_finite(dict(model.named_parameters()), name)
        for tensor in (*model.parameters(), *model.buffers()):
            tensor.data = tensor.data.clone()  # what is mapped ends the process if its file is cut
    drawn = from_scratch or any(key.startswith("pooler.") for key in report["missing_keys"])
    if drawn and getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model


def load_tokenizer(path_or_name: str | Path) -> Tokenizer:
    """Load the fast tokenizer of an encoder from its folder or by its name on the hub.

    Raises:
        CseError: If there is none, it is damaged, or it needs remote code.
    """
    name = checked_name(path_or_name)
    folder = Path(name)
    if folder.is_dir() and not any((folder / file).exists() for file in _TOKENIZER_FILES):
        hint = "copy the encoder's tokenizer.json and tokenizer_config.json into it"
        raise CseError("no tokenizer in the folder", where=WHERE, value=name, hint=hint)
    with translate_load_errors(name, part="the tokenizer"):
        return AutoTokenizer.from_pretrained(
            name,
            use_fast=True,
            trust_remote_code=False,
            local_files_only=folder.is_dir() or not is_hub_reachable(),
        )


def checked_name(path_or_name: str | Path) -> str:
    """Return the folder with the ``config.json`` of a model's folder, and another name as it is."""
    folder = Path(path_or_name).expanduser()
    return str(model_folder(folder, str(folder))) if folder.is_dir() else str(path_or_name)


def check_weights(folder: Path) -> None:
    """Refuse a folder without weights, or with pickled ones alone."""
    if any((folder / file).is_file() for file in _WEIGHTS):
        return
    what = "no weights in the folder"
    hint = "put model.safetensors there, or add --set model.from_scratch=true"
    if any((folder / file).exists() for file in _PICKLED):
        what = "the weights are pickled, and pickles are never loaded"
        hint = "convert pytorch_model.bin to model.safetensors first"
    raise CseError(what, where=WHERE, value=str(folder), hint=hint)


def check_finite(tensors: Mapping[str, torch.Tensor], name: str) -> None:
    """Refuse weights with NaN or infinity among them."""
    for key, tensor in tensors.items():
        if not math.isfinite(float(tensor.detach().sum(dtype=torch.float32))):
            what = f"the weights {key} are not all finite numbers"
            hint = "copy the whole model folder again, or use earlier weights"
            raise CseError(what, where=WHERE, value=name, hint=hint)


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
    elif Path(name).is_dir():
        hint = "check config.json and the other files in the folder"
    elif "safetensors" in text and "does not appear to have" in text:
        what = "the hub has only pickled weights, and pickles are never loaded"
        hint = "name a model with model.safetensors"
    elif isinstance(error, OSError):
        answers = is_hub_reachable()
        state = "the hub has no such model" if answers else "the hub cannot be reached"
        what = f"no folder of this name, and {state}"
        hint = "check the spelling and the network, or give the path of a downloaded folder"
    return CseError(what, where=WHERE, value=name, hint=hint)


def _set_dropout(config: Any, p: float) -> None:
    known = [key for key in _DROPOUTS if isinstance(getattr(config, key, None), int | float)]
    if not known:
        what = f"the configuration of {config.model_type} has no dropout to set"
        raise CseError(what, where="model.dropout", value=p, hint="leave model.dropout out")
    for key in known:
        setattr(config, key, float(p))
