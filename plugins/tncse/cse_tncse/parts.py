"""The second encoder, and the state of the first token at a level of its own."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from cse_core.errors import CseError
from cse_core.options import PoolerOptions
from cse_core.parts import Branch, MultiVectorPooler, Setup
from cse_core.types import TokenBatch, Units
from cse_tncse.options import SecondOptions


class Second(nn.Module, Branch):
    """A second encoder that trains beside the first; ``inference.ensemble`` saves both.

    Its encoder starts with the weights of ``model``, if one is named; its heads start as copies.

    Raises:
        CseError: If that model reads texts as other tokens, or has another size.
    """

    def __init__(self, options: SecondOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        self.training = options.mode == "train"
        online = setup.online_encoder()
        self.encoder = online.copy()
        if options.model is not None:
            other = setup.load_model(options.model)
            if other.tokenizer.state() != setup.tokenizer.state():
                self._refuse("reads texts as other tokens than the run's model")
            ours, theirs = online.state_dict(), other.encoder.state_dict()
            sizes = {name: value.shape for name, value in ours.items()}
            if sizes != {name: value.shape for name, value in theirs.items()}:
                self._refuse("has weights of other names or sizes than the run's model")
            self.encoder = copy.deepcopy(online)  # a copy shares the weights that are not trained
            self.encoder.load_state_dict(theirs)
        of_heads = setup.heads if options.copies == "encoder+heads" else {}
        self.heads: Any = nn.ModuleDict(copy.deepcopy(dict(of_heads)))

    def _refuse(self, what: str) -> None:
        where, value = f"branch.{self.name}.model", self.options.model
        hint = "name a model of the same architecture and vocabulary"
        raise CseError(what, where=where, value=value, hint=hint)


class FirstState(MultiVectorPooler):
    """The last state of each row's first token, for heads that the vector of the row skips."""

    level = "pooled"
    options: PoolerOptions

    def units(self, tokens: TokenBatch, view: str) -> Units:
        """Return one unit for each row that has a token."""
        row = tokens.lengths.nonzero().squeeze(1)
        return Units(tokens.offsets[row], torch.ones_like(row), row)
