"""Which views a run has, who encodes them in which passes, and who feeds whom."""

from __future__ import annotations

from typing import cast, get_args

from cse_core.errors import CseError, did_you_mean
from cse_core.options import LossOptions, StoreOptions
from cse_core.recipes.composition import PlannedPart, PlannedPass, PlannedView
from cse_core.recipes.sketch import BASE_VIEWS, Sketch, augmented_views
from cse_core.records import AugmenterSpec, BranchSpec, StoreSpec
from cse_core.vocabulary import Role

_ROLES = frozenset(get_args(Role))


def plan_views(sketch: Sketch) -> tuple[PlannedView, ...]:
    """Return the views that something needs, the anchor first.

    A view that something needs and nothing makes is added to the sketch's errors.
    """
    augmenters = sketch.of("aug")
    views = []
    for name in _needed(sketch):
        settings = sketch.views.get(name)
        made_by = sketch.made.get(name)
        views.append(
            PlannedView(
                name=name,
                role=role_of(name),
                branch=settings.branch if settings else _branch_of(made_by),
                column=None if made_by else _column(sketch, name),
                made_by=made_by.path if made_by else None,
                augmenters=tuple(part.path for part in augmenters if name in augmented_views(part)),
            )
        )
    return tuple(views)


def _branch_of(maker: PlannedPart | None) -> str:
    """Return who encodes a view that no setting names: the branch of the store that makes it."""
    options = None if maker is None else maker.options
    branch = options.branch if isinstance(options, StoreOptions) else None
    return branch or "online"


def role_of(view: str) -> Role:
    """Return a view's role: its name, or the word of its name before a hyphen, else ``aux``."""
    word = view.partition("-")[0]
    return cast(Role, word) if word in _ROLES else "aux"


def _needed(sketch: Sketch) -> list[str]:
    reasons: dict[str, str] = {"anchor": "", **dict.fromkeys(sketch.made, "")}
    for name, settings in sketch.views.items():
        if name not in BASE_VIEWS and settings.column is not None:
            reasons.setdefault(name, "")
    for part, options in sketch.losses():
        if options.target in sketch.groups:
            continue
        if sketch.has_view(options.target):
            reasons.setdefault(options.target, "")
        else:
            known = [*sketch.view_names(), *sketch.groups]
            sketch.errors.append(
                CseError(
                    "is neither a view of this run nor a group that a miner finds",
                    where=f"{part.path}.target",
                    value=options.target,
                    hint=did_you_mean(options.target, known),
                )
            )
    for store, held in sketch.stores():
        for name in cast(StoreSpec, store.spec).encoded(held):
            _need(sketch, reasons, f"{store.path}.view", name)
    for part in sketch.parts:
        for need in part.spec.required(part.options):
            if isinstance(need, str):
                _need_token(sketch, reasons, need)
            elif not any(_is_there(sketch, reasons, token) for token in need):
                for token in need:
                    if _need_token(sketch, reasons, token):
                        break
    for part in sketch.of("aug"):
        for name in augmented_views(part):
            if name not in reasons and sketch.has_view(name):
                sketch.warnings.append(
                    f"view {name} is only there because {part.path} changes it: no loss, store or "
                    "other part uses it"
                )
            _need(sketch, reasons, f"{part.path}.views", name)
    for name in sketch.views:
        if name not in reasons and not sketch.has_view(name):
            hint = did_you_mean(name, sketch.view_names())
            error = CseError("this run has no such view", where=f"views.{name}", hint=hint)
            sketch.errors.append(error)
    order = {name: place for place, name in enumerate(BASE_VIEWS)}
    return sorted(reasons, key=lambda name: order.get(name, len(order)))


def _need(sketch: Sketch, reasons: dict[str, str], where: str, name: str) -> None:
    if sketch.has_view(name):
        reasons.setdefault(name, where)
        return
    sketch.errors.append(
        CseError(
            "this run has no such view",
            where=where,
            value=name,
            hint=did_you_mean(name, sketch.view_names()),
        )
    )


