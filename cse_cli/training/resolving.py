"""From what the command line chooses to a checked composition."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cse_cli.options.flags import Choice
from cse_cli.training.advice import advice
from cse_core.errors import CseError, CseErrors, collect_errors, raise_all
from cse_core.options import Options, is_location

if TYPE_CHECKING:
    from cse_cli.options.paths import OptionPath
    from cse_cli.plugins.installed import Installed
    from cse_core.recipes.composition import Composition, PlannedPart
    from cse_core.recipes.settings import DataOptions
    from cse_core.records import Kind
    from cse_core.registry.registry import Registry

OptionsT = TypeVar("OptionsT", bound=Options)
_WORDS = (None, "auto", "none", "self")
"""Values that name no file, whatever lies in the working folder."""
_COUNTED_BYTES = 64 * 2**20
"""Files up to this size are read to count their rows for the plan."""


def resolve_choice(choice: Choice, installed: Installed, *, look: bool = True) -> Composition:
    """Merge, type and check what was chosen.

    Args:
        choice: The command line's choice.
        installed: The installed plugins.
        look: Whether to look at the data for its columns and rows.

    Raises:
        CseError: What is wrong with it.
    """
    from cse_cli.models.model_config import check_config
    from cse_cli.plugins.folders import known_set
    from cse_core.recipes.compose import resolve

    def lookup(options: DataOptions) -> tuple[int | None, tuple[str, ...] | None]:
        return _rows_and_columns(options, installed)

    dev = [known_set(name, installed, "--dev") for name in choice.dev]
    try:
        composition = resolve(
            installed.registry,
            recipe=choice.recipe,
            kinds=cast("dict[Kind, list[str]]", choice.kinds),
            sets=choice.sets,
            model=choice.model,
            data=choice.data,
            dev=dev,
            lookup=lookup if look else None,
        )
    except CseError as error:
        errors = [*error.errors] if isinstance(error, CseErrors) else [error]
        if dev and look:
            with collect_errors(errors):
                _check_dev(dev, installed)
        raise_all(errors)
        raise
    check_config(composition.model.name, installed.registry)
    lines = list(advice(composition, installed.registry))
    return replace(composition, warnings=(*composition.warnings, *lines))


def _check_dev(names: list[str], installed: Installed) -> None:
    """Refuse dev sets that cannot be read, beside other mistakes."""
    from cse_core.evaluation.dev_sets import dev_sets
    from cse_core.recipes.settings import TrainOptions

    dev_sets(TrainOptions(dev=tuple(names)), (), installed.registry, lambda _: None)


def help_options(choice: Choice, installed: Installed) -> list[OptionPath]:
    """Return the options that help shows: those of the run, or as far as the choice makes sense."""
    from cse_cli.options.paths import option_paths

    for attempt in (choice, replace(choice, sets=[])):
        try:
            return option_paths(resolve_choice(attempt, installed, look=False))
        except CseError:
            continue
    return option_paths(_parts_alone(choice, installed))


def _parts_alone(choice: Choice, installed: Installed) -> list[PlannedPart]:
    """Return the named parts that there are, with their default options."""
    from cse_core.recipes.composition import PlannedPart

    parts = []
    for kind, names in choice.kinds.items():
        for text in names:
            owner, slash, rest = text.lstrip("+~").rpartition("/")
            bare, _, name = rest.partition(":")
            try:
                found = installed.registry.find(cast("Kind", kind), f"{owner}{slash}{bare}")
            except CseError:
                continue
            options = found.spec.default_options()
            if options is not None and not text.startswith("~"):
                parts.append(PlannedPart.of(found, options, name or bare))
    return parts


def _rows_and_columns(
    options: DataOptions, installed: Installed
) -> tuple[int | None, tuple[str, ...] | None]:
    from cse_core.data.sources import find_source

    columns = installed.columns(options)
    sources = [find_source(name, installed.datasets) for name in options.path]
    small = all(
        source.spec is not None
        or (source.file is not None and source.file.path.stat().st_size <= _COUNTED_BYTES)
        for source in sources
    )
    rows = len(installed.corpus(options)) if small else None
    return rows, columns


def changed_settings(composition: Composition, choice: Choice, installed: Installed) -> list[str]:
    """Return the core's settings that differ from their defaults, and where each is from."""
    from cse_core.recipes.option_types import plain
    from cse_core.recipes.reading import default_document, read_recipe

    documents = [default_document(alone=choice.recipe is None)]
    if choice.recipe is not None:
        documents += read_recipe(choice.recipe, installed.registry)
    typed = {text.partition("=")[0].strip() for text in choice.sets}
    typed |= {path for path, given in _shortcuts(choice).items() if given}
    shown = []
    for head in ("model", "data", "train", "inference"):
        options = getattr(composition, head)
        for name, info in type(options).model_fields.items():
            value = getattr(options, name)
            if value == info.get_default(call_default_factory=True):
                continue
            path = f"{head}.{name}"
            source = "the command line" if any(_leads(each, path) for each in typed) else ""
            for document in reversed(documents):
                source = source or _origin(document, head, name, composition)
            shown.append(f"{path} = {plain(value)}, from {source or 'the composer'}")
    return shown


def _shortcuts(choice: Choice) -> dict[str, Any]:
    return {"model.name": choice.model, "data.path": choice.data, "train.dev": choice.dev}


def _leads(typed: str, path: str) -> bool:
    return typed == path or typed.startswith(f"{path}.")


def _origin(document: Any, head: str, name: str, composition: Composition) -> str:
    from cse_core.recipes.draft import holds
    from cse_core.recipes.reading import CONDITIONS

    for block in reversed(document.table.get("when", ())):
        if name in block.get(head, {}) and holds(block, composition.facts):
            shown = ", ".join(f"{key} {block[key]}" for key in CONDITIONS if key in block)
            return f"{document.label} (when {shown})"
    return document.label if name in document.table.get(head, {}) else ""


def absolute_path(value: Any, registry: Registry) -> Any:
    """Return the absolute path of a file or folder that is there; any other value as it is.

    Names of installed encoders and data sets go before files.
    """
    path = os.path.expanduser(value or "")
    name = value in _WORDS or registry.has("encoder", value) or registry.has("dataset", value)
    return value if name or not os.path.exists(path) else os.path.abspath(path)


def with_absolute_paths(composition: Composition, registry: Registry) -> Composition:
    """Return a composition whose files and folders are found again from anywhere."""

    def absolute(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(absolute, value))
        return absolute_path(value, registry)

    def located(options: OptionsT) -> OptionsT:
        fields = type(options).model_fields.items()
        names = [name for name, info in fields if is_location(info)]
        return options.model_copy(update={n: absolute(getattr(options, n)) for n in names})

    from cse_core.recipes.reading import CORE_TABLES

    core: Any = {name: located(getattr(composition, name)) for name in CORE_TABLES}
    parts = tuple(replace(part, options=located(part.options)) for part in composition.parts)
    return replace(composition, parts=parts, **core)
