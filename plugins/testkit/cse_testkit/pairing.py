"""Whether parts of any plugins work together, over the default recipe."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import torch

from cse_core.data import Corpus
from cse_core.errors import CseError
from cse_core.recipes.composition import Composition
from cse_core.records import COMPONENT_SPECS, ComponentSpec, MinerSpec
from cse_core.registry.registry import Registered, Registry
from cse_testkit.completion import complete
from cse_testkit.runs import Rig, compose, installed_registry
from cse_testkit.tiny import shared_encoder, tiny_corpus

Found = Registered[ComponentSpec]
KINDS = tuple(kind for kind in COMPONENT_SPECS if kind != "metric")
"""Kinds whose parts are tried together."""


@dataclass(frozen=True)
class Pairing:
    """What became of two parts in one run.

    Attributes:
        one: ``kind.name`` of one part.
        other: Of the other.
        verdict: ``trains``: a step left a finite loss; ``refused``: the composer said why not.
        reason: The composer's line.
        loss: Loss of the last step.
    """

    one: str
    other: str
    verdict: Literal["trains", "refused"]
    reason: str = ""
    loss: float = math.nan


def pairs(
    registry: Registry | None = None, among: Sequence[str] | None = None
) -> Iterator[tuple[Found, Found]]:
    """Yield all unordered pairs of installed parts.

    Args:
        registry: What is installed, by default everything.
        among: Distributions of which one part at least must be; None is all.
    """
    parts = [p for kind in KINDS for p in (registry or installed_registry()).parts(kind)]
    for one, other in combinations(parts, 2):
        if among is None or {one.distribution, other.distribution} & set(among):
            yield one, other


def try_pair(one: Found, other: Found, registry: Registry | None = None) -> Pairing:
    """Compose two parts over the default recipe and train a step (two where one mines rounds).

    Args:
        one: A part.
        other: Another.
        registry: What is installed, by default everything.

    Raises:
        ArithmeticError: If the loss or a gradient is not finite.
    """
    try:
        loss = train_together((one, other), registry)
    except CseError as error:
        reason = error.line()
        return Pairing(path_of(one), path_of(other), verdict="refused", reason=reason)
    return Pairing(path_of(one), path_of(other), verdict="trains", loss=loss)


def path_of(part: Found) -> str:
    """Return ``kind.name`` of a part."""
    return f"{part.spec.kind}.{part.name}"


def compose_together(
    parts: Sequence[Found], registry: Registry | None = None
) -> tuple[Composition, Corpus]:
    """Compose parts over the default recipe, with what they require.

    Raises:
        CseError: If the composer refuses them.
    """
    registry = registry or installed_registry()
    needed = complete(registry, [(part.spec.kind, part.qualified) for part in parts])
    corpus = tiny_corpus(12, columns=needed.columns)
    encoder = shared_encoder(cased=needed.cased)
    composition = compose(
        kinds=needed.kinds, sets=needed.sets, registry=registry, encoder=encoder, corpus=corpus
    )
    return composition, corpus


def train_together(parts: Sequence[Found], registry: Registry | None = None) -> float:
    """Train a step with parts (two where one mines rounds) and return the last loss.

    Raises:
        CseError: If the composer refuses them.
        ArithmeticError: If the loss or a gradient is not finite.
    """
    rig = Rig(*compose_together(parts, registry), registry=registry)
    rounds = any(isinstance(part.spec, MinerSpec) and part.spec.rounds for part in parts)
    loss = rig.step(2 if rounds else 1)[-1].loss
    if not bool(torch.isfinite(loss)) or rig.bad_gradients:
        raise ArithmeticError(
            f"{' with '.join(map(path_of, parts))}: loss {float(loss)}, gradients that are no "
            f"finite numbers: {sorted(rig.bad_gradients)[:3]}"
        )
    return float(loss)
