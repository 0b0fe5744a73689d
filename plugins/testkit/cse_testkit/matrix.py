"""Whether parts of any plugins work together: every pair, over the default recipe."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import torch

from cse_core.errors import CseError
from cse_core.records import ComponentSpec, Kind, MinerSpec
from cse_core.registry.registry import Registered, Registry
from cse_testkit.completion import complete
from cse_testkit.corpora import tiny_corpus
from cse_testkit.encoders import shared_encoder
from cse_testkit.installed import installed_registry
from cse_testkit.rigs import Rig, compose

Found = Registered[ComponentSpec]
KINDS: tuple[Kind, ...] = ("aug", "pool", "positives", "negatives", "loss", "branch", "adapter")
"""Kinds whose parts are tried in pairs."""


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
    registry = registry or installed_registry()
    first, second = (f"{each.spec.kind}.{each.name}" for each in (one, other))
    chosen = [(each.spec.kind, each.qualified) for each in (one, other)]
    needed = complete(registry, chosen)
    corpus = tiny_corpus(12, columns=needed.columns)
    try:
        composition = compose(
            kinds=needed.kinds,
            sets=needed.sets,
            registry=registry,
            encoder=shared_encoder(cased=needed.cased),
            corpus=corpus,
        )
    except CseError as error:
        return Pairing(first, second, verdict="refused", reason=error.line())
    rig = Rig(composition, corpus, registry=registry)
    rounds = any(isinstance(e.spec, MinerSpec) and e.spec.rounds for e in (one, other))
    result = rig.step(2 if rounds else 1)[-1]
    if not bool(torch.isfinite(result.loss)) or rig.bad_gradients:
        raise ArithmeticError(
            f"{first} with {second}: loss {float(result.loss)}, gradients that are no finite "
            f"numbers: {sorted(rig.bad_gradients)[:3]}"
        )
    return Pairing(first, second, verdict="trains", loss=float(result.loss))