def _need_token(sketch: Sketch, reasons: dict[str, str], token: str) -> bool:
    """Add the view that a token asks for; an unmet token is the closure's to report."""
    prefix, _, name = token.partition(":")
    mined = prefix == "positives" and name in sketch.groups
    if prefix not in ("view", "positives") or mined or not sketch.has_view(name):
        return False
    reasons.setdefault(name, token)
    return True


def _is_there(sketch: Sketch, reasons: dict[str, str], token: str) -> bool:
    prefix, _, name = token.partition(":")
    if prefix == "positives" and name in sketch.groups:
        return True
    return prefix in ("view", "positives") and name in reasons


def _column(sketch: Sketch, name: str) -> str:
    settings = sketch.views.get(name)
    if settings is not None and settings.column is not None:
        return settings.column
    if name == "positive" and sketch.rounds():
        return name
    columns = sketch.facts.columns
    if name != "anchor" and (name in columns if columns is not None else name not in BASE_VIEWS):
        return name
    return "text"


def plan_passes(sketch: Sketch, views: tuple[PlannedView, ...]) -> tuple[PlannedPass, ...]:
    """Return the encoder calls of a step: one a branch, and those that parts add."""
    fresh = [
        part
        for part in sketch.of("aug")
        if cast(AugmenterSpec, part.spec).gradient_of(part.options) == "fresh"
    ]
    own = {view.name: view.branch for view in views}
    extra: dict[tuple[str, str], list[str]] = {}
    for part, options in sketch.stores():
        for view_name in cast(StoreSpec, part.spec).encoded(options):
            keeper = options.branch or own.get(view_name, "online")
            if view_name in own and keeper != own[view_name]:
                extra.setdefault((keeper, view_name), []).append(part.path)
    passes: list[PlannedPass] = []
    for branch in sketch.of("branch"):
        name, trained = branch.name, cast(BranchSpec, branch.spec).trainable
        mine = tuple(view.name for view in views if view.branch == name)
        added = {view: who for (other, view), who in extra.items() if other == name}
        asked = ", ".join(dict.fromkeys(path for who in added.values() for path in who))
        changed = any(view in mine for part in fresh for view in augmented_views(part))
        if fresh and mine and (trained or changed):
            off = tuple(part.path for part in fresh)
            why = f"gradient of the inputs for {', '.join(off)}, off here"
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


def plan_feeds(sketch: Sketch, views: tuple[PlannedView, ...]) -> tuple[str, ...]:
    """Return who feeds whom, a line each."""
    own = {view.name: view.branch for view in views}
    lines = []
    for loss, wants in sketch.losses():
        source = wants.target
        if wants.target in sketch.groups:
            source = f"{sketch.groups[wants.target].path} (group {wants.target})"
        lines.append(f"{source} -> {loss.path} ({_in_batch(wants)})")
        for need in loss.spec.required(loss.options):
            prefix, _, name = need.partition(":") if isinstance(need, str) else ("", "", "")
            if prefix == "view" and name != wants.target:
                lines.append(f"{name} -> {loss.path} (view)")
        for store, held in sketch.stores():
            if sketch.serves(store, loss):
                encoded = cast(StoreSpec, store.spec).encoded(held)
                branch = held.branch or own.get(encoded[0], "online")
                told = f"{', '.join(encoded)} by branch {branch}"
                lines.append(f"{store.path} ({told}) -> {loss.path}")
    for view in views:
        for path in view.augmenters:
            lines.append(f"{path} -> {view.name}")
    for part in sketch.parts:
        for need in part.spec.required(part.options):
            if isinstance(need, str) and need.startswith("branch:") and need != "branch:online":
                lines.append(f"branch.{need.removeprefix('branch:')} -> {part.path}")
    return tuple(dict.fromkeys(lines))


def _in_batch(options: LossOptions) -> str:
    told = "no in-batch negatives"
    if options.negatives not in ("none", "stored"):
        told = f"in-batch: {options.in_batch}"
    return told if options.level == "sentence" else f"level {options.level}, {told}"
