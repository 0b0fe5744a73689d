"""Checks of a composition that need no model: each adds errors or warnings to the sketch."""

from __future__ import annotations

from typing import cast

from cse_core.errors import CseError, did_you_mean
from cse_core.options import LossOptions
from cse_core.recipes.composition import PlannedPart, PlannedView
from cse_core.recipes.sketch import Sketch, tokens
from cse_core.records import ComponentSpec, HeadSpec, LossSpec, PoolSpec, RowPoolerSpec, SliceSpec
from cse_core.registry.registry import Registered
from cse_core.vocabulary import flatten

_STAGES = (SliceSpec, RowPoolerSpec, HeadSpec)


def order_poolers(sketch: Sketch) -> None:
    """Put the slice stage first, the row pooler next, then the heads; check how many there are."""
    pools = sorted(sketch.of("pool"), key=lambda part: _STAGES.index(type(part.spec)))
    place = next((i for i, part in enumerate(sketch.parts) if part.kind == "pool"), 0)
    sketch.parts = [part for part in sketch.parts if part.kind != "pool"]
    sketch.parts[place:place] = pools
    rows = [part.name for part in pools if is_a(part, RowPoolerSpec)]
    slices = [part.name for part in pools if is_a(part, SliceSpec)]
    if not rows:
        names = [
            found.name for found in sketch.registry.parts("pool") if is_a(found, RowPoolerSpec)
        ]
        hint = f"add one: --pool +{names[0]}" if names else "no row pooler is installed"
        if len(names) > 1:
            hint += f" (or {', '.join(names[1:])})"
        sketch.errors.append(
            CseError("no row pooler makes vectors of token states", where="pool", hint=hint)
        )
    for kept, names in (("row pooler", rows), ("slice stage", slices)):
        if len(names) > 1:
            hint = f"take {len(names) - 1} out, for instance --pool ~{names[0]}"
            sketch.errors.append(
                CseError(
                    f"a run has one {kept}, not {' and '.join(names)}", where="pool", hint=hint
                )
            )


def is_a(part: PlannedPart | Registered[ComponentSpec], record: type[PoolSpec]) -> bool:
    """Tell whether a part's record is of a class of poolers."""
    return isinstance(part.spec, record)


def check_doubles(sketch: Sketch) -> None:
    """Refuse two parts that make one view, one group of positives or one column."""
    nouns = {"view": "the view", "positives": "the positives", "column": "the column"}
    owners: dict[str, PlannedPart] = {}
    for part in sketch.parts:
        for token in sorted(tokens(part)):
            prefix, _, name = token.partition(":")
            if prefix not in nouns:
                continue
            other = owners.setdefault(token, part)
            if other is not part:
                sketch.errors.append(
                    CseError(
                        f"{other.path} and {part.path} both make {nouns[prefix]} {name!r}",
                        where=part.path,
                        hint=f"take one out, for instance --{part.kind} ~{part.name}",
                    )
                )
    for name in sketch.groups:
        if name in sketch.made and sketch.made[name] is not sketch.groups[name]:
            sketch.errors.append(
                CseError(
                    f"{sketch.made[name].path} makes a view and {sketch.groups[name].path} a group "
                    f"of positives, both named {name!r}",
                    where=sketch.groups[name].path,
                    hint="take one out",
                )
            )


def check_negatives(sketch: Sketch, views: tuple[PlannedView, ...]) -> None:
    """Refuse contrastive losses without negatives; warn of stores that serve no loss."""
    stores = sketch.of("negatives")
    names = [store.name for store in stores]
    for loss, wants in sketch.losses():
        for name in wants.negatives if isinstance(wants.negatives, tuple) else ():
            if name not in names:
                hint = did_you_mean(name, [*names, "all", "in-batch", "stored", "none"])
                if not names and not hint.startswith("did"):
                    hint = "this run has no store: add one with --negatives NAME"
                sketch.errors.append(
                    CseError(
                        "there is no negative store of this name",
                        where=f"{loss.path}.negatives",
                        value=name,
                        hint=hint,
                    )
                )
        if cast(LossSpec, loss.spec).contrastive:
            _check_contrastive(sketch, loss, wants, views)
    for store, held in sketch.stores():
        losses = [loss for loss, _ in sketch.losses()]
        if not any(sketch.serves(store, loss) for loss in losses):
            levels = {wants.level for _, wants in sketch.losses()}
            why = (
                f"its level is {held.level}, those of the losses {', '.join(sorted(levels))}"
                if held.level not in levels
                else "no loss takes stored negatives"
            )
            sketch.warnings.append(f"{store.path} serves no loss: {why}")


