"""What a model's config.json says before anything is loaded: no encoder, or none that can be."""

from __future__ import annotations

from cse_core.errors import CseError, truncate_repr
from cse_core.recipes.model_facts import find_model
from cse_core.registry.registry import Registry
from cse_core.runtime.model_files import model_folder, read_json

_SIZES = (
    *("hidden_size", "dim", "d_model", "n_embd", "embedding_size", "intermediate_size"),
    *("num_hidden_layers", "n_layers", "n_layer", "num_attention_heads", "n_heads", "n_head"),
    *("vocab_size", "max_position_embeddings", "n_positions"),
)
_LARGEST_SIZE = 10**8
_DECODERS = ("ForCausalLM", "LMHeadModel", "DoubleHeadsModel", "ForConditionalGeneration")
"""Ends of the names of architectures that continue texts."""


def check_config(name: str, registry: Registry) -> None:
    """Refuse a model's folder whose config has sizes of no encoder, or says that it is a decoder.

    Raises:
        CseError: What is wrong; nothing is looked at where the name is one of the hub.
    """
    folder = find_model(name, registry)
    if folder is None:
        return
    config = read_json(model_folder(folder, name) / "config.json", name, kind=dict)
    for key in _SIZES:
        size = config.get(key)
        if size is not None and (type(size) is not int or not 1 <= size <= _LARGEST_SIZE):
            raise CseError(
                f"in its config.json {key} must be an integer from 1 to {_LARGEST_SIZE:,}, "
                f"not {truncate_repr(size, 60)}",
                where="model.name",
                value=name,
                hint="copy the config.json that belongs to the weights",
            )
    architectures = config.get("architectures")
    heads = [str(each) for each in architectures] if isinstance(architectures, list) else []
    what = None
    if config.get("is_encoder_decoder") is True:
        what = "an encoder with a decoder"
    elif config.get("is_decoder") is True or any(each.endswith(_DECODERS) for each in heads):
        what = "a decoder, which reads in one direction"
    if what is not None:
        what = f"is {what}: {', '.join(heads) or config.get('model_type')}"
        hint = "name a text encoder such as bert-base-uncased"
        raise CseError(what, where="model.name", value=name, hint=hint)
