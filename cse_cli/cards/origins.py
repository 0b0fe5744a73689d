"""What a model was trained from, as its card names it: an encoder or texts, and their licence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_core.data.sources import hub_name
from cse_core.runtime.atomic_files import exists
from cse_core.training.export import public_name

if TYPE_CHECKING:
    from cse_core.registry.registry import Registry


@dataclass(frozen=True)
class Source:
    """An encoder, or texts.

    Attributes:
        name: Without the folder it lies in.
        on_hub: Whether it is a name of the hub.
        licence: What is known of it; empty where nothing is.
    """

    name: str
    on_hub: bool = False
    licence: str = ""

    def described(self) -> str:
        """Return its name in Markdown."""
        return f"`{self.name.replace('`', '')}`"


def encoder_source(name: str, manifest: Mapping[str, Any], registry: Registry) -> Source:
    """Return the encoder that a run began with.

    Args:
        name: As the run names it.
        manifest: What ``cse.json`` says of the trained model.
        registry: The installed encoders.
    """
    for found in registry.encoders():
        # A model that was trained on from one of the starter has its terms.
        if found.name == name or (manifest.get("starter") and found.name == "starter"):
            return Source(public_name(name), licence=found.spec.licence)
    return Source(public_name(name), on_hub=public_name(name) == name and not exists(Path(name)))


def text_source(name: str, registry: Registry) -> Source:
    """Return texts that a run was trained on; a licence of the hub is that of its cached card."""
    for found in registry.datasets():
        if found.name == name:
            return Source(name, licence=found.spec.licence)
    on_hub = hub_name(name)
    if on_hub is None:
        return Source(public_name(name))
    repository = on_hub.repository
    return Source(repository, on_hub=True, licence=_cached_licence(repository))


def _cached_licence(repository: str) -> str:
    """Return the licence in the card of a data set, where loading it left the card in the cache."""
    from huggingface_hub import DatasetCard, try_to_load_from_cache

    try:
        path = try_to_load_from_cache(repository, "README.md", repo_type="dataset")
        licence = DatasetCard.load(path).data.license if isinstance(path, str) else None
    except Exception:  # a card on the hub may be anything
        return ""
    named = licence if isinstance(licence, list) else [licence or ""]
    return ", ".join(str(each) for each in named)
