"""Files and folders of a run by their whole paths, so that it is found again from anywhere."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, TypeVar

from cse_core.options import Options, is_location
from cse_core.recipes.composition import Composition
from cse_core.recipes.reading import CORE_TABLES
from cse_core.registry.registry import Registry

OptionsT = TypeVar("OptionsT", bound=Options)
WORDS = (None, "auto", "none", "self")
"""Values that name no file, whatever lies in the working folder."""


def whole_path(value: Any, registry: Registry) -> Any:
    """Return the whole path of a file or folder that is there; any other value as it is.

    Names of installed encoders and data sets go before files.
    """
    path = os.path.expanduser(value or "")
    name = value in WORDS or registry.has("encoder", value) or registry.has("dataset", value)
    return value if name or not os.path.exists(path) else os.path.abspath(path)


def with_whole_paths(composition: Composition, registry: Registry) -> Composition:
    """Return a composition that names its files and folders by their whole paths."""

    def whole(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(whole, value))
        return whole_path(value, registry)

    def located(options: OptionsT) -> OptionsT:
        fields = type(options).model_fields.items()
        names = [name for name, info in fields if is_location(info)]
        return options.model_copy(update={n: whole(getattr(options, n)) for n in names})

    core = {name: located(getattr(composition, name)) for name in CORE_TABLES}
    parts = tuple(replace(part, options=located(part.options)) for part in composition.parts)
    return replace(composition, parts=parts, **core)
