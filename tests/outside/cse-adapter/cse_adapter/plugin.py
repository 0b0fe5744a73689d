"""The records of the branch and the recipe; imports neither torch nor pydantic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.records import BranchSpec, RecipeSpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_adapter.options import AdapterOptions

PAPER = "Houlsby et al.: Parameter-Efficient Transfer Learning for NLP, ICML 2019"


def check_layers(options: AdapterOptions, facts: RunInfo) -> AdapterOptions:
    if facts.layers is not None:
        for layer in options.after or ():
            if not 1 <= layer <= facts.layers:
                raise ValueError(
                    f"after = {layer} is not a layer, of which there are {facts.layers}"
                )
    return options


@hookimpl
def cse_branches() -> list[BranchSpec]:
    return [
        BranchSpec(
            name="adapter",
            summary="the encoder with trained bottleneck adapters behind its layers",
            factory="cse_adapter.adapter:AdapterBranch",
            options="cse_adapter.options:AdapterOptions",
            provides=("branch:{name}",),
            resolve_options=check_layers,
            trainable=True,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    return [
        RecipeSpec(
            name="adapter",
            summary="positives of an adapted frozen encoder",
            path="cse_adapter:recipes/adapter.toml",
        )
    ]
