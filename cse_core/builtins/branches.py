"""Branches: which copy of the encoder encodes a view."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from cse_core.builtins.options import EmaOptions, FrozenOptions
from cse_core.encoders.encoder import PackedEncoder
from cse_core.errors import CseError
from cse_core.options import BranchOptions
from cse_core.parts import Branch, Setup
from cse_core.tokenization.tokenizer import TextTokenizer
from cse_core.types import Batch, StepContext


class Online(Branch):
    """The encoder in training itself."""

    def __init__(self, options: BranchOptions, setup: Setup) -> None:
        self.training = options.mode == "train"
        self.encoder = setup.online_encoder()
        self.heads = setup.heads


class Ema(Branch):
    """An exponential moving average of the online weights (MoCo; MoCoSE; ESimCSE).

    Starts equal to the online encoder with its real weights. After optimiser step n every weight
    becomes ``decay(n) * own + (1 - decay(n)) * online``.
    """

    def __init__(self, options: EmaOptions, setup: Setup) -> None:
        self.options = options
        self.training = options.mode == "train"
        online = setup.online_encoder()
        self.encoder = online.copy(share_embeddings=options.embeddings == "shared")
        self.heads = copy.deepcopy(setup.heads) if options.copies == "encoder+heads" else {}
        self._followers = [self.encoder, *self.heads.values()]
        self._leaders = [online, *(setup.heads[name] for name in self.heads)]
        self._own, self._online = _pairs(self._followers, self._leaders)
        shared = {id(parameter) for parameter in online.parameters()}
        for follower in self._followers:
            for parameter in follower.parameters():
                if id(parameter) not in shared:
                    parameter.requires_grad_(False)

    @torch.no_grad()
    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Move towards the online weights."""
        decay = self.options.decay.at(ctx.step + 1, ctx.total_steps)
        ctx.log(f"{self.name}.decay", decay)
        torch._foreach_lerp_(self._own, self._online, 1.0 - decay)
        if not self.training:
            # In train mode it keeps running statistics of its own; in eval mode nothing would.
            for follower, leader in zip(self._followers, self._leaders, strict=True):
                for own, online in zip(follower.buffers(), leader.buffers(), strict=True):
                    own.copy_(online)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """Return its weights."""
        return {
            f"{number}.{name}": value
            for number, module in enumerate(self._followers)
            for name, value in module.state_dict().items()
        }

    def load_state_dict(self, state: Any, *args: Any, **kwargs: Any) -> None:
        """Restore its weights."""
        for number, module in enumerate(self._followers):
            start = f"{number}."
            module.load_state_dict(
                {
                    name[len(start) :]: value
                    for name, value in state.items()
                    if name.startswith(start)
                }
            )


class Frozen(Branch):
    """An encoder that never changes: the run's own at its start, or another by name."""

    def __init__(self, options: FrozenOptions, setup: Setup) -> None:
        self.training = options.mode == "train"
        if options.model == "self":
            self.encoder = setup.online_encoder().copy()
            self.heads = copy.deepcopy(setup.heads) if options.copies == "encoder+heads" else {}
        else:
            self.encoder, self.tokenizer = _named(options.model, setup)
            self.heads = {}
        for module in (self.encoder, *self.heads.values()):
            module.requires_grad_(False)


def _named(model: str, setup: Setup) -> tuple[PackedEncoder, TextTokenizer]:
    try:
        return setup.load_encoder(model)
    except CseError as error:
        where = f"branch.{setup.name}.model"
        raise CseError(error.what, where=where, value=model, hint=error.hint) from error


def _pairs(
    followers: list[nn.Module], leaders: list[nn.Module]
) -> tuple[list[Tensor], list[Tensor]]:
    own: list[Tensor] = []
    online: list[Tensor] = []
    for follower, leader in zip(followers, leaders, strict=True):
        for mine, theirs in zip(follower.parameters(), leader.parameters(), strict=True):
            if mine is not theirs:
                own.append(mine.data)
                online.append(theirs.data)
    return own, online
