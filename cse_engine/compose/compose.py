"""From a recipe and the command line to a checked composition."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

from cse_core.errors import CseError, PartError, collect_errors, raise_all
from cse_core.files import MANIFEST
from cse_core.model_card import Declared
from cse_core.options import HeadOptions, models_named
from cse_core.records import HeadSpec, Kind, RowPoolerSpec, SliceSpec
from cse_core.registry.registry import Registry
from cse_core.run_info import RunInfo
from cse_core.texts import FILLED, DataOptions
from cse_engine.compose import checks
from cse_engine.compose.composition import Composition, PlannedPart, Problem
from cse_engine.compose.draft import Draft, apply_kinds, apply_sets, merge_documents
from cse_engine.compose.models import Models
from cse_engine.compose.planning import plan_passes, plan_views
from cse_engine.compose.reading import (
    KINDS,
    Document,
    default_document,
    model_document,
    read_recipe,
)
from cse_engine.compose.settings import CORE_OPTIONS, DIRECTIONS, ModelOptions, ViewOptions
from cse_engine.compose.values import OptionReader, as_typed

DataLookup = Callable[[DataOptions], Any]
"""Reads the data, as a ``cse_defaults.texts.Data``."""


def resolve(
    registry: Registry,
    *,
    recipe: str | Path | None = None,
    kinds: Mapping[Kind, Sequence[str]] | None = None,
    sets: Sequence[str] = (),
    model: str | None = None,
    data: Sequence[str] = (),
    dev: Sequence[str] = (),
    facts: RunInfo | None = None,
    lookup: DataLookup | None = None,
) -> Composition:
    """Merge a recipe and the command line, type every value, and check that the parts fit.

    Defaults come first, then the recipe with its ``[[when]]`` blocks, then the command line.

    ``recipe`` names an installed one, a TOML file or a run's folder. ``kinds`` are flags as typed:
    ``NAME`` replaces the recipe's list, ``+NAME`` adds, ``~NAME`` takes away; ``distribution/part``
    and ``part:name`` are understood. ``sets`` are ``path=value``, after ``model``. Without
    ``facts`` the encoder's files are read, and ``lookup`` reads the data.

    Raises:
        CseError: What is wrong; ``CseErrors`` where it is more than one thing.
    """
    chain = read_recipe(recipe, registry) if recipe is not None else ()
    documents = (default_document(alone=not chain), *chain)
    errors: list[CseError] = []
    says, given = Declared(), facts is not None
    if facts is None:
        facts = RunInfo(model=_model_name(documents, sets, model))
        with collect_errors(errors):
            facts, says = Models(registry).look(facts.model)
    recipes = (_own_pooling(document, says) for document in chain)
    draft = merge_documents((documents[0], model_document(says, facts), *recipes), facts)
    with collect_errors(errors):
        apply_kinds(draft, kinds or {}, says.poolers())
    if model is not None:
        draft.tables["model"]["name"] = model
    if data:
        draft.tables["data"]["path"] = list(data)
    if dev:
        draft.tables["train"]["dev"] = list(dev)
    with collect_errors(errors):
        apply_sets(draft, sets, registry)
    run = replace(_typed(draft, registry, facts, chain, errors), says=says)
    with collect_errors(errors):
        typed = not _recorded(chain) or any(".prompt=" in each for each in sets)
        text = says.prompt(run.model.prompt or "", typed=typed)
        if text or says.default_prompt_name is not None:
            run = replace(run, model=run.model.model_copy(update={"prompt": text}))
        named = {
            name: each if each.prompt is None
            else each.model_copy(
                update={"prompt": says.prompt(each.prompt, f"views.{name}.prompt", typed=typed)}
            )
            for name, each in run.view_options.items()
        }  # fmt: skip
        run = replace(run, view_options=named)
    if not any((error.where or "").startswith("data.") for error in errors):
        with collect_errors(errors):
            run = replace(run, read=None if lookup is None else lookup(run.data))
    raise_all(errors)
    if not given:
        run = replace(run, named=_named_models(run, registry))
    as_it_was = bool(chain and chain[-1].versions) and not (kinds or sets or model or data or dev)
    run = _completed(run, registry, derive=not as_it_was)
    return replace(
        run, warnings=tuple(dict.fromkeys([*run.warnings, *_other_versions(run, chain)]))
    )


def _own_pooling(document: Document, says: Declared) -> Document:
    """Return a recipe with the poolers that the model says itself in place of ``model``."""
    if document.table.get("pool") != [{"use": "model"}]:
        return document
    return replace(document, table={**document.table, "pool": says.poolers()})


def _model_name(documents: Sequence[Document], sets: Sequence[str], model: str | None) -> str:
    """Return the encoder that a run will have, which decides its ``[[when]]`` blocks."""
    name: object = ModelOptions().name
    for document in documents:
        name = document.table.get("model", {}).get("name", name)
    name = name if model is None else model
    for text in sets:
        path, _, value = text.partition("=")
        if path.strip() == "model.name":
            name = value.strip().strip("\"'")
    return str(name)


def _typed(
    draft: Draft,
    registry: Registry,
    facts: RunInfo,
    documents: Sequence[Document],
    errors: list[CseError],
) -> Composition:
    """Return the draft typed; ``errors`` gets the mistakes, in place of which defaults stand."""
    reader = OptionReader(errors=errors, curves=registry.curves())
    reader.read_params(draft.tables["params"], facts.hidden)
    core: dict[str, Any] = {
        name: reader.options(options, draft.tables[name], name) or options()
        for name, options in CORE_OPTIONS.items()
    }
    views = {
        name: reader.options(ViewOptions, settings, f"views.{name}") or ViewOptions()
        for name, settings in draft.views.items()
    }
    parts = []
    recorded = _recorded(documents)
    here = {info.distribution for info in registry.plugins}
    for item in chain.from_iterable(named.values() for named in draft.parts.values()):
        with collect_errors(errors):
            distribution = item.use.rpartition("/")[0]
            if (version := recorded.get(distribution)) and distribution not in here:
                what = f"part of {distribution} {version}, which is not installed"
                hint = registry.how_to_get(item.kind, item.use)
                hint = hint or f"pip install {distribution}=={version}"
                raise CseError(what, where=item.path, value=item.use, hint=hint)
            found = registry.find(item.kind, item.use, where=f"--{item.kind}", near=item.near)
            options = reader.options(found.spec.options_class, item.options, item.path)
            if options is not None:
                parts.append(PlannedPart.of(found, options, item.name))
    return Composition(
        recipe=documents[-1].name if documents else None,
        **core,
        params=reader.params,
        expressions=reader.expressions,
        parts=tuple(sorted(parts, key=_place)),
        view_options=views,
        facts=facts,
        notes=tuple(draft.notes),
        declared=registry.views,
    )


def _place(part: PlannedPart) -> tuple[int, int]:
    """Return where a part stands: by its kind, poolers as vectors pass through them."""
    stages = (SliceSpec, RowPoolerSpec, HeadSpec)
    stage = next((i for i, stage in enumerate(stages) if isinstance(part.spec, stage)), 0)
    return KINDS.index(part.kind), stage


def _in_precision(run: Composition, problems: list[Problem]) -> Composition:
    """Return the run in the number format that a part needs, where none is asked for."""
    given = run.train.precision
    needs = [(part, name) for part in run.parts for name in part.needs("precision")]
    for part, name in needs:
        if given not in ("auto", name):
            problems.append(f"{part.path} needs train.precision = {name}, and this run has {given}")
    if given != "auto" or not needs:
        return run
    part, name = needs[0]
    train = run.train.model_copy(update={"precision": name})
    note = f"train.precision = {name}, which {part.path} needs"
    return replace(run, train=train, notes=(*run.notes, note))


def _with_rows(run: Composition, problems: list[Problem]) -> Composition:
    """Return the run with the rows of its data that have what it needs, and its steps."""
    rows, needed = run.facts.rows, run.needed_columns
    if run.read is not None and {*needed.required} <= {*run.read.columns, *FILLED}:
        with collect_errors(problems):
            rows = len(run.read.corpus(needed))
    if run.data.split_tokens is not None:
        rows = None  # not known before the texts are cut
    return replace(
        run,
        facts=replace(
            run.facts,
            rows=rows,
            batch_size=run.train.batch_size,
            steps=run.train.max_steps if rows is None else run.train.steps(rows),
            precision=run.train.precision,
        ),
    )


def _completed(run: Composition, registry: Registry, *, derive: bool) -> Composition:
    """Return the run with its views, branches and passes; raises all errors of the checks."""
    problems: list[Problem] = []
    if run.read is not None:
        run = replace(run, facts=replace(run.facts, columns=run.read.columns))
    if run.facts.family is None:
        problems.append(
            f"nothing is known of the model {run.facts.model} before it is loaded: [[when]] blocks "
            "that ask for its family or size are left out"
        )
    run = _in_precision(run, problems)
    if run.model.attention in DIRECTIONS:
        causal = run.model.attention == "causal"
        run = replace(run, facts=replace(run.facts, causal=causal))
    views, unmade = plan_views(run)
    run, unknown = checks.add_branches(replace(run, views=views), registry)
    problems += [*unmade, *unknown]
    run = _with_rows(run, problems)
    with collect_errors(problems):
        run = replace(run, inference_pool=checks.find_inference_pool(run, registry))
    for check in checks.CHECKS:
        problems += check(run, registry)
    run, refused = _derived(run, derive=derive)
    errors = [problem for problem in (*problems, *refused) if isinstance(problem, CseError)]
    raise_all(list({error.line(): error for error in errors}.values()))
    warnings = [problem for problem in problems if isinstance(problem, str)]
    kept, changed = _of_the_model(run)
    return replace(
        run,
        passes=plan_passes(run),
        notes=tuple(dict.fromkeys([*run.notes, *kept, *_lines_of_parts(run, "plan_notes")])),
        warnings=tuple(
            dict.fromkeys([*warnings, *changed, *_lines_of_parts(run, "plan_warnings")])
        ),
    )


def model_alone(
    name: str, registry: Registry, *, pooling: str = "model", prompt: str | None = None
) -> Composition:
    """Return a run of a model that encodes as it says itself, but for a row pooler or a prompt."""
    sets = ["model.max_length=2"]  # of rows to train on, of which it has none
    if prompt is not None:
        sets.append(f"model.prompt={json.dumps(prompt, ensure_ascii=False)}")
    if pooling != "model":
        sets += [f"pool.{pooling.rpartition('/')[2]}.weights=model", "inference.slice=false"]
    try:
        return resolve(registry, kinds={"pool": [pooling]}, sets=sets, model=name)
    except CseError as error:
        if not (error.where or "").lstrip("-").startswith("pool"):
            raise
        own = f"{MANIFEST} or modules.json of {name}: {error.where}"
        where = own if pooling == "model" else "--pooling"
        raise CseError(error.what, where=where, value=error.value, hint=error.hint) from None


def _named_models(run: Composition, registry: Registry) -> dict[str, Composition]:
    """Return the models that options of parts name."""
    found, errors = {}, list[CseError]()
    for part in run.parts:
        for option, name in models_named(part.options).items():
            try:
                found[name] = model_alone(name, registry)
                if found[name].inference.slice:
                    raise CseError("slices its texts, which only the run's own model does")
            except CseError as error:
                where = f"{part.path}.{option}"
                errors.append(CseError(error.what, where=where, value=name, hint=error.hint))
    raise_all(errors)
    return found


def _of_the_model(run: Composition) -> tuple[list[str], list[str]]:
    """Return what the run keeps of how its models encode, for the notes, and what it changes."""
    says, row, heads = run.says, *run.inference_parts[:2]
    new = [h.name if cast(HeadOptions, h.options).weights == "model" else f"new {h.name}"
           for h in heads]  # fmt: skip
    own = [says.row.use, *(head.name or head.use for head in says.heads)] if says.row else []
    prompt = says.prompts.get(says.default_prompt_name or "", "")
    settings = model_document(says, run.facts).table["inference"]
    kept, changed = ["lower-casing"] if says.do_lower_case else [], []
    for what, before, now in (
        ("pool", ", ".join(own), ", ".join([row.use, *new])),
        ("model.prompt", prompt and repr(prompt), repr(run.model.prompt)),
        *((f"inference.{k}", as_typed(v), as_typed(getattr(run.inference, k)))
          for k, v in settings.items()),
    ):  # fmt: skip
        if before == now:
            kept.append(f"{what} {before}")
        elif before:
            how = "--pool" if what == "pool" else f"--{what}"
            word = "model" if what == "pool" else before
            line = f"{what} is {before} in the model, and {now} here: {how} {word} keeps it"
            changed.append(line)
    notes = [f"as in the model: {'; '.join(kept)}"] if kept else []
    for name, other in run.named.items():
        pool = ", ".join(part.name for part in other.of("pool"))
        said = {"prompt": repr(other.model.prompt)} if other.model.prompt else {}
        said |= {key: as_typed(value) for key, value in other.says.inference().items()}
        words = "; ".join(f"{key} {value}" for key, value in {"pool": pool, **said}.items())
        notes.append(f"{name} encodes as it says itself: {words}")
    return notes, changed


def _lines_of_parts(run: Composition, what: str) -> Iterator[str]:
    for part in run.parts:
        lines = _said(part, what, run.facts, [])
        if not isinstance(lines, list):
            raise PartError(part, what, f"promised a list of lines, returned {lines!r}")
        yield from (f"{part.path}: {line}" for line in lines)


def _said(part: PlannedPart, what: str, facts: RunInfo, otherwise: Any) -> Any:
    """Return what a record's function returns; ValueError of ``resolve_options`` passes."""
    function = getattr(part.spec, what)
    try:
        return otherwise if function is None else function(part.options, facts)
    except Exception as error:
        if what == "resolve_options" and isinstance(error, ValueError):
            raise
        raise PartError(part, what, f"raised {type(error).__name__}: {error}") from error


