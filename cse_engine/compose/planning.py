"""Which views a run has, and who encodes them when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from cse_core.capabilities import Role
from cse_core.errors import CseError, did_you_mean
from cse_core.options import StoreOptions
from cse_core.records import AugmenterSpec, BranchSpec, StoreSpec, ViewSpec
from cse_engine.compose.composition import (
    Composition,
    PlannedPart,
    PlannedPass,
    PlannedView,
    Problem,
    Run,
)

_NO_VIEW = "this run has no such view"
OTHERS = 3
"""Place in the plan of views that are no positives of the anchor, or that nothing declares."""


def augmented_views(part: PlannedPart) -> tuple[str, ...]:
    """Return the views that an augmenter changes."""
    chosen = getattr(part.options, "views", None)
    return tuple(chosen) if chosen is not None else cast(AugmenterSpec, part.spec).views


def plan_views(run: Run, problems: list[Problem]) -> tuple[PlannedView, ...]:
    """Return the views that something needs, the anchor first; what nothing makes is a problem."""
    views = []
    for name in _needed(run, problems):
        options, maker = run.view_options.get(name), run.view_makers.get(name)
        column = None if maker else _column(run, name)
        prompt = None if options is None or maker else options.prompt
        own = None if maker else options
        lists, weights = ("rows", None) if own is None else (own.lists, own.weights)
        by = maker and maker.options
        branch = by.branch if isinstance(by, StoreOptions) else None
        branch = options.branch if options else branch or "online"
        changed = tuple(part.path for part in run.of("aug") if name in augmented_views(part))
        made_by = maker.path if maker else None
        made = name, _role(run, name), branch, column, made_by, changed
        views.append(PlannedView(*made, prompt, lists, weights))
    return tuple(views)


def _role(run: Run, view: str) -> Role:
    """Return a view's role: that of its name, or of its name before a hyphen.

    Another view is the positive of a loss that pulls towards it, else auxiliary.
    """
    spec = run.declared.get(view) or run.declared.get(view.partition("-")[0])
    role: Role = "aux" if spec is None else spec.role
    pulled = any(options.target == view for _, options in run.losses())
    return "positive" if role == "aux" and pulled else role


def _column(run: Run, name: str) -> str:
    options, view = run.view_options.get(name), run.declared.get(name)
    if options is not None and options.column is not None:
        return options.column
    column = name if view is None else view.column
    graded = run.read is not None and column in run.read.graded
    known = run.facts.columns is not None and not graded and run.may_have_column(column)
    there = known or column in run.mined_columns or view is None or not view.optional
    return column if there else "text"


def _needed(run: Run, problems: list[Problem]) -> list[str]:
    """Return the views that losses, stores, requirements and augmenters need."""
    names = dict.fromkeys(["anchor", *run.view_makers])

    def need(name: str, where: str, what: str = _NO_VIEW, more: Iterable[str] = ()) -> None:
        if run.can_have_view(name):
            names.setdefault(name)
        else:
            views = [*run.declared, *run.view_makers, *run.view_options]
            hint = did_you_mean(name, [*filter(run.can_have_view, views), *more])
            problems.append(CseError(what, where=where, value=name, hint=hint))

    for name, settings in run.view_options.items():
        if settings.column is not None and _place(name, run.declared) == OTHERS:
            names.setdefault(name)
    columns = {*run.mined_columns, *(run.facts.columns or ())}
    for view in run.declared.values():
        known = columns if view.name in run.view_options else run.mined_columns
        if view.role == "negative" and view.column in known:
            names.setdefault(view.name)
    for loss, options in run.losses():
        if options.target not in run.groups:
            what = "is neither a view of this run nor a group that a miner finds"
            need(options.target, f"{loss.path}.target", what, run.groups)
    for part in run.parts:
        for name, _ in part.encodes:
            need(name, f"{part.path}.view" if hasattr(part.options, "view") else part.path)
    for part in run.parts:
        for alternatives in part.requires:
            mined = any(kind == "positives" and name in run.groups for kind, name in alternatives)
            views = [name for kind, name in alternatives if kind in ("view", "positives")]
            if not mined and names.keys().isdisjoint(views):
                possible = [name for name in views if run.can_have_view(name)]
                names.update(dict.fromkeys(possible[:1]))  # without one, the requirement is unmet
    for part in run.of("aug"):
        for name in augmented_views(part):
            if name not in names and run.can_have_view(name):
                why = f"only because {part.path} changes it; no loss, store or other part uses it"
                problems.append(f"view {name} is encoded {why}")
            need(name, f"{part.path}.views")
    for name, settings in run.view_options.items():
        maker, declared = run.view_makers.get(name), run.declared.get(name)
        defaults = {"column": None, "prompt": None, "lists": "rows", "weights": None}
        for option, default in defaults.items():
            if maker is not None and (value := getattr(settings, option)) != default:
                what = f"{maker.path} makes this view, which reads no {option}"
                hint = f"remove it, or the part: --{maker.kind} ~NAME"
                where = f"views.{name}.{option}"
                problems.append(CseError(what, where=where, value=value, hint=hint))
        optional = declared is not None and declared.role == "negative"
        if not (name in names or run.can_have_view(name) or optional):
            need(name, f"views.{name}")
    return sorted(names, key=lambda name: _place(name, run.declared))


def _place(view: str, declared: Mapping[str, ViewSpec]) -> int:
    """Order views in the plan: declared positives are right behind the anchor."""
    positive = view in declared and declared[view].role == "positive"
    return {"anchor": 0, "positive": 1}.get(view, OTHERS - positive)


def plan_passes(run: Composition) -> tuple[PlannedPass, ...]:
    """Return the encoder calls of a step: one a branch, and those that parts add."""
    fresh = [a for a in run.of("aug") if a.spec.declared("gradient", a.options) == "fresh"]
    branch_of = {view.name: view.branch for view in run.views}
    extra: dict[tuple[str, str], list[str]] = {}
    for part in run.parts:
        for view_name, asked_branch in part.encodes:
            keeper = asked_branch or branch_of.get(view_name, "online")
            if view_name in branch_of and keeper != branch_of[view_name]:
                extra.setdefault((keeper, view_name), []).append(part.path)
    for store, options in run.stores():
        for keeper in run.side_branches if cast(StoreSpec, store.spec).keeps else ():
            if branch_of.get(options.view) != keeper:
                extra.setdefault((keeper, options.view), []).append(store.path)
    passes: list[PlannedPass] = []
    for branch in run.of("branch"):
        name, trained = branch.name, cast(BranchSpec, branch.spec).trainable
        mine = tuple(view.name for view in run.views if view.branch == name)
        added = {view: stores for (keeper, view), stores in extra.items() if keeper == name}
        asked = ", ".join(dict.fromkeys(path for stores in added.values() for path in stores))
        changed = any(view in mine for part in fresh for view in augmented_views(part))
        if fresh and mine and (trained or changed):
            off = tuple(part.path for part in fresh)
            why = f"input gradients of {', '.join(off)} (off in this pass)"
            passes.append(PlannedPass(name, mine, trained, why, off))
        if mine and (trained or not added):
            passes.append(PlannedPass(name, mine, trained, "the objective"))
        elif mine:
            asked = f"the objective, {asked}"
        if added:
            joined = tuple(dict.fromkeys([*(() if trained else mine), *added]))
            passes.append(PlannedPass(name, joined, False, asked))
    return tuple(passes)
