"""A second encoder of the same start, trained beside the first."""

from __future__ import annotations

import copy
from typing import Any

from torch import nn

from cse_core.parts import Branch, Setup
from cse_tension.options import TwinOptions


class Twin(nn.Module, Branch):
    """Model 1 of Contrastive Tension: starts as the online encoder and has weights of its own.

    The online branch is model 2, which is kept.
    """

    def __init__(self, options: TwinOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        self.training = options.mode == "train"
        self.encoder = setup.online_encoder().copy()
        of_heads = setup.heads if options.copies == "encoder+heads" else {}
        self.heads: Any = nn.ModuleDict(copy.deepcopy(dict(of_heads)))
