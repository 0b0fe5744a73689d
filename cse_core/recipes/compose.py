"""From a recipe and the command line to a checked composition, before anything heavy is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from cse_core.errors import CseError, raise_all
from cse_core.options import Options
from cse_core.recipes.checks import (
    check_branches,
    check_columns,
    check_doubles,
    check_inference,
    check_negatives,
    check_positives,
    check_prompts,
    check_sizes,
    check_weights,
    order_poolers,
)
from cse_core.recipes.command_line import apply_kinds, apply_sets, model_name
from cse_core.recipes.composition import Composition, PlannedPart, PlannedView
from cse_core.recipes.draft import Draft, Instance, merge_documents
from cse_core.recipes.model_facts import model_facts
from cse_core.recipes.plan import plan_feeds, plan_passes, plan_views
from cse_core.recipes.reading import KINDS, Document, default_document, read_recipe
from cse_core.recipes.requirements import add_branches, check_closure
from cse_core.recipes.settings import (
    DataOptions,
    InferenceOptions,
    ModelOptions,
    TrainOptions,
    ViewOptions,
)
from cse_core.recipes.sketch import Sketch
from cse_core.recipes.values import OptionReader
from cse_core.records import Facts, Kind
from cse_core.registry.registry import Registry

OptionsT = TypeVar("OptionsT", bound=Options)
DataLookup = Callable[[DataOptions], tuple[int | None, tuple[str, ...] | None]]
"""Returns the rows and columns of the data, None where it does not know them without reading."""

__all__ = ["DataLookup", "Facts", "resolve"]


def resolve(
    registry: Registry,
    *,
    recipe: str | Path | None = None,
    kinds: Mapping[Kind, Sequence[str]] | None = None,
    sets: Sequence[str] = (),
    model: str | None = None,
    data: Sequence[str] = (),
    dev: Sequence[str] = (),
    facts: Facts | None = None,
    lookup: DataLookup | None = None,
) -> Composition:
    """Merge a recipe and the command line, type every value, and check that the parts fit.

    Defaults come first, then the recipe with its ``[[when]]`` blocks, then the command line.

    Args:
        registry: Installed parts and recipes.
        recipe: Name of an installed recipe, a TOML file, a run's folder, or None for the default.
        kinds: Kind flags as typed: ``NAME`` replaces the recipe's list, ``+NAME`` adds, ``~NAME``
            takes away; ``distribution/part`` and ``part:name`` are understood.
        sets: Settings as typed, ``path=value``.
        model: Encoder; before ``sets``.
        data: Training texts.
        dev: Dev sets.
        facts: What is known of the encoder and the data; by default the encoder's files are read.
        lookup: Tells rows and columns of the data, where ``facts`` does not.

    Returns:
        The composition; its ``raw`` resolves to the same.

    Raises:
        CseError: What is wrong; ``CseErrors`` where it is more than one thing.
    """
    chain = read_recipe(recipe, registry) if recipe is not None else ()
    documents = (default_document(alone=not chain), *chain)
    name = model_name(documents, sets, model)
    facts = facts or model_facts(name, registry)
    draft = merge_documents(documents, facts)
    apply_kinds(draft, kinds or {})
    if model is not None:
        draft.tables["model"]["name"] = model
    if data:
        draft.tables["data"]["path"] = list(data)
    if dev:
        draft.tables["train"]["dev"] = list(dev)
    apply_sets(draft, sets, registry)
    reader = OptionReader()
    sketch = _sketch(draft, reader, registry, facts, lookup)
    sketch.notes += draft.told()
    if facts.family is None:
        sketch.warnings.append(
            f"nothing is known of the model {name} before it is loaded: [[when]] blocks that ask "
            "for its family or size are left out"
        )
    return _check(sketch, reader, chain)


def _sketch(
    draft: Draft, reader: OptionReader, registry: Registry, facts: Facts, lookup: DataLookup | None
) -> Sketch:
    """Return the typed draft; raises every mistake that was found on the way."""
    reader.read_params(draft.params)
    model = _core(reader, ModelOptions, draft, "model")
    data = _core(reader, DataOptions, draft, "data")
    train = _core(reader, TrainOptions, draft, "train")
    inference = _core(reader, InferenceOptions, draft, "inference")
    views = {
        name: reader.options(ViewOptions, settings, f"views.{name}") or ViewOptions()
        for name, settings in draft.views.items()
    }
    parts = [_part(item, reader, registry) for item in draft.instances()]
    raise_all(reader.errors)
    rows, columns = facts.rows, facts.columns
    if lookup is not None and (rows is None or columns is None):
        found_rows, found_columns = lookup(data)
        rows = found_rows if rows is None else rows
        columns = found_columns if columns is None else columns
    if rows is not None and data.limit is not None:
        rows = min(rows, data.limit)
    if data.split_tokens is not None:
        rows = None  # not known before the texts are cut
    facts = replace(
        facts,
        rows=rows,
        columns=columns,
        batch_size=train.batch_size,
        steps=train.max_steps if rows is None else train.steps(rows),
        precision=train.precision,
    )
    return Sketch(
        registry=registry,
        parts=[part for part in parts if part is not None],
        views=views,
        model=model,
        data=data,
        train=train,
        inference=inference,
        facts=facts,
    )


def _core(reader: OptionReader, options: type[OptionsT], draft: Draft, name: str) -> OptionsT:
    return reader.options(options, draft.tables[name], name) or options()


def _part(item: Instance, reader: OptionReader, registry: Registry) -> PlannedPart | None:
    try:
        found = registry.find(item.kind, item.use, where=f"--{item.kind}")
    except CseError as error:
        reader.errors.append(error)
        return None
    options = reader.options(found.spec.options, item.options, item.path)
    return None if options is None else PlannedPart.of(found, options, item.name)


def _check(sketch: Sketch, reader: OptionReader, chain: Sequence[Document]) -> Composition:
    if not sketch.of("loss"):
        names = [found.name for found in sketch.registry.parts("loss")]
        hint = f"add one: --loss {names[0]}" if names else "no loss is installed"
        sketch.errors.append(CseError("nothing is minimised", where="loss", hint=hint))
    order_poolers(sketch)
    check_doubles(sketch)
    views = plan_views(sketch)
    add_branches(sketch, {view.name: view.branch for view in views})
    check_closure(sketch)
    check_negatives(sketch, views)
    check_positives(sketch)
    check_branches(sketch, views)
    check_sizes(sketch)
    check_weights(sketch)
    check_columns(sketch, views)
    inference_pool = check_inference(sketch)
    check_prompts(sketch, inference_pool)
    _warn_of_patience(sketch)
    _derive(sketch, views)
    raise_all(_once(sketch.errors))
    for part in sketch.parts:
        for say, lines in ((part.spec.notes, sketch.notes), (part.spec.warnings, sketch.warnings)):
            if say is not None:
                lines += [f"{part.path}: {line}" for line in say(part.options, sketch.facts)]
    return Composition(
        recipe=chain[-1].name if chain else None,
        model=sketch.model,
        data=sketch.data,
        train=sketch.train,
        inference=sketch.inference,
        params=dict(reader.params),
        parts=tuple(sketch.parts),
        views=views,
        passes=plan_passes(sketch, views),
        facts=sketch.facts,
        inference_pool=inference_pool,
        feeds=plan_feeds(sketch, views),
        notes=tuple(dict.fromkeys(sketch.notes)),
        warnings=tuple(dict.fromkeys([*sketch.warnings, *_other_versions(sketch, chain)])),
        raw=_raw(sketch, reader, chain),
    )


def _derive(sketch: Sketch, views: tuple[PlannedView, ...]) -> None:
    """Tell the facts what is planned, and let parts set the options that follow from it."""
    sketch.facts = replace(
        sketch.facts,
        views={view.name: {"branch": view.branch, "column": view.column} for view in views},
        branches={part.name: part.options.model_dump() for part in sketch.of("branch")},
    )
    for place, part in enumerate(sketch.parts):
        if part.spec.derive is not None:
            try:
                options = part.spec.derive(part.options, sketch.facts)
            except ValueError as error:
                sketch.errors.append(CseError(str(error), where=part.path))
            else:
                sketch.parts[place] = replace(part, options=options)


def _warn_of_patience(sketch: Sketch) -> None:
    """Warn of a patience that nothing can try: scores are what it waits for.

    Where a recipe counts on it, such as one whose steps at most are many more than it takes, the
    run would be as much longer, and nothing else would say so.
    """
    train, installed = sketch.train, {found.name for found in sketch.registry.datasets()}
    own = any(path in installed for path in sketch.data.path)  # what auto finds pairs of
    if any(own if wanted == "auto" else wanted != "none" for wanted in train.dev):
        return
    steps = "all its epochs" if train.max_steps is None else f"all its {train.max_steps} steps"
    waits = [("train.patience", train.patience, steps)]
    for part in sketch.rounds():
        bound = "all its epochs" if hasattr(part.options, "epochs") else steps
        waits.append((f"{part.path}.patience", getattr(part.options, "patience", None), bound))
    sketch.warnings += [
        f"{path} = {patience} ends nothing: without a dev set no score is there to wait for, and "
        f"a round takes {bound}; name one with --dev FILE"
        for path, patience, bound in waits
        if patience is not None
    ]


def _once(errors: Sequence[CseError]) -> list[CseError]:
    """Return the errors without a second one of the same line."""
    return list({error.line(): error for error in errors}.values())


def _other_versions(sketch: Sketch, chain: Sequence[Document]) -> list[str]:
    recorded = {key: text for each in chain for key, text in (each.versions or {}).items()}
    return [
        f"{part.distribution} was {recorded[part.distribution]} in that run, and is {part.version}"
        for part in sketch.parts
        if recorded.get(part.distribution, part.version) != part.version
    ]


def _raw(sketch: Sketch, reader: OptionReader, chain: Sequence[Document]) -> dict[str, Any]:
    """Return the run as the content of a recipe file that repeats it."""
    raw: dict[str, Any] = {"name": chain[-1].name} if chain else {}
    if reader.params:
        raw["params"] = dict(reader.params)
    for name in ("model", "data", "train", "inference"):
        raw[name] = _plain(getattr(sketch, name), name, reader)
    views = {name: _plain(each, f"views.{name}", reader) for name, each in sketch.views.items()}
    if views:
        raw["views"] = views
    counts: dict[tuple[Kind, str], int] = {}
    for found in sketch.registry.parts():
        counts[found.spec.kind, found.name] = counts.get((found.spec.kind, found.name), 0) + 1
    for kind in KINDS:
        raw[kind] = [
            {
                "use": f"{part.distribution}/{part.use}"
                if counts.get((kind, part.use), 0) > 1
                else part.use,
                "name": part.name,
                **_plain(part.options, part.path, reader),
            }
            for part in sketch.of(kind)
        ]
    return {key: content for key, content in raw.items() if content}


def _plain(options: Options, path: str, reader: OptionReader) -> dict[str, Any]:
    """Return options as TOML can hold them; expressions of parameters as they were written."""
    plain: dict[str, Any] = {}
    for name, value in options.model_dump().items():
        where = f"{path}.{name}"
        default = type(options).model_fields[name].get_default(call_default_factory=True)
        if where in reader.expressions:
            plain[name] = reader.expressions[where]
        elif value is None and default is not None:
            plain[name] = "none"
        elif value is not None and not (value == default and value in ((), {})):
            plain[name] = _listed(value)
    return plain


def _listed(value: Any) -> Any:
    if isinstance(value, tuple | list | set | frozenset):
        return [_listed(item) for item in value]
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items() if item is not None}
    return value
