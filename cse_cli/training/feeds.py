"""The data flow of a composition, for its plan."""

from __future__ import annotations

from typing import cast

from cse_core.options import LossOptions
from cse_core.recipes.composition import Composition
from cse_core.records import StoreSpec


def feeds(run: Composition) -> list[str]:
    """Return what each part gets from where, one line each."""
    branch_of = {view.name: view.branch for view in run.views}
    lines = []
    for loss, options in run.losses():
        miner = run.groups.get(options.target)
        source = f"{miner.path} (group {options.target})" if miner else options.target
        lines.append(f"{source} -> {loss.path} ({_in_batch(options)})")
        for need, *others in loss.requires:
            prefix, _, name = need.partition(":")
            if prefix == "view" and name != options.target and not others:
                lines.append(f"{name} -> {loss.path} (view)")
        for store, held in run.stores():
            if run.serves(store, loss):
                views = cast(StoreSpec, store.spec).encoded(held)
                branch = held.branch or branch_of.get(views[0], "online")
                lines.append(f"{store.path} ({', '.join(views)} by branch {branch}) -> {loss.path}")
    lines += [f"{path} -> {view.name}" for view in run.views for path in view.augmenters]
    for part in run.parts:
        for need, *others in part.requires:
            if need.startswith("branch:") and need != "branch:online" and not others:
                lines.append(f"branch.{need.removeprefix('branch:')} -> {part.path}")
    return list(dict.fromkeys(lines))


def _in_batch(options: LossOptions) -> str:
    rows = "no in-batch negatives"
    if options.negatives not in ("none", "stored"):
        rows = f"in-batch: {options.in_batch}"
    return rows if options.level == "sentence" else f"level {options.level}, {rows}"
