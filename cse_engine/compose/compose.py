"""From a recipe and the command line to a checked plan.

``resolve`` goes through three types: the ``Draft`` (what is written, untyped), the ``Run`` (typed
options and parts) and the ``Composition`` (the plan: views, branches, passes, what encodes later).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, cast

from cse_core.errors import CseError, PartError, collect_errors, raise_all
from cse_core.files import MANIFEST
from cse_core.model_card import Declared
from cse_core.options import HeadOptions, models_named
from cse_core.records import HeadSpec, Kind, RowPoolerSpec, SliceSpec
from cse_core.registry.registry import Registry
from cse_core.run_info import RunInfo
from cse_core.texts import FILLED, DataOptions
from cse_engine.compose import checks
from cse_engine.compose.composition import (
    Composition,
    PlannedPart,
    PlannedView,
    Problem,
    Run,
    needed_columns,
)
from cse_engine.compose.draft import (
    COMMAND_LINE,
    Draft,
    Setting,
    apply_kinds,
    apply_sets,
    merge_documents,
    parse_sets,
)
from cse_engine.compose.models import Models
from cse_engine.compose.planning import plan_passes, plan_views
from cse_engine.compose.reading import (
    KINDS,
    Document,
    default_document,
    model_document,
    read_recipe,
)
from cse_engine.compose.settings import (
    CORE_OPTIONS,
    DIRECTIONS,
    ModelOptions,
    TrainOptions,
    ViewOptions,
)
from cse_engine.compose.values import Accepted, OptionReader, format_value, parse_flag

DataLookup = Callable[[DataOptions], Any]
"""Reads the data, as a ``cse_defaults.texts.Data``."""
OptionsT = TypeVar("OptionsT", ModelOptions, ViewOptions)


@dataclass(frozen=True)
class Known:
    """What was read for a plan, before its values are typed.

    Attributes:
        facts: Facts of the model.
        says: How the model says that it encodes.
        recorded: Versions of distributions that earlier runs recorded.
        complete: Whether the caller gave the facts, so that no model's folder is read.
    """

    facts: RunInfo
    says: Declared
    recorded: Mapping[str, str]
    complete: bool


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
    recipes = read_recipe(recipe, registry) if recipe is not None else ()
    default = default_document(alone=not recipes)
    settings, unread = parse_sets(sets)
    errors: list[CseError] = []
    known = look((default, *recipes), settings, model, facts, registry, errors)
    saved = model_document(known.says, known.facts)
    chosen = [_with_pooling(document, known.says) for document in recipes]
    draft = merge_documents((default, saved, *chosen), known.facts)
    draft.recipe = draft.recipe if recipes else None
    with collect_errors(errors):
        poolers = replace(saved, table={"pool": known.says.poolers()})
        apply_kinds(draft, kinds or {}, poolers)
    flags = (("model", "name", model), ("data", "path", [*data]), ("train", "dev", [*dev]))
    for table, name, value in flags:
        if value not in (None, []):
            draft.write(table, {name: value}, COMMAND_LINE)
    errors += unread
    with collect_errors(errors):
        apply_sets(draft, settings, registry)
    repeats = bool(recipes and recipes[-1].versions) and not (kinds or sets or model or data or dev)
    run = _type(draft, known, registry, lookup, errors)
    return _plan(run, registry, known.recorded, derive=not repeats)


def look(
    documents: Sequence[Document],
    settings: Sequence[Setting],
    model: str | None,
    facts: RunInfo | None,
    registry: Registry,
    errors: list[CseError],
) -> Known:
    """Read what is known of the model that a run will have, which decides its ``[[when]]``."""
    recorded = chain.from_iterable((document.versions or {}).items() for document in documents)
    if facts is not None:
        return Known(facts, Declared(), dict(recorded), complete=True)
    written = [document.table.get("model", {}).get("name") for document in documents]
    accepted = Accepted.of(ModelOptions.model_fields["name"])
    typed = [parse_flag(item.value, accepted) for item in settings if item.path == "model.name"]
    names = [name for name in (ModelOptions().name, *written, model, *typed) if name is not None]
    facts, says = RunInfo(model=str(names[-1])), Declared()
    with collect_errors(errors):
        facts, says = Models(registry).look(facts.model)
    return Known(facts, says, dict(recorded), complete=False)


def _with_pooling(document: Document, says: Declared) -> Document:
    """Replace the pooler ``model`` of a recipe by those that the model says itself."""
    if document.table.get("pool") != [{"use": "model"}]:
        return document
    return replace(document, table={**document.table, "pool": says.poolers()})


def _type(
    draft: Draft,
    known: Known,
    registry: Registry,
    lookup: DataLookup | None,
    errors: list[CseError],
) -> Run:
    """Type a draft and read its data; raises ``errors`` and all further mistakes."""
    reader = OptionReader(errors=errors, curves=registry.curves())
    reader.read_params(draft.tables["params"], known.facts.hidden)
    core: dict[str, Any] = {
        name: reader.options(options, draft.tables[name], name) or options()
        for name, options in CORE_OPTIONS.items()
    }
    views = {
        name: reader.options(ViewOptions, settings, f"views.{name}") or ViewOptions()
        for name, settings in draft.views.items()
    }
    parts = _typed_parts(draft, known, registry, reader)
    with collect_errors(errors):
        core["model"] = _with_prompt(core["model"], "model", draft, known)
        views = {n: _with_prompt(view, f"views.{n}", draft, known) for n, view in views.items()}
    read = None
    if lookup and not any((error.where or "").startswith("data.") for error in errors):
        with collect_errors(errors):
            read = lookup(core["data"])
    raise_all(errors)
    named = {} if known.complete else _named_models(parts, registry)
    notes, warnings = list(draft.notes), []
    if known.facts.family is None:
        warnings.append(
            f"nothing is known of the model {known.facts.model} before it is loaded: [[when]] "
            "blocks that ask for its family or size are left out"
        )
    core["train"] = _in_precision(core["train"], parts, notes, warnings)
    attention = core["model"].attention
    return Run(
        recipe=draft.recipe,
        **core,
        params=reader.params,
        parts=parts,
        view_options=views,
        facts=replace(
            known.facts,
            columns=known.facts.columns if read is None else read.columns,
            causal=attention == "causal" if attention in DIRECTIONS else known.facts.causal,
            batch_size=core["train"].batch_size,
            precision=core["train"].precision,
        ),
        notes=tuple(notes),
        warnings=tuple(warnings),
        expressions=reader.expressions,
        origins=draft.origins,
        declared=registry.views,
        read=read,
        says=known.says,
        named=named,
    )


def _typed_parts(
    draft: Draft, known: Known, registry: Registry, reader: OptionReader
) -> tuple[PlannedPart, ...]:
    parts: list[PlannedPart] = []
    installed = {info.distribution for info in registry.plugins}
    for item in chain.from_iterable(named.values() for named in draft.parts.values()):
        with collect_errors(reader.errors):
            distribution = item.use.rpartition("/")[0]
            if (version := known.recorded.get(distribution)) and distribution not in installed:
                what = f"part of {distribution} {version}, which is not installed"
                hint = registry.how_to_get(item.kind, item.use)
                hint = hint or f"pip install {distribution}=={version}"
                raise CseError(what, where=item.path, value=item.use, hint=hint)
            record = registry.find(item.kind, item.use, where=f"--{item.kind}", near=item.near)
            options = reader.options(record.spec.options_class, item.options, item.path)
            if options is not None:
                parts.append(PlannedPart.of(record, options, item.name))
    return tuple(sorted(parts, key=_place))


def _place(part: PlannedPart) -> tuple[int, int]:
    """Order parts by their kind, and poolers as vectors pass through them."""
    stages = (SliceSpec, RowPoolerSpec, HeadSpec)
    stage = next((i for i, stage in enumerate(stages) if isinstance(part.spec, stage)), 0)
    return KINDS.index(part.kind), stage


def _with_prompt(options: OptionsT, table: str, draft: Draft, known: Known) -> OptionsT:
    """Replace the name of a prompt by its text; only ``model`` has the model's own."""
    path, given, says = f"{table}.prompt", options.prompt, known.says
    if given is None and table != "model":
        return options
    text = says.prompt(given or "", path, typed=path not in draft.recorded)
    if table == "model" and not text and says.default_prompt_name is None:
        return options
    return options.model_copy(update={"prompt": text})


