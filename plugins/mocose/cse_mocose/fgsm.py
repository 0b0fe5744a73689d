"""Adversarial views: a step along the sign of the gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.parts import Augmenter
from cse_core.types import StepContext, TokenBatch, View
from cse_mocose.options import FgsmOptions


class Fgsm(Augmenter):
    """Adds ``epsilon * sign(gradient)`` to word embeddings (fast gradient sign method).

    MoCoSE, Eq. 1, where the gradient is that of the objective for the sentence's own word
    embeddings: ``gradient = fresh``, from a second pass. The authors' code adds the sign of the
    previous step's gradient, taken at the same place of the batch, that is of other sentences:
    ``gradient = previous``; in the first step, and where a place had no token, nothing is added.
    Both views take the gradient of the online branch.

    A relative epsilon is a share of the root mean square of each token's embedding, so the step is
    at most ``epsilon`` times as long as the embedding. It logs how long the change is beside the
    embeddings, in the format in which the encoder multiplies: what is left of a small epsilon.
    """

    options: FgsmOptions

    def __call__(
        self, x: Tensor, tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> Tensor:
        """Return ``[T, E]`` perturbed word embeddings."""
        gradient = None if tokens is None else ctx.gradient(view, tokens)
        if gradient is None:
            return x
        step = self.options.epsilon * gradient.to(x.dtype).sign()
        if self.options.relative:
            step = step * x.detach().square().mean(dim=1, keepdim=True).sqrt()
        changed = x + step
        ctx.log(f"{self.name}.{view.name}.size", _size(x, changed))
        return changed


def _size(before: Tensor, after: Tensor) -> Tensor:
    """Return the length of the change as a share of ``before``'s, in the encoder's format."""
    device = before.device.type
    one, other = before.detach(), after.detach()
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        one, other = one.to(dtype).float(), other.to(dtype).float()
    size: Tensor = (other - one).norm() / one.norm().clamp_min(torch.finfo(one.dtype).tiny)
    return size
