"""Which views a run has, and who encodes them in which passes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast, get_args

from cse_core.capabilities import Role
from cse_core.errors import CseError, did_you_mean
from cse_core.options import StoreOptions
from cse_core.recipes.composition import (
    BASE_VIEWS,
    Composition,
    PlannedPart,
    PlannedPass,
    PlannedView,
    Problem,
    augmented_views,
)
from cse_core.records import AugmenterSpec, BranchSpec, StoreSpec

_ROLES = frozenset(get_args(Role))


def plan_views(run: Composition) -> tuple[tuple[PlannedView, ...], list[Problem]]:
    """Return the views that something needs, the anchor first, and those that nothing makes."""
    names, problems = _needed(run)
    views = []
    for name in names:
        options, maker = run.view_options.get(name), run.view_makers.get(name)
        augmenters = [part.path for part in run.of("aug") if name in augmented_views(part)]
        views.append(
            PlannedView(
                name=name,
                role=role_of(name),
                branch=options.branch if options else _branch_of(maker),
                column=None if maker else _column(run, name),
                made_by=maker.path if maker else None,
                augmenters=tuple(augmenters),
            )
        )
    return tuple(views), problems


def role_of(view: str) -> Role:
    """Return a view's role: its name, or the word of its name before a hyphen, else ``aux``."""
    word = view.partition("-")[0]
    return cast(Role, word) if word in _ROLES else "aux"


def _branch_of(maker: PlannedPart | None) -> str:
    """Return who encodes a view that no setting names: the branch of the store that makes it."""
    options = None if maker is None else maker.options
    branch = options.branch if isinstance(options, StoreOptions) else None
    return branch or "online"


def _column(run: Composition, name: str) -> str:
    options, columns = run.view_options.get(name), run.facts.columns
    if options is not None and options.column is not None:
        return options.column
    if name == "positive" and run.round_miners:
        return name
    if name != "anchor" and (name in columns if columns is not None else name not in BASE_VIEWS):
        return name
    return "text"


def _needed(run: Composition) -> tuple[list[str], list[Problem]]:
    """Return the views that losses, stores, requirements and augmenters need."""
    names = dict.fromkeys(["anchor", *run.view_makers])
    problems: list[Problem] = []

    def need(
        name: str, where: str, text: str = "this run has no such view", groups: Iterable[str] = ()
    ) -> None:
        if run.can_have_view(name):
            names.setdefault(name)
        else:
            hint = did_you_mean(name, [*run.possible_views(), *groups])
            problems.append(CseError(text, where=where, value=name, hint=hint))

    for name, settings in run.view_options.items():
        if name not in BASE_VIEWS and settings.column is not None:
            names.setdefault(name)
    for loss, wanted in run.losses():
        if wanted.target not in run.groups:
            text = "is neither a view of this run nor a group that a miner finds"
            need(wanted.target, f"{loss.path}.target", text, run.groups)
    for store, held in run.stores():
        for name in cast(StoreSpec, store.spec).encoded(held):
            need(name, f"{store.path}.view")
    mined = {f"positives:{name}" for name in run.groups}
    for part in run.parts:
        for alternatives in part.requires:
            named = [capability.partition(":") for capability in alternatives]
            views = [name for prefix, _, name in named if prefix in ("view", "positives")]
            if mined.isdisjoint(alternatives) and names.keys().isdisjoint(views):
                possible = [name for name in views if run.can_have_view(name)]
                names.update(dict.fromkeys(possible[:1]))  # without one, the requirement is unmet
    for part in run.of("aug"):
        for name in augmented_views(part):
            if name not in names and run.can_have_view(name):
                problems.append(
                    f"view {name} is encoded only because {part.path} changes it; no loss, store "
                    "or other part uses it"
                )
            need(name, f"{part.path}.views")
    for name, settings in run.view_options.items():
        maker = run.view_makers.get(name)
        if maker is not None and settings.column is not None:
            what = f"{maker.path} makes this view, which reads no column"
            where, hint = f"views.{name}.column", f"remove it, or the part: --{maker.kind} ~NAME"
            problems.append(CseError(what, where=where, value=settings.column, hint=hint))
        if name not in names and not run.can_have_view(name):
            hint = did_you_mean(name, run.possible_views())
            error = CseError("this run has no such view", where=f"views.{name}", hint=hint)
            problems.append(error)
    order = {name: place for place, name in enumerate(BASE_VIEWS)}
    return sorted(names, key=lambda name: order.get(name, len(order))), problems


def plan_passes(run: Composition) -> tuple[PlannedPass, ...]:
    """Return the encoder calls of a step: one a branch, and those that parts add."""
    fresh = [
        part
        for part in run.of("aug")
        if cast(AugmenterSpec, part.spec).gradient_of(part.options) == "fresh"
    ]
    branch_of = {view.name: view.branch for view in run.views}
    extra: dict[tuple[str, str], list[str]] = {}
    for store, options in run.stores():
        for view_name in cast(StoreSpec, store.spec).encoded(options):
            keeper = options.branch or branch_of.get(view_name, "online")
            if view_name in branch_of and keeper != branch_of[view_name]:
                extra.setdefault((keeper, view_name), []).append(store.path)
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
            passes.append(PlannedPass(branch=name, views=mine, gradient=trained, why=why, off=off))
        if mine and (trained or not added):
            why = "the objective"
            passes.append(PlannedPass(branch=name, views=mine, gradient=trained, why=why))
        elif mine:
            asked = f"the objective, {asked}"
        if added:
            joined = tuple(dict.fromkeys([*(() if trained else mine), *added]))
            passes.append(PlannedPass(branch=name, views=joined, gradient=False, why=asked))
    return tuple(passes)
