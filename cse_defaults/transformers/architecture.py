"""What has to be known of a Hugging Face model to drive it from outside."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from cse_core.errors import CseError

Evidence = tuple[Tensor, Tensor, list[int]]
"""What a model does with a few rows: output states ``[T, H]``, token ids ``[T]``, rows' lengths."""


def unusable(what: str) -> CseError:
    """Return the error of a model that is not a text encoder."""
    hint = "name a text encoder such as bert-base-uncased"
    return CseError(what, where="model.name", hint=hint)


def forward_arguments(model: PreTrainedModel) -> frozenset[str]:
    """Return the names of the arguments of the model's forward pass.

    A model is refused that takes no word embeddings, or wants a decoder's input too.
    """
    name = type(model).__name__
    if getattr(model.config, "is_encoder_decoder", False):
        hint = "name an encoder such as bert-base-uncased"
        raise CseError(f"{name} is an encoder with a decoder", where="model.name", hint=hint)
    arguments = frozenset(inspect.signature(model.forward).parameters)
    if not {"inputs_embeds", "attention_mask"} <= arguments:
        raise unusable(f"{name} does not accept word embeddings (inputs_embeds)")
    return arguments


def word_table(model: PreTrainedModel) -> nn.Embedding:
    """Return the word-embedding table."""
    try:
        table = model.get_input_embeddings()
    except (NotImplementedError, AttributeError):
        table = None
    if not isinstance(table, nn.Embedding):
        raise unusable(f"{type(model).__name__} has no word-embedding table")
    return table


def embedding_layer(model: PreTrainedModel) -> nn.Module:
    """Return the module that embeds ids: the table with its positions, types and norm.

    That is the module which holds the table, or the table alone where the model itself holds it.
    """
    table: nn.Module = word_table(model)
    holders = (m for m in model.modules() if m is not model and table in m.children())
    return next(holders, table)


def take_pooler(model: PreTrainedModel) -> dict[str, Tensor] | None:
    """Take the model's own pooling layer off and return the weights of its dense layer.

    It would be trained and saved for nothing: vectors are made by poolers and heads. A head may
    start from these weights.
    """
    pooler = getattr(model, "pooler", None)
    if pooler is None:
        return None
    model.pooler = None
    dense = getattr(pooler, "dense", None)
    return dict(dense.state_dict()) if isinstance(dense, nn.Linear) else None


def position_range(model: PreTrainedModel) -> tuple[int, int]:
    """Return the id of a row's first position and how many positions a row may have.

    RoBERTa and its kin keep the ids up to the padding id for padding: 514 rows in the table are 512
    positions that begin at 2.
    """
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            return first, module.num_embeddings - first
    return 0, int(getattr(model.config, "max_position_embeddings", None) or sys.maxsize)


def freeze_all_but(model: PreTrainedModel, layers: Sequence[int]) -> None:
    """Let the layers of these numbers train, and nothing else of the model."""
    blocks = transformer_layers(model)
    wrong = [number for number in layers if not -len(blocks) <= number < len(blocks)]
    if wrong:
        what = f"the model has no such layer: it has {len(blocks)}"
        hint = f"name layers from 0 to {len(blocks) - 1}" if blocks else "train all of it"
        raise CseError(what, where="model.train_layers", value=wrong[0], hint=hint)
    model.requires_grad_(False)
    for number in layers:
        blocks[number].requires_grad_(True)


def layer_depths(model: PreTrainedModel) -> dict[str, int]:
    """Count the layers above each parameter, by its name; the last layer has none."""
    blocks = {id(block): number for number, block in enumerate(transformer_layers(model))}
    depth, inside = {}, {}
    for name, module in model.named_modules():
        if id(module) in blocks:
            inside[name] = len(blocks) - 1 - blocks[id(module)]
    embeddings = {id(parameter) for parameter in embedding_layer(model).parameters()}
    for name, parameter in model.named_parameters():
        counts = [above for start, above in inside.items() if name.startswith(f"{start}.")]
        depth[name] = counts[0] if counts else len(blocks) if id(parameter) in embeddings else 0
    return depth


def transformer_layers(model: PreTrainedModel) -> list[nn.Module]:
    """Return the modules that are the transformer layers, none if they are not found.

    A model that uses a layer's weights several times (ALBERT) has fewer modules than layers.
    """
    count = model.config.num_hidden_layers
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return list(module)
    recorded = (getattr(model, "_can_record_outputs", None) or {}).get("hidden_states")
    if not isinstance(recorded, type):
        return []
    return [m for m in model.modules() if isinstance(m, nn.Module) and isinstance(m, recorded)]


@torch.no_grad()
def plain_forward(model: PreTrainedModel, longest: int) -> Evidence:
    """Run a few rows, of ``longest`` tokens at most, through the model in eval mode as it is.

    A model is refused in which padding changes a row's states, as in ConvBERT's convolution.
    """
    lengths = [min(5, longest), 1, min(3, longest)]
    device = next(model.parameters()).device
    pad = model.config.pad_token_id or 0
    vocabulary = word_table(model).num_embeddings
    usable = [i for i in range(min(vocabulary, 64)) if i != pad]
    ids = torch.tensor([usable[7 * i % len(usable)] for i in range(sum(lengths))], device=device)
    ids[lengths[0]] = ids[0]  # the second row is the first token of the first one, alone
    real = (torch.arange(lengths[0]) < torch.tensor(lengths)[:, None]).to(device)
    padded = torch.full(real.shape, pad, device=device).masked_scatter(real, ids)
    try:
        states = model(input_ids=padded, attention_mask=real.long())[0]
        alone = model(input_ids=padded[2:, real[2]], attention_mask=real[2:, real[2]].long())[0]
    except Exception as error:
        raise unusable(
            f"{type(model).__name__} does not work as a text encoder ({error})"
        ) from error
    changed = (states[2, real[2]] - alone[0]).abs().max()
    if states.dtype == torch.float32 and changed > 3e-4 * states.abs().max():
        what = "reads the padding behind short texts: vectors would depend on the batch"
        raise unusable(f"{type(model).__name__} {what}")
    return states[real], ids, lengths


def is_causal(evidence: Evidence) -> bool:
    """Check whether a token's state is the same without those behind it: causal attention."""
    states, _, lengths = evidence
    if lengths[0] < 2:
        return False
    first, second, alone = states[0], states[1], states[lengths[0]]
    near = 1e-5 * first.abs().max()
    return bool((first - alone).abs().max() <= near < (first - second).abs().max())
