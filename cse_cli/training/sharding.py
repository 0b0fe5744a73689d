"""``train.shard``: an encoder of which each process holds a part (FSDP2)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from cse_core.errors import CseError

if TYPE_CHECKING:
    from torch import Tensor

    from cse_core.engine.assembly import Assembly
    from cse_core.recipes.composition import Composition
    from cse_core.runtime.device import Precision
    from cse_core.types import Hidden

WHERE = "train.shard"


def check_sharding(composition: Composition) -> None:
    """Refuse what does not work with a sharded encoder.

    Raises:
        CseError: It says what to type instead.
    """
    if composition.train.shard == "none":
        return
    for part in composition.parts:
        # A copy follows or keeps whole weights, an adapter puts its own between them.
        if part.kind == "adapter" or (part.kind == "branch" and part.use != "online"):
            what = f"{part.path} does not work with a sharded encoder"
            hint = f"--{part.kind} ~{part.name}, or leave out --train.shard"
            raise CseError(what, where=WHERE, value="full", hint=hint)
    if composition.train.precision == "fp16":
        raise _no_fp16()


def shard_as_asked(assembly: Assembly, precision: Precision) -> None:
    """Split the encoder's weights over the processes where ``train.shard`` asks for it.

    Each layer, the word table, and the rest are a group of FSDP2's. A group is whole while it
    computes, and its gradients go to the processes as parts of their sum, as those of weights that
    stay whole are summed. One process alone keeps everything.

    Raises:
        CseError: If a part does not work with it, or the layers of the encoder are not known.
    """
    from cse_core.runtime.distributed import rank_and_size

    check_sharding(assembly.composition)
    if assembly.composition.train.shard == "none" or rank_and_size()[1] == 1:
        return
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    from cse_core.encoders.architecture import transformer_layers, word_table

    if precision.scaler().is_enabled():
        raise _no_fp16()
    if not hasattr(FSDPModule, "set_force_sum_reduction_for_comms"):
        what = f"torch {torch.__version__} cannot sum gradients of parts as they are"
        raise CseError(what, where=WHERE, value="full", hint="install a newer torch")
    encoder = assembly.online.encoder
    layers = list(dict.fromkeys(transformer_layers(encoder.model)))
    if not layers:
        what = f"the layers of {type(encoder.model).__name__} are not known"
        raise CseError(what, where=WHERE, value="full", hint="leave it out")
    mesh = init_device_mesh(assembly.device.type, (rank_and_size()[1],))
    table = word_table(encoder.model)
    for module in (table, *layers, encoder.model, encoder):
        group: Any = fully_shard(module, mesh=mesh, reshard_after_forward=True)
        group.set_gradient_divide_factor(1.0)  # a sum, not a mean
        group.set_force_sum_reduction_for_comms(True)
        # The gradient of a table needs no table.
        group.set_unshard_in_backward(module is not table)
    # Nothing is before the table: torch would gather what the pass before this one ended with.
    table.set_modules_to_backward_prefetch([encoder])  # type: ignore[operator]
    # The encoder is the root, which has no weights of its own: it is entered by either.
    register_fsdp_forward_method(encoder, "word_embeddings")
    encoder.forward = partial(_forward, encoder.forward)  # type: ignore[method-assign]
    # Nobody writes into what the root returns, and its hooks have nothing to gather.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    # A cast that autocast keeps is a whole weight that is kept.
    torch.set_autocast_cache_enabled(False)


def _forward(
    forward: Callable[..., Hidden], words: Tensor, positions: Tensor, offsets: Tensor, **named: Any
) -> Hidden:
    """Encode as ``forward`` does, and a call without rows too, by a token of no meaning.

    So every process takes part in every gathering and sum. The token's word vector is zero, none of
    its states goes on, and all gradients that it makes are zero.
    """
    import torch

    from cse_core.types import Hidden

    if len(words):
        return forward(words, positions, offsets, **named)
    words = torch.cat([words, words.new_zeros(1, words.shape[1])])
    first = positions.new_zeros(1)
    none, change = first[:0], named.get("on_input")
    if named.get("read") is not None:
        named["read"] = first
    if change is not None:
        # Who asks for the gradient of what enters gets that of no token, by the same backward pass.
        named["on_input"] = lambda here: torch.cat([change(here.index_select(0, none)), here])
    out = forward(words, first, torch.tensor([0, 1]), **named)
    layers = {number: states.index_select(0, none) for number, states in out.layers.items()}
    return Hidden(out.last.index_select(0, none), layers, selected_only=out.selected_only)


def _no_fp16() -> CseError:
    what = "fp16 scales the gradients of whole weights"
    hint = "--train.precision bf16 or fp32, or leave out --train.shard"
    return CseError(what, where=WHERE, value="full", hint=hint)