def _derived(run: Composition, *, derive: bool) -> tuple[Composition, list[CseError]]:
    """Tell the facts what is planned, and let parts set the options that follow from it.

    Without ``derive``, for a run of before, what they set then stays.
    """
    facts = replace(
        run.facts,
        views={
            view.name: {"branch": view.branch, "column": view.column, "role": view.role}
            for view in run.views
        },
        branches={part.name: part.options.model_dump() for part in run.of("branch")},
        stores={part.name: part.options.model_dump() for part in run.of("negatives")},
    )
    parts: list[PlannedPart] = []
    errors = []
    for part in run.parts:
        try:
            options = part.options
            if derive:
                options = _said(part, "resolve_options", facts, options)
            if not isinstance(options, type(part.options)):
                promised = type(part.options).__name__
                raise PartError(
                    part, "resolve_options", f"promised {promised}, returned {options!r}"
                )
            parts.append(replace(part, options=options))
        except ValueError as error:
            errors.append(CseError(str(error), where=part.path))
    return replace(run, facts=facts, parts=tuple(parts)), errors


def _recorded(documents: Sequence[Document]) -> dict[str, str]:
    """Return the versions of distributions that earlier runs recorded."""
    return dict(chain.from_iterable((each.versions or {}).items() for each in documents))


def _other_versions(run: Composition, chain: Sequence[Document]) -> Iterator[str]:
    """Yield what to look at where a run is repeated with other versions of its plugins."""
    recorded = _recorded(chain)
    for part in run.parts:
        before = recorded.get(part.distribution, part.version)
        if before != part.version:
            yield f"{part.distribution} was {before} in that run, and is {part.version}"