def _check_contrastive(
    sketch: Sketch, loss: PlannedPart, wants: LossOptions, views: tuple[PlannedView, ...]
) -> None:
    served = any(sketch.serves(store, loss) for store in sketch.of("negatives"))
    if wants.negatives == "none":
        hint = f"--set {loss.path}.negatives=all"
        sketch.errors.append(
            CseError(
                "a contrastive loss needs negatives",
                where=f"{loss.path}.negatives",
                value="none",
                hint=hint,
            )
        )
    elif wants.negatives == "stored" and not served:
        sketch.errors.append(
            CseError(
                "no store of this run serves this loss, so it can never have a negative",
                where=f"{loss.path}.negatives",
                value="stored",
                hint="add a store with --negatives NAME, or use all",
            )
        )
    elif not served and not any(view.role == "negative" for view in views):
        alone = min(sketch.train.batch_size, sketch.facts.rows or sketch.train.batch_size) == 1
        if alone:
            where = "train.batch_size" if sketch.train.batch_size == 1 else "data.path"
            sketch.errors.append(
                CseError(
                    f"a batch of one sentence gives {loss.path} no negative",
                    where=where,
                    value=1,
                    hint="take at least 2 sentences, or add a store with --negatives NAME",
                )
            )


def check_positives(sketch: Sketch) -> None:
    """Warn of miners that find positives which no loss and no other part asks for."""
    wanted = {f"positives:{wants.target}" for _, wants in sketch.losses()}
    for part in sketch.parts:
        wanted.update(flatten(part.spec.required(part.options)))
    for miner, _ in sketch.miners():
        groups = sorted(token for token in tokens(miner) if token.startswith("positives:"))
        if groups and wanted.isdisjoint(groups):
            name = groups[0].partition(":")[2]
            sketch.warnings.append(
                f"{miner.path} serves no loss: none has target = {name}; "
                f"--loss +infonce:more --loss.more.target {name} adds one"
            )


def check_branches(sketch: Sketch, views: tuple[PlannedView, ...]) -> None:
    """Refuse another branch named online; warn of branches that nothing uses and of equal ones."""
    used = {"online", *(view.branch for view in views)}
    used |= {options.branch for _, options in sketch.stores() if options.branch is not None}
    for part in sketch.parts:
        for need in part.spec.required(part.options):
            for token in (need,) if isinstance(need, str) else need:
                used.add(token.removeprefix("branch:"))
    branches = sketch.of("branch")
    for branch in branches:
        if branch.name == "online" and branch.use != "online":
            hint = 'write name = "target" or another'
            sketch.errors.append(
                CseError(
                    "online is the encoder in training",
                    where=branch.path,
                    value=branch.use,
                    hint=hint,
                )
            )
    for place, branch in enumerate(branches):
        if branch.name not in used:
            sketch.warnings.append(
                f"{branch.path} encodes nothing: name it in views.VIEW.branch or a store's branch"
            )
        for other in branches[:place]:
            if (other.use, other.options) == (branch.use, branch.options):
                sketch.warnings.append(
                    f"{other.path} and {branch.path} have equal settings: one would do"
                )


def check_sizes(sketch: Sketch) -> None:
    """Check lengths and batch sizes against each other and against the model."""
    train, facts = sketch.train, sketch.facts
    if train.chunk_size is not None and train.chunk_size > train.batch_size:
        sketch.warnings.append(
            f"train.chunk_size {train.chunk_size} is larger than train.batch_size "
            f"{train.batch_size}: nothing is chunked"
        )
    sliced = any(is_a(part, SliceSpec) for part in sketch.of("pool"))
    # With a slice stage max_length counts a text's content before it is cut, not a row.
    too_long = facts.positions is not None and sketch.model.max_length > facts.positions
    if too_long and not sliced:
        sketch.errors.append(
            CseError(
                f"is beyond the {facts.positions} positions of {facts.model}",
                where="model.max_length",
                value=sketch.model.max_length,
                hint=f"--set model.max_length={facts.positions}",
            )
        )
    if facts.rows is not None and facts.rows < train.batch_size:
        sketch.warnings.append(
            f"train.batch_size {train.batch_size} is larger than the data ({facts.rows} rows): "
            "each epoch is one short batch"
        )