def _in_precision(
    train: TrainOptions, parts: Sequence[PlannedPart], notes: list[str], warnings: list[str]
) -> TrainOptions:
    """Set the number format that a part needs, where none is asked for."""
    needs = [(part, name) for part in parts for name in part.needs("precision")]
    warnings += [
        f"{part.path} needs train.precision = {name}, and this run has {train.precision}"
        for part, name in needs
        if train.precision not in ("auto", name)
    ]
    if train.precision != "auto" or not needs:
        return train
    part, name = needs[0]
    notes.append(f"train.precision = {name}, which {part.path} needs")
    return train.model_copy(update={"precision": name})


def _plan(
    run: Run, registry: Registry, recorded: Mapping[str, str], *, derive: bool
) -> Composition:
    """Plan views, branches and passes of a run, and check all; raises all errors of the checks."""
    problems: list[Problem] = [*run.warnings]
    views, unmade = plan_views(run)
    parts, added, unknown = checks.add_branches(run, views, registry)
    problems += [*unmade, *unknown]
    facts = _count(run, parts, views, problems)
    derived, refused = _derive(parts, facts) if derive else (parts, [])
    pool = None
    with collect_errors(problems):
        pool = checks.find_inference_pool(run, registry)
    values = {field.name: getattr(run, field.name) for field in fields(Run)}
    values |= {"parts": derived, "facts": facts, "views": views, "inference_pool": pool}
    plan = Composition(**values)
    for check in checks.CHECKS:
        problems += check(plan, registry)
    errors = [problem for problem in (*problems, *refused) if isinstance(problem, CseError)]
    raise_all(list({error.line(): error for error in errors}.values()))
    warnings = [problem for problem in problems if isinstance(problem, str)]
    kept, changed = _compare_with_model(plan)
    notes = [*run.notes, *added, *kept, *_lines_of_parts(plan, "plan_notes")]
    warnings += [*changed, *_lines_of_parts(plan, "plan_warnings")]
    warnings += _other_versions(plan, recorded)
    return replace(
        plan,
        passes=plan_passes(plan),
        notes=tuple(dict.fromkeys(notes)),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _count(
    run: Run,
    parts: Sequence[PlannedPart],
    views: Sequence[PlannedView],
    problems: list[Problem],
) -> RunInfo:
    """Count the rows of the data that have what the run needs, and its steps; add its plan."""
    rows, needed = run.facts.rows, needed_columns(parts, views)
    if run.read is not None and {*needed.required} <= {*run.read.columns, *FILLED}:
        with collect_errors(problems):
            rows = len(run.read.corpus(needed))
    if run.data.split_tokens is not None:
        rows = None  # not known before the texts are cut
    return replace(
        run.facts,
        rows=rows,
        steps=run.train.max_steps if rows is None else run.train.steps(rows),
        views={v.name: {"branch": v.branch, "column": v.column, "role": v.role} for v in views},
        branches={part.name: part.options.model_dump() for part in parts if part.kind == "branch"},
        stores={part.name: part.options.model_dump() for part in parts if part.kind == "negatives"},
    )


def _derive(
    parts: Sequence[PlannedPart], facts: RunInfo
) -> tuple[tuple[PlannedPart, ...], list[CseError]]:
    """Let parts set the options that follow from the run."""
    derived, errors = list[PlannedPart](), list[CseError]()
    for part in parts:
        try:
            options = _call_record(part, "resolve_options", facts, part.options)
        except ValueError as error:
            errors.append(CseError(str(error), where=part.path))
            options = part.options
        if not isinstance(options, type(part.options)):
            what = f"promised {type(part.options).__name__}, returned {options!r}"
            raise PartError(part, "resolve_options", what)
        derived.append(replace(part, options=options))
    return tuple(derived), errors


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
        origin = f"{MANIFEST} or modules.json of {name}: {error.where}"
        where = origin if pooling == "model" else "--pooling"
        raise CseError(error.what, where=where, value=error.value, hint=error.hint) from None


def _named_models(parts: Sequence[PlannedPart], registry: Registry) -> dict[str, Composition]:
    """Compose the models that options of parts name, each as it says itself."""
    models, errors = dict[str, Composition](), list[CseError]()
    for part in parts:
        for option, name in models_named(part.options).items():
            try:
                models[name] = model_alone(name, registry)
                if models[name].inference.slice:
                    raise CseError("slices its texts, which only the run's own model does")
            except CseError as error:
                where = f"{part.path}.{option}"
                errors.append(CseError(error.what, where=where, value=name, hint=error.hint))
    raise_all(errors)
    return models


def _compare_with_model(run: Composition) -> tuple[list[str], list[str]]:
    """Compare how the run encodes with what its models say: what it keeps, and what it changes."""
    says, (row, heads, _) = run.says, run.inference_parts
    kinds = [cast(HeadOptions, head.options).weights for head in heads]
    new = [head.name if kind == "model" else f"new {head.name}"
           for head, kind in zip(heads, kinds, strict=True)]  # fmt: skip
    old = [says.row.use, *(head.name or head.use for head in says.heads)] if says.row else []
    prompt = says.prompts.get(says.default_prompt_name or "", "")
    inference = model_document(says, run.facts).table["inference"]
    table = [("pool", ", ".join(old), ", ".join([row.use, *new]))]
    table.append(("model.prompt", prompt and repr(prompt), repr(run.model.prompt)))
    for name, value in inference.items():
        now = format_value(getattr(run.inference, name))
        table.append((f"inference.{name}", format_value(value), now))
    kept = ["lower-casing"] if says.do_lower_case else []
    kept += [f"{path} {before}" for path, before, now in table if before == now]
    changed = [
        f"{path} is {before} in the model, and {now} here: --{path} "
        f"{'model' if path == 'pool' else before} keeps it"
        for path, before, now in table
        if before and before != now
    ]
    notes = [f"as in the model: {'; '.join(kept)}"] if kept else []
    for name, other in run.named.items():
        words = {"pool": ", ".join(part.name for part in other.of("pool"))}
        words |= {"prompt": repr(other.model.prompt)} if other.model.prompt else {}
        words |= {key: format_value(value) for key, value in other.says.inference().items()}
        text = "; ".join(f"{key} {value}" for key, value in words.items())
        notes.append(f"{name} encodes as it says itself: {text}")
    return notes, changed


def _lines_of_parts(run: Composition, field: str) -> Iterator[str]:
    for part in run.parts:
        lines = _call_record(part, field, run.facts, [])
        if not isinstance(lines, list):
            raise PartError(part, field, f"promised a list of lines, returned {lines!r}")
        yield from (f"{part.path}: {line}" for line in lines)


def _call_record(part: PlannedPart, field: str, facts: RunInfo, default: Any) -> Any:
    """Call a function of a part's record; a ValueError of ``resolve_options`` passes."""
    function = getattr(part.spec, field)
    try:
        return default if function is None else function(part.options, facts)
    except Exception as error:
        if field == "resolve_options" and isinstance(error, ValueError):
            raise
        raise PartError(part, field, f"raised {type(error).__name__}: {error}") from error


def _other_versions(run: Composition, recorded: Mapping[str, str]) -> Iterator[str]:
    """Warn where a run is repeated with other versions of its plugins."""
    for part in run.parts:
        before = recorded.get(part.distribution, part.version)
        if before != part.version:
            yield f"{part.distribution} was {before} in that run, and is {part.version}"
