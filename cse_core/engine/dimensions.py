"""Whether the vectors that meet in a loss have one dimension, seen before the first step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from cse_core.engine.negatives import unequal
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.options import LossOptions, StoreOptions
from cse_core.parts import Head, NegativeStore
from cse_core.recipes.composition import Composition
from cse_core.types import INPUT


def check_dimensions(
    composition: Composition,
    encoders: Mapping[str, SentenceEncoder],
    stores: Mapping[str, NegativeStore],
) -> None:
    """Refuse targets and stored vectors of another dimension than the anchors they are held to.

    Branches differ in heads, and by that in dimension. A store that keeps the vectors of a branch
    of another dimension would have no candidate for any loss of its level, in silence.

    Args:
        composition: The checked recipe.
        encoders: From texts to vectors, by branch.
        stores: The stores by instance name.

    Raises:
        CseError: If a target's view, or what a store keeps, has another dimension.
    """
    anchor = composition.view("anchor")
    own = anchor.branch if anchor is not None else "online"
    for where, what, level, branch in _meetings(composition, stores):
        found, wanted = (_dimension(encoders, name, level) for name in (branch, own))
        if None not in (found, wanted) and found != wanted:
            raise unequal(where, what, found, wanted)


def _meetings(
    composition: Composition, stores: Mapping[str, NegativeStore]
) -> Iterator[tuple[str, str, str, str]]:
    """Yield path, words, level and branch of what is held to the anchors."""
    for choice in composition.of("negatives"):
        options = cast(StoreOptions, choice.options)
        # One that only weighs brings no vectors: its branch may be a model of any size.
        brings = type(stores[choice.name]).candidates is not NegativeStore.candidates
        if options.branch is not None and brings:
            yield choice.path, "its vectors", options.level, options.branch
    for loss in composition.of("loss"):
        wants = cast(LossOptions, loss.options)
        view = composition.view(wants.target)
        if view is not None:
            yield f"views.{view.name}.branch", "its vectors", wants.level, view.branch


def _dimension(encoders: Mapping[str, SentenceEncoder], branch: str, level: str) -> int | None:
    """Return the dimension of a branch's vectors, None where only a step can tell it."""
    online, own = encoders["online"], encoders[branch]
    if level == INPUT:
        return own.encoder.hidden_size
    if own.heads:
        return cast(Head, list(own.heads.values())[-1]).dimension
    if own.encoder.hidden_size == online.encoder.hidden_size:
        return own.pooler.dimension
    # Poolers are those of the online encoder; what they make of another is known of plain ones.
    plain = own.pooler.dimension == online.encoder.hidden_size
    return own.encoder.hidden_size if plain else None
