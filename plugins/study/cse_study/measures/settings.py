"""The settings that a recipe has for an encoder, beside those of the paper's table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def settings(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a recipe as they are for an encoder of some family and size.

    The recipe is composed with the configuration of such an encoder; there are no weights.

    Args:
        point: ``recipe``; ``family``, the model type, such as ``bert``; ``hidden``, its hidden
            size; ``options``, the paths of those that are returned.

    Raises:
        CseError: If the recipe cannot be composed, or has no such option. An option of the core
            that nothing sets is None.
    """
    from cse import plan
    from cse_core.errors import CseError, did_you_mean
    from cse_core.recipes.settings import CORE_OPTIONS
    from cse_study.planning.composing import flat_options

    configuration = {
        "model_type": point["family"],
        "hidden_size": point["hidden"],
        "num_hidden_layers": 24 if point["hidden"] >= 1024 else 12,
        "num_attention_heads": max(point["hidden"] // 64, 1),
        "max_position_embeddings": 512,
    }
    with TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(configuration), encoding="utf-8")
        found = plan(point["recipe"], model=folder, dev="none").to_dict()["settings"]
    known: dict[str, Any] = {
        f"{table}.{name}": None for table, own in CORE_OPTIONS.items() for name in own.model_fields
    }
    known |= flat_options(found)
    for path in point["options"]:
        if path not in known:
            what = "the recipe has no such setting"
            raise CseError(what, where="options", value=path, hint=did_you_mean(path, known))
    return {path: known[path] for path in point["options"]}
