"""Rows of others in a study's tables: points that its file lacks, each defined by a pack."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cse_core.errors import CseError, visible
from cse_core.files import writable_folder
from cse_study.definition.reading import Point
from cse_study.definition.schema import UNTRAINED
from cse_study.execution.packs import Head, Mark, Pack, PackedPoint, Source, take
from cse_study.planning.composing import PlannedRun
from cse_study.planning.plan import Cell, Plan
from cse_study.provenance import head_of
from cse_study.session import Added, Session

_FLAG = "--add"


def add_rows(session: Session, pack: Pack) -> None:
    """Put the rows of a pack whose points the study lacks into its tables.

    They have to be of the same model, texts, dev sets, steps and test sets. Rows that the study
    has are left aside. Nothing is taken where a row does not fit.

    Raises:
        CseError: The pack does not say what its rows are of, or they do not fit the study.
    """
    head, definition = pack.named(_FLAG), session.definition
    own = head_of(session)
    for what, hint in _mistakes(own, head):
        raise _refusal(pack, what, hint)
    packed = {run.key: run for run in pack.runs}
    rows = [row for row in head.rows if row.key in packed.keys() - session.plan.runs.keys()
            and row.seed in own.seeds]  # fmt: skip
    if not rows:
        what = f"has no row that the study lacks, with seeds {', '.join(map(str, own.seeds))}"
        raise _refusal(pack, what, "--unpack takes the study's own rows; --seeds names others")
    axes = [axis.called for axis in definition.study.axes]
    tuned = definition.study.tuned
    names: dict[str, str] = dict.fromkeys(definition.labels, "the study")
    for added in session.added:
        names |= {point.label_without(tuned): "another pack" for point in added.plan.points}
    points: dict[str, Point] = {}
    first = 1 + len(definition.points) + sum(len(a.plan.points) for a in session.added)
    for row in rows:
        if sorted(row.labels) != sorted(axes):
            what = f"its row {row.name} is not on the study's axes, {', '.join(axes) or 'none'}"
            raise _refusal(pack, what, 'a study with `extends = "NAME"` has them')
        labels = {axis: row.labels[axis] for axis in axes}
        point = Point(first + len(points), labels, row.settings, row.columns)
        if (label := point.label_without(tuned)) in names:
            what = f"its row {label!r} is another run than that of {names[label]} with this label"
            raise _refusal(pack, what, "give its place another label, and pack it again")
        points.setdefault(row.name, point)
    cells = tuple(_cell(row, points[row.name], head) for row in rows)
    numbers = frozenset(point.number for point in points.values())
    plan = Plan(definition, tuple(points.values()), own.seeds, cells, kept=numbers)
    writable_folder(session.folder.runs, "--out")
    take(session.folder, pack, {row.key for row in rows})
    lines = tuple(
        _about(own, head, pack, point, [packed[c.run.key].verified for c in cells
                                        if c.point is point])
        for point in plan.points
    )  # fmt: skip
    session.added.append(Added(plan, lines))


def _refusal(pack: Pack, what: str, hint: str) -> CseError:
    return CseError(what, where=_FLAG, value=str(pack.file), hint=hint)


def _mistakes(own: Head, head: Head) -> Iterator[tuple[str, str]]:
    """Yield what of a pack is not that of the study, and what to do."""

    def named(sources: tuple[Source, ...]) -> str:
        return ", ".join(source.name for source in sources) or "nothing"

    for role, source in own.models.items():
        other = head.models.get(role)
        if other is None or not other.same(source):
            yield _another("model", named((other,) if other else ()), source.name)
    texts = [(f"texts for @{role}", sources, head.data.get(role, ()))
             for role, sources in own.data.items()]  # fmt: skip
    for what, ours, theirs in [*texts, ("dev sets", own.dev, head.dev)]:
        if len(ours) != len(theirs) or not all(map(Source.same, ours, theirs)):
            yield _another(what, named(theirs), named(ours))
    for what, one, two in (("--steps", head.steps, own.steps), ("--rows", head.limit, own.limit)):
        if one != two:
            yield _another(what, str(one or "none"), str(two or "none"))
    if own.scoring != head.scoring:
        yield _another("scoring", f"cse eval {head.scored_by}", f"cse eval {own.scored_by}")


def _another(what: str, theirs: str, ours: str) -> tuple[str, str]:
    same = " of other content" if theirs == ours else ""
    return (
        f"differs from the study in {what}: {theirs}{same} in the pack, {ours} here",
        "make its rows with what the study names, or name here what they were made with",
    )


def _cell(row: PackedPoint, point: Point, head: Head) -> Cell:
    settings = {**head.settings, **row.settings}
    untrained = settings.get("recipe") == UNTRAINED
    recipe = {path: _text(value) for path, value in settings.items() if path != "model"}
    model = head.models.get("", next(iter(head.models.values()), None))
    recipe["model"] = {"name": model.name if model else ""}
    return Cell(point, row.seed, PlannedRun(row.key, recipe, row.seed, untrained=untrained))


def _text(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _about(own: Head, head: Head, pack: Pack, point: Point, marks: list[Mark | None]) -> str:
    """Say of a point what it sets, and who repeated it."""
    changed = _changed(own.settings, {**head.settings, **point.settings})
    settings = ", ".join(f"{path} = {_text(value)}" for path, value in changed.items())
    if head.trials != own.trials:
        settings += f"; chosen among {head.trials} trials, the study's among {own.trials}"
    more: dict[str, tuple[Source, ...]] = {
        f"@model:{role}": (model,) for role, model in head.models.items() if role not in own.models
    }
    more |= {f"@{role}": files for role, files in head.data.items() if role not in own.data}
    settings += "".join(f"; {role} is {', '.join(source.name for source in sources)}"
                        for role, sources in more.items())  # fmt: skip
    known = [mark for mark in marks if mark is not None]
    checked = "not repeated by cse verify"
    if known:
        verdicts = [mark.verdict for mark in known]
        counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        where = "; ".join(dict.fromkeys(f"{m.processor}, {m.date}" for m in known))
        checked = f"{len(known)} of {len(marks)} rows repeated by cse verify: {counts} ({where})"
    settings = visible(settings or "no setting")
    return f"{point.label} (from {pack.file.name}; {settings}; {checked})"


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    gone = {path: "not set" for path in before if path not in now}
    return {path: value for path, value in now.items() if before.get(path) != value} | gone
