"""Adapters: which weights of the encoder are trained."""

from __future__ import annotations

from torch import nn

from cse_core.parts import Adapter


class HeadsOnly(Adapter):
    """Trains none: a linear or Matryoshka head over an encoder that stays as it is."""

    heads_only = True

    def wrap(self, model: nn.Module) -> None:
        """Freeze all weights."""
        model.requires_grad_(False)
