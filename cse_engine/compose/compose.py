"""From a recipe and the command line to a checked plan.

``resolve`` goes through three types: the ``Draft`` (what is written, untyped), the ``Run`` (typed
options and parts) and the ``Composition`` (the plan: views, branches, passes, what encodes later).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

from cse_core.errors import CseError, PartError, collect_errors, raise_all
from cse_core.files import MANIFEST
from cse_core.options import HeadOptions, Options, models_named
from cse_core.records import HeadSpec, Kind, RowPoolerSpec
from cse_core.registry.registry import Registry
from cse_core.run_info import RunInfo
from cse_core.texts import FILLED, DataOptions
from cse_engine.compose import checks
from cse_engine.compose.composition import Composition, PlannedPart, Problem, Run
from cse_engine.compose.draft import Draft, Setting, parse_sets
from cse_engine.compose.models import Models
from cse_engine.compose.planning import plan_passes, plan_views
from cse_engine.compose.reading import KINDS, default_document, model_document, read_recipe
from cse_engine.compose.settings import CORE_OPTIONS, ModelOptions, TrainOptions, ViewOptions
from cse_engine.compose.size_checks import vector_sizes
from cse_engine.compose.values import OptionReader, format_value

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
    recipes = read_recipe(recipe, registry) if recipe is not None else ()
    documents = (default_document(alone=not recipes), *recipes)
    draft = Draft()
    flags: list[Setting] = [("model.name", model), ("data.path", [*data]), ("train.dev", [*dev])]
    settings = [(path, value) for path, value in flags if value not in (None, [])]
    settings += parse_sets(sets, draft.errors)
    names = [d.table["model"]["name"] for d in documents if "name" in d.table.get("model", {})]
    names += [value for path, value in settings if path == "model.name"]
    if facts is not None:
        draft.facts = facts
    else:
        _look(names[-1], draft, registry)
    draft.merge(documents)
    draft.apply_kinds(kinds or {})
    draft.apply_settings(settings, registry)
    run = _type(draft, registry, lookup)
    if facts is None:
        run = replace(run, named=_named_models(run.parts, registry))
    repeats = bool(recipes and recipes[-1].versions) and not (kinds or settings)
    return _plan(run, draft, registry, derive=not repeats)


def _look(name: object, draft: Draft, registry: Registry) -> None:
    """Read what is known of the model that a run will have, which decides its ``[[when]]``."""
    options = OptionReader().options(ModelOptions, {"name": name}, "model")
    draft.facts = RunInfo(model=str(name))
    with collect_errors(draft.errors):
        if options is not None:
            draft.facts, draft.says = Models(registry).look(options.name)


def _type(draft: Draft, registry: Registry, lookup: DataLookup | None) -> Run:
    """Type a draft and read its data; raises all mistakes until then."""
    reader, facts = OptionReader(registry.curves(), errors=draft.errors), draft.facts
    reader.read_params(draft.tables["params"], facts.hidden)
    parts = _typed_parts(draft, registry, reader)
    heads = [head for head in draft.tables if head != "params"]
    tables: dict[str, Any] = {head: _typed_table(head, draft, reader) for head in heads}
    core = {name: tables[name] for name in CORE_OPTIONS}
    read = None
    if lookup and not any((error.where or "").startswith("data.") for error in draft.errors):
        with collect_errors(draft.errors):
            read = lookup(core["data"])
    raise_all(draft.errors)
    if facts.family is None:
        what = f"nothing is known of the model {facts.model} before it is loaded: [[when]] blocks"
        draft.warnings.append(f"{what} that ask for its family or size are left out")
    core["train"] = _in_precision(core["train"], parts, draft)
    directions = {"causal": True, "bidirectional": False}
    return Run(
        recipe=draft.recipe,
        **core,
        params=reader.params,
        parts=parts,
        view_options={h.partition(".")[2]: t for h, t in tables.items() if h not in core},
        facts=replace(
            facts,
            columns=facts.columns if read is None else read.columns,
            causal=directions.get(core["model"].attention, facts.causal),
            batch_size=core["train"].batch_size,
            precision=core["train"].precision,
        ),
        expressions=reader.expressions,
        origins=draft.origins,
        declared=registry.views,
        read=read,
        says=draft.says,
        named={},
    )


def _typed_table(head: str, draft: Draft, reader: OptionReader) -> Options:
    """Type a table of the core; the name of a prompt is replaced by its text."""
    kind = CORE_OPTIONS.get(head, ViewOptions)
    options = reader.options(kind, draft.tables[head], head) or kind()
    path, given = f"{head}.prompt", getattr(options, "prompt", None)
    if given is not None or (head == "model" and draft.says.default_prompt_name is not None):
        with collect_errors(reader.errors):
            recorded = draft.origins.get(path) in draft.recorded
            text = draft.says.prompt(given or "", path, typed=not recorded)
            return options.model_copy(update={"prompt": text})
    return options


def _typed_parts(draft: Draft, registry: Registry, reader: OptionReader) -> tuple[PlannedPart, ...]:
    parts: list[PlannedPart] = []
    installed = {info.distribution for info in registry.plugins}
    items = [(kind, name, it) for kind, named in draft.parts.items() for name, it in named.items()]
    for kind, name, item in items:
        with collect_errors(reader.errors):
            path, owner = f"{kind}.{name}", item.use.rpartition("/")[0]
            if (version := draft.versions.get(owner)) and owner not in installed:
                what = f"part of {owner} {version}, which is not installed"
                hint = registry.how_to_get(kind, item.use) or f"install {owner} {version}"
                raise CseError(what, where=path, value=item.use, hint=hint)
            record = registry.find(kind, item.use, where=f"--{kind}", near=item.near)
            options = reader.options(record.spec.options_class, item.options, path)
            before = draft.versions.get(record.distribution, record.version)
            if before != record.version:
                now = f"was {before} in that run, and is {record.version}"
                draft.warnings.append(f"{record.distribution} {now}")
            if options is not None:
                parts.append(PlannedPart.of(record, options, name))
    return tuple(sorted(parts, key=_place))


def _place(part: PlannedPart) -> tuple[int, int]:
    """Order parts by their kind, and poolers as vectors pass through them."""
    row, head = isinstance(part.spec, RowPoolerSpec), isinstance(part.spec, HeadSpec)
    return KINDS.index(part.kind), row + 2 * head


def _in_precision(train: TrainOptions, parts: Sequence[PlannedPart], draft: Draft) -> TrainOptions:
    """Set the number format that a part needs, where none is asked for."""
    needs = [(part, name) for part in parts for name in part.needs("precision")]
    draft.warnings += [
        f"{part.path} needs train.precision = {name}, and this run has {train.precision}"
        for part, name in needs
        if train.precision not in ("auto", name)
    ]
    if train.precision != "auto" or not needs:
        return train
    part, name = needs[0]
    draft.notes.append(f"train.precision = {name}, which {part.path} needs")
    return train.model_copy(update={"precision": name})


def _plan(run: Run, draft: Draft, registry: Registry, *, derive: bool) -> Composition:
    """Plan views, branches and passes of a run, and check all; raises all errors of the checks."""
    problems, notes = list[Problem](draft.warnings), draft.notes
    values = {field.name: getattr(run, field.name) for field in fields(Run)}
    plan = Composition(**values, views=plan_views(run, problems))
    plan = replace(plan, parts=checks.add_branches(plan, registry, notes, problems))
    plan = replace(plan, facts=_count(plan, problems))
    with collect_errors(problems):
        plan = replace(plan, inference_pool=checks.find_inference_pool(plan, registry))
    if derive:
        derived = tuple(_derived(part, plan.facts, problems) for part in plan.parts)
        plan = replace(plan, parts=derived)
    for check in checks.CHECKS:
        problems += check(plan, registry)
    errors = [problem for problem in problems if isinstance(problem, CseError)]
    raise_all(list({error.line(): error for error in errors}.values()))
    kept, changed = _compare_with_model(plan)
    notes += [*kept, *_lines_of_parts(plan, "plan_notes")]
    lines = [*map(str, problems), *changed, *_lines_of_parts(plan, "plan_warnings")]
    passes, notes = plan_passes(plan), [*dict.fromkeys(notes)]
    warnings = tuple(dict.fromkeys(lines))
    return replace(plan, passes=passes, notes=tuple(notes), warnings=warnings)


def _count(plan: Composition, problems: list[Problem]) -> RunInfo:
    """Count the rows of the data that have what the run needs, and its steps; add its plan."""
    rows, read, views = plan.facts.rows, plan.read, plan.views
    if read is not None and {*plan.needed_columns.required} <= {*read.columns, *FILLED}:
        with collect_errors(problems):
            rows = len(read.corpus(plan.needed_columns))
    if plan.data.split_tokens is not None:
        rows = None  # not known before the texts are cut
    return replace(
        plan.facts,
        rows=rows,
        steps=plan.train.max_steps if rows is None else plan.train.steps(rows),
        views={
            v.name: {"branch": v.branch, "column": v.column, "role": v.role, "lists": v.lists}
            for v in views
        },
        branches={part.name: part.options.model_dump() for part in plan.of("branch")},
        stores={part.name: part.options.model_dump() for part in plan.of("negatives")},
        losses={part.name: part.options.model_dump(mode="json") for part in plan.of("loss")},
        widths={
            part.name: _width(plan.named.get(name))
            for part in plan.of("branch")
            for name in models_named(part.options).values()
        },
    )


def _width(model: Composition | None) -> int | None:
    """Return how many numbers a vector of a model has."""
    width = None if model is None else vector_sizes(model, [])["row"]
    cut = None if model is None else model.inference.truncate_dim
    return min(filter(None, (width, cut))) if width else None


def _derived(part: PlannedPart, facts: RunInfo, problems: list[Problem]) -> PlannedPart:
    """Let a part set the options that follow from the run."""
    try:
        options = _call_record(part, "resolve_options", facts, part.options)
    except ValueError as error:
        problems.append(CseError(str(error), where=part.path))
        return part
    if not isinstance(options, type(part.options)):
        what = f"promised {type(part.options).__name__}, returned {options!r}"
        raise PartError(part, "resolve_options", what)
    return replace(part, options=options)


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
    says, (row, _, heads, _) = run.says, run.inference_parts
    weights = {head.name: cast(HeadOptions, head.options).weights for head in heads}
    new = [name if kind == "model" else f"new {name}" for name, kind in weights.items()]
    old = [says.row.use, *(head.name or head.use for head in says.heads)] if says.row else []
    prompt = says.prompts.get(says.default_prompt_name or "", "")
    table = {"pool": (", ".join(old), ", ".join([row.use, *new]))}
    table["model.prompt"] = prompt and repr(prompt), repr(run.model.prompt)
    for name, value in model_document(says, run.facts).table["inference"].items():
        table[f"inference.{name}"] = format_value(value), format_value(getattr(run.inference, name))
    kept = ["lower-casing"] if says.do_lower_case else []
    kept += [f"{path} {before}" for path, (before, now) in table.items() if before == now]
    changed = [
        f"{path} is {before} in the model, and {now} here: --{path} "
        f"{'model' if path == 'pool' else before} keeps it"
        for path, (before, now) in table.items()
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
