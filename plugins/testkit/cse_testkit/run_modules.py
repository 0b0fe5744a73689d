"""The modules of a run: their dropout, and what of the online encoder no part may change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from cse_core.encoders.dropout import Dropout
from cse_testkit.rigs import Rig


def without_dropout(rig: Rig) -> Rig:
    """Switch off the dropout of heads, branches and parts too, which have their own."""
    for module in _modules(rig):
        for each in module.modules():
            if isinstance(each, Dropout | nn.Dropout):
                each.p = 0.0
    return rig


def _modules(rig: Rig) -> Iterator[nn.Module]:
    """Yield every module of a run: encoders, heads, parts, and what parts hold of these."""
    for own in rig.assembly.encoders.values():
        yield from (own.encoder, *own.heads.values())
    for part in rig.assembly.parts.values():
        held = (part, *vars(part).values())
        yield from (each for each in held if isinstance(each, nn.Module))


def online_state(module: nn.Module) -> dict[str, Any]:
    """Return what a part may not change of the online encoder, by the names of its modules."""
    found: dict[str, Any] = {
        f"dropout of {name}": each.p
        for name, each in module.named_modules()
        if isinstance(each, Dropout | nn.Dropout)
    }
    found |= {f"mode of {name or 'all'}": each.training for name, each in module.named_modules()}
    return found | {
        f"requires_grad of {name}": each.requires_grad for name, each in module.named_parameters()
    }
