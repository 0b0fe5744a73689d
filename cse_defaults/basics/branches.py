"""Branches: which copy of the encoder encodes a view."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from cse_core.errors import CseError
from cse_core.options import BranchOptions, PoolerOptions
from cse_core.parts import Branch, Setup
from cse_core.types import Batch, StepContext
from cse_defaults.basics.heads import Mlp
from cse_defaults.basics.options import EmaOptions, FrozenOptions, MlpOptions
from cse_defaults.basics.poolers import Cls

if TYPE_CHECKING:
    from cse_core.protocols import Encoder


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

    remembers = ("_followers",)

    def __init__(self, options: EmaOptions, setup: Setup) -> None:
        self.options = options
        self.training = options.mode == "train"
        online = setup.online_encoder()
        self.encoder = online.copy(share_embeddings=options.embeddings == "shared")
        self.heads = copy.deepcopy(setup.heads) if options.copies == "encoder+heads" else {}
        self._followers = nn.ModuleList([self.encoder, *self.heads.values()])
        self._leaders = [online, *(setup.heads[name] for name in self.heads)]
        self._own: list[Tensor] = []
        self._online: list[Tensor] = []
        for follower, leader in zip(self._followers, self._leaders, strict=True):
            for weight, other in zip(follower.parameters(), leader.parameters(), strict=True):
                if weight is not other:  # shared embeddings are the online encoder's
                    weight.requires_grad_(False)
                    self._own.append(weight.data)
                    self._online.append(other.data)

    @torch.no_grad()
    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Move towards the online weights."""
        decay = self.options.decay.at(ctx.step + 1, ctx.total_steps)
        ctx.log(f"{self.name}.decay", decay)
        torch._foreach_lerp_(self._own, self._online, 1.0 - decay)
        if not self.training:
            # In train mode it keeps running statistics of its own; in eval mode nothing would.
            for follower, leader in zip(self._followers, self._leaders, strict=True):
                for buffer, online in zip(follower.buffers(), leader.buffers(), strict=True):
                    buffer.copy_(online)


class Frozen(Branch):
    """An encoder that never changes: the run's own at its start, or another by name."""

    def __init__(self, options: FrozenOptions, setup: Setup) -> None:
        self.cached = options.cache
        self.training = options.mode == "train"
        if options.model == "self":
            self.encoder = setup.online_encoder().copy()
            self.heads = copy.deepcopy(setup.heads) if options.copies == "encoder+heads" else {}
        else:
            self.heads, self.model = {}, setup.load_model(options.model)
            self.encoder = self.model.encoder
            if options.pooler:
                self.pooler = Cls(PoolerOptions(), setup)
                self.pooler.dimension = self.encoder.hidden_size
                self.heads["pooler"] = _own_pooler(self.encoder, setup, options.model)
        for module in (self.encoder, *self.heads.values()):
            module.requires_grad_(False)


def _own_pooler(encoder: Encoder, setup: Setup, model: str) -> Mlp:
    """Return the trained pooler of an encoder as a head."""
    size = encoder.hidden_size
    sized = replace(setup, encoder=encoder, dimension=size, hidden_size=size)
    try:
        return Mlp(MlpOptions(start="pooler"), sized).to(setup.device)
    except CseError as error:
        where = f"branch.{setup.name}.model"
        raise CseError(error.what, where=where, value=model, hint=error.hint) from error