def check_weights(sketch: Sketch) -> None:
    """Warn of losses whose weight is negative, such as ``1 - alpha`` of an alpha above 1."""
    for part in sketch.of("loss"):
        weight = cast(LossOptions, part.options).weight
        least = min(weight.start, weight.end)
        if least < 0:
            sketch.warnings.append(
                f"{part.path}.weight is below zero ({least:g}): training makes that loss larger"
            )


def check_columns(sketch: Sketch, views: tuple[PlannedView, ...]) -> None:
    """Check the columns of views; warn of negatives in the data that the run leaves aside."""
    columns = sketch.facts.columns
    if columns is None:
        return
    mined = {"positive"} if sketch.rounds() else set()
    told: set[str] = set()
    for view in views:
        made = any(f"column:{view.column}" in tokens(part) for part in sketch.parts)
        if view.column is None or view.column in {*columns, *mined, *told} or made:
            continue
        told.add(view.column)
        named = view.name in sketch.views and sketch.views[view.name].column is not None
        where = f"views.{view.name}.column" if named else f"data.columns.{view.column}"
        close = did_you_mean(view.column, columns)
        hint = f"say which column holds it: --set data.columns.{view.column}=COLUMN"
        sketch.errors.append(
            CseError(
                f"the data has no column {view.column!r}; it has {', '.join(columns)}",
                where=where,
                hint=close if named and close.startswith("did you mean") else hint,
            )
        )
    needs = {token for part in sketch.parts for token in flatten(part.spec.required(part.options))}
    taken = "column:negative" in needs or any(view.column == "negative" for view in views)
    if "negative" in columns and not taken:
        sketch.warnings.append(
            "the data has a column 'negative' that this run leaves aside: "
            "--set views.negative.column=negative takes it in"
        )


def check_prompts(sketch: Sketch, inference_pool: PlannedPart | None) -> None:
    """Refuse a prompt where wrapped rows are sliced: it has no place in a later slice."""
    pools = {each: [part for part in sketch.parts if is_a(part, each)] for each in _STAGES}
    cutting = [
        part for part in pools[SliceSpec] if cast(SliceSpec, part.spec).cuts_wrapped(part.options)
    ]
    encoding = pools[RowPoolerSpec]
    if inference_pool is not None and sketch.inference.slice:
        encoding = [*encoding, inference_pool]
    for slicer in cutting:
        for part in encoding:
            if cast(RowPoolerSpec, part.spec).has_prompts(part.options):
                sketch.errors.append(
                    CseError(
                        f"it slices rows that are wrapped, and the prompt of {part.path} has no "
                        "place in them",
                        where=slicer.path,
                        hint="let it wrap every slice, or take a row pooler without a prompt",
                    )
                )


def check_inference(sketch: Sketch) -> PlannedPart | None:
    """Check what encodes after training; return its row pooler where it is another one."""
    wants = sketch.inference
    pools = {part.name: part for part in sketch.of("pool")}
    heads = [name for name, part in pools.items() if is_a(part, HeadSpec)]
    for name in wants.heads or ():
        if name not in heads:
            hint = did_you_mean(name, heads) if heads else "this run has no head"
            sketch.errors.append(
                CseError(
                    "there is no head of this name", where="inference.heads", value=name, hint=hint
                )
            )
    if wants.slice and not any(is_a(part, SliceSpec) for part in pools.values()):
        hint = _first_slice(sketch)
        sketch.errors.append(
            CseError("nothing in this run slices", where="inference.slice", value=True, hint=hint)
        )
    if wants.pool is None or (wants.pool in pools and is_a(pools[wants.pool], RowPoolerSpec)):
        return None
    rows = {
        found.name: found for found in sketch.registry.parts("pool") if is_a(found, RowPoolerSpec)
    }
    bare = wants.pool.rpartition("/")[2]
    if bare not in rows or not sketch.registry.has("pool", wants.pool):
        named = [name for name, part in pools.items() if is_a(part, RowPoolerSpec)]
        sketch.errors.append(
            CseError(
                "there is no row pooler of this name",
                where="inference.pool",
                value=wants.pool,
                hint=did_you_mean(wants.pool, [*named, *rows]),
            )
        )
        return None
    try:
        found = sketch.registry.find("pool", wants.pool, where="inference.pool")
    except CseError as error:
        sketch.errors.append(error)
        return None
    return PlannedPart.of(found)


def _first_slice(sketch: Sketch) -> str:
    for found in sketch.registry.parts("pool"):
        if is_a(found, SliceSpec):
            return f"add --pool +{found.name}"
    return "--set inference.slice=false"
