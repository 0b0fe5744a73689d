"""A composition's plan as plain lines and as data for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cse_cli.training.feeds import feeds
from cse_core.options import Options
from cse_core.recipes.composition import Composition, PlannedPart, PlannedView
from cse_core.recipes.option_types import plain
from cse_core.records import RunInfo
from cse_core.training.recipe_file import as_recipe


def plan_lines(composition: Composition, run: Sequence[str] = ()) -> list[str]:
    """Return the plan as lines of plain text; indented lines belong to the heading above.

    ``run`` has lines that stand below those of the settings: dev sets, checkpoint, folder.
    """
    train, facts = composition.train, composition.facts
    rows = "" if facts.rows is None else f"; {facts.rows} rows"
    columns = "" if facts.columns is None else f"; columns {', '.join(facts.columns)}"
    scaled = " with a loss scale" if train.precision == "fp16" else ""
    lines = [
        f"recipe: {composition.recipe or 'default'}",
        f"model: {composition.model.name}{_known(facts)}",
        f"data: {', '.join(composition.data.path)}{rows}{columns}",
        f"train: batches of {train.batch_size}, learning rate {plain(train.lr)}"
        f"{format_steps(composition)}, "
        f"seed {train.seed}, precision {train.precision}{scaled}",
        *run,
    ]
    if composition.params:
        text = ", ".join(f"{name} = {plain(value)}" for name, value in composition.params.items())
        lines.append(f"params: {text}")
    lines.append("parts:")
    lines += [f"  {_part(part)}" for part in composition.parts]
    lines.append("views:")
    lines += [f"  {_view(view)}" for view in composition.views]
    lines.append("encoder passes per step:")
    for number, each in enumerate(composition.passes, 1):
        gradient = "with" if each.gradient else "without"
        lines.append(
            f"  {number}. {each.branch}: {', '.join(each.views)}, {gradient} gradient, "
            f"for {each.why}"
        )
    if train.chunk_size is not None and train.chunk_size < train.batch_size:
        lines.append(
            f"  in chunks of {train.chunk_size}; those with gradient run twice (gradient caching)"
        )
    for heading, told_lines in (
        ("data flow", feeds(composition)),
        ("notes", composition.notes),
        ("warnings", composition.warnings),
    ):
        if told_lines:
            lines.append(f"{heading}:")
            lines += [f"  {line}" for line in told_lines]
    return lines


def plan_dict(composition: Composition) -> dict[str, Any]:
    """Return the plan as data that JSON can hold."""
    facts = {name: getattr(composition.facts, name) for name in RunInfo.__dataclass_fields__}
    if composition.round_miners:
        facts["steps"] = composition.train.max_steps
    return {
        "recipe": composition.recipe,
        "settings": as_recipe(composition),
        "params": dict(composition.params),
        "facts": {**facts, "columns": facts["columns"] and list(facts["columns"])},
        "parts": [
            {
                "kind": part.kind,
                "name": part.name,
                "use": part.use,
                "distribution": part.distribution,
                "version": part.version,
                "summary": part.spec.summary,
                "paper": part.spec.paper,
            }
            for part in composition.parts
        ],
        "views": [
            {
                "name": view.name,
                "role": view.role,
                "branch": view.branch,
                "column": view.column,
                "made_by": view.made_by,
                "augmenters": list(view.augmenters),
            }
            for view in composition.views
        ],
        "passes": [
            {
                "branch": each.branch,
                "views": list(each.views),
                "gradient": each.gradient,
                "why": each.why,
            }
            for each in composition.passes
        ],
        "inference_pool": composition.inference_pool and composition.inference_pool.use,
        "feeds": feeds(composition),
        "notes": list(composition.notes),
        "warnings": list(composition.warnings),
    }


def _known(facts: RunInfo) -> str:
    text = [facts.family] if facts.family else []
    text += [f"hidden {facts.hidden}"] if facts.hidden else []
    text += [f"{facts.layers} layers"] if facts.layers else []
    if facts.cased is not None:
        text.append("cased" if facts.cased else "lower-cased")
    return f" ({', '.join(text or ['neither installed nor a folder: looked for on the hub'])})"


def format_steps(composition: Composition) -> str:
    """Return how many steps there are; the pairs of a round are not known before it is mined.

    Returns:
        A clause that begins with a comma; empty where nothing is known.
    """
    rounds = bool(composition.round_miners)
    count = composition.train.max_steps if rounds else composition.facts.steps
    if count is None:
        return ", steps per round as its pairs require" if rounds else ""
    return f", {'in each round ' * rounds}{count:,} step{'s' * (count != 1)}"


def _part(part: PlannedPart) -> str:
    use = "" if part.use == part.name else f" = {part.use}"
    changed = _changed(part.options)
    return f"{part.path}{use} ({part.owner}){': ' if changed else ''}{changed}"


def _changed(options: Options) -> str:
    """Return the options that are not at their defaults."""
    text = []
    for name, info in type(options).model_fields.items():
        value = getattr(options, name)
        if value != info.get_default(call_default_factory=True):
            text.append(f"{name} = {plain(value)}")
    return ", ".join(text)


def _view(view: PlannedView) -> str:
    source = f"made by {view.made_by}" if view.made_by else f"column {view.column}"
    by = f", changed by {', '.join(view.augmenters)}" if view.augmenters else ""
    role = "" if view.role == view.name else f", role {view.role}"
    return f"{view.name}: {source}{role}, branch {view.branch}{by}"
