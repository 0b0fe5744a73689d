"""Options of DCLR's parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cse_core.options import LossOptions, StoreOptions, Temperature


class NoiseOptions(StoreOptions):
    """Options of ``noise``."""

    times: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """Noise vectors per anchor of the batch; every anchor sees all of them."""
    deviation: Annotated[float, Field(gt=0)] = 1.0
    """Standard deviation of the Gaussian that they are drawn from."""
    steps: Annotated[int, Field(ge=0, le=1000)] = 4
    """Steps of gradient ascent that make them harder; 0 leaves them as drawn."""
    step_size: Annotated[float, Field(ge=0)] = 1e-3
    """Length of such a step; a drawn vector has length deviation * sqrt(dimension), about."""
    objective: Literal["noise", "batch"] = "noise"
    """What the ascent raises: the contrastive loss against only the noise (paper), or against the
    batch's positives and the noise (published code)."""
    temperature: Temperature = 0.05
    """Similarities of that objective are divided by it."""


class InstanceWeightsOptions(StoreOptions):
    """Options of ``instance-weights``."""

    branch: str | None = "frozen"
    """Branch of the second encoder, which judges how similar two sentences are."""
    phi: Annotated[float, Field(ge=-1)] = 0.9
    """Cosine above which another sentence counts as a false negative and gets weight 0; 1 or more
    turns this off."""
    stored: bool = False
    """Also judge what other stores keep. Ours, not the paper's."""
    center: bool = False
    """Subtract the batch mean from the second encoder's vectors first: all cosines of an encoder
    that was never trained on sentences are high. Ours, not the paper's."""


class DclrOptions(LossOptions):
    """Options of ``dclr``."""

    variant: Literal["paper", "published"] = "paper"
    """paper: InfoNCE, weights as factors in its denominator; published: binary cross entropy over
    all entries of a softmax whose logits are multiplied by the weights."""
    temperature: Temperature = 0.05
    """Softmax temperature: similarities are divided by it."""
