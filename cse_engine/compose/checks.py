"""Checks of a composition that need no model: each yields the problems that it finds.

``CHECKS`` are all of them; ``add_branches`` adds the branches that parts ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from cse_core.capabilities import CAPABILITIES, Need
from cse_core.errors import CseError, did_you_mean
from cse_core.options import LossOptions, MinerOptions, StoreOptions
from cse_core.records import BranchSpec, LossSpec, MinerSpec, PoolSpec, RowPoolerSpec, SliceSpec
from cse_core.registry.plugin_info import TOOLKIT
from cse_core.registry.registry import Registry
from cse_core.texts import FILLED
from cse_engine.compose.composition import (
    BASE_LEVELS,
    Composition,
    PlannedPart,
    PlannedView,
    Problem,
    Run,
)
from cse_engine.compose.models import Models


def check_losses(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse a run without a loss."""
    if not run.of("loss"):
        names = [part.name for part in registry.parts("loss")]
        hint = f"add one: --loss {names[0]}" if names else "no loss is installed"
        yield CseError("nothing is minimised", where="loss", hint=hint)


def check_poolers(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse a run without a row pooler, and two of these, slicers, samplers or adapters."""
    rows, slices = run.pools(RowPoolerSpec), run.pools(SliceSpec)
    if not rows:
        names = installed_poolers(registry, RowPoolerSpec)
        hint = f"add one: --pool +{names[0]}" if names else "no row pooler is installed"
        if len(names) > 1:
            hint += f" (or {', '.join(names[1:])})"
        yield CseError("no row pooler turns token states into vectors", where="pool", hint=hint)
    single = {"row pooler": rows, "slice stage": slices}
    single |= {"sampler": [*run.of("sampler")], "adapter": [*run.of("adapter")]}
    for noun, parts in single.items():
        names = [part.name for part in parts]
        if len(names) > 1:
            kind = parts[0].kind
            hint = f"remove {len(names) - 1}, for instance --{kind} ~{names[0]}"
            what = f"a run has one {noun}, not {' and '.join(names)}"
            yield CseError(what, where=kind, hint=hint)


def installed_poolers(registry: Registry, record: type[PoolSpec]) -> list[str]:
    """Return the names of the installed poolers with a record of a class."""
    return [part.name for part in registry.parts("pool") if isinstance(part.spec, record)]


def check_duplicates(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse two parts that make one view, group of positives or column, or read it otherwise."""
    owners: dict[Need, PlannedPart] = {}
    readers: dict[str, PlannedPart] = {}
    for part in run.parts:
        remove = f"remove one, for instance --{part.kind} ~{part.name}"
        for name, dtype in part.reads.items():
            other = readers.setdefault(name, part)
            if other.reads[name] != dtype:
                what = f"reads {dtype}, and {other.path} reads {other.reads[name]}"
                yield CseError(what, where=part.path, value=f"column {name}", hint=remove)
        for capability in sorted(part.provides):
            kind, name = capability
            other = owners.setdefault(capability, part)
            if kind in ("view", "positives", "column") and other is not part:
                what = f"{other.path} and {part.path} both make the {kind} {name!r}"
                yield CseError(what, where=part.path, hint=remove)
    for name, miner in run.groups.items():
        maker = run.view_makers.get(name, miner)
        if maker is not miner:
            yield CseError(
                f"{maker.path} makes a view and {miner.path} a group of positives, both named "
                f"{name!r}",
                where=miner.path,
                hint="remove one",
            )


def check_negatives(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse contrastive losses without negatives; warn of stores that serve no loss."""
    names = [store.name for store in run.of("negatives")]
    for loss, options in run.losses():
        for name in options.negatives if isinstance(options.negatives, tuple) else ():
            if name not in names:
                hint = did_you_mean(name, [*names, "all", "in-batch", "stored", "none"])
                if not names and not hint.startswith("did"):
                    hint = "this run has no store: add one with --negatives NAME"
                what = "unknown negative store"
                yield CseError(what, where=f"{loss.path}.negatives", value=name, hint=hint)
        if cast(LossSpec, loss.spec).contrastive:
            yield from _check_contrastive(run, loss, options)
    levels = {options.level for _, options in run.losses()}
    for store, opts in run.stores():
        if not any(run.serves(store, loss) for loss in run.of("loss")):
            near = {loss.path: o.negatives for loss, o in run.losses() if o.level == opts.level}
            named = [path for path, taken in near.items() if isinstance(taken, tuple)]
            why = "no loss takes stored negatives"
            if named:
                why = f"{named[0]}.negatives does not name it"
            elif levels and not near:
                why = f"its level is {opts.level}, those of the losses {', '.join(sorted(levels))}"
            yield f"{store.path} serves no loss: {why}"


def _check_contrastive(
    run: Composition, loss: PlannedPart, options: LossOptions
) -> Iterator[Problem]:
    served = any(run.serves(store, loss) for store in run.of("negatives"))
    size = run.train.batch_size
    if options.negatives == "none":
        what = "a contrastive loss needs negatives"
        hint = f"--set {loss.path}.negatives=all"
        yield CseError(what, where=f"{loss.path}.negatives", value="none", hint=hint)
    elif options.negatives == "stored" and not served:
        what = "no store of this run serves this loss, so it has no negatives"
        hint = "add a store with --negatives NAME, or use all"
        yield CseError(what, where=f"{loss.path}.negatives", value="stored", hint=hint)
    elif served or any(view.role == "negative" for view in run.views):
        return
    elif min(size, run.facts.rows or size) == 1:
        what = f"a batch of one sentence gives {loss.path} no negative"
        hint = "take at least 2 sentences, or add a store with --negatives NAME"
        yield CseError(
            what, where="train.batch_size" if size == 1 else "data.path", value=1, hint=hint
        )


def check_token_losses(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse losses on token states of views that several branches encode, or an untrained one."""
    branch_of = {view.name: view.branch for view in run.views}
    trained = {b.name for b in run.of("branch") if cast(BranchSpec, b.spec).trainable}
    for loss in (part for part in run.of("loss") if part.token_views):
        by = {view: branch_of[view] for view in loss.token_views if view in branch_of}
        words = ", ".join(f"{view} by {branch}" for view, branch in by.items())
        if len({*by.values()}) > 1 or not trained.issuperset(by.values()):
            what = "reads token states, and needs its views encoded by one branch that is trained"
            elsewhere = next(view for view, branch in by.items() if branch != "online")
            hint = f"--views.{elsewhere}.branch online"
            yield CseError(what, where=loss.path, value=words, hint=hint)


def check_positives(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse losses of another level than their miner; warn of miners that nothing asks."""
    for loss, options in run.losses():
        miner = run.groups.get(options.target)
        level = None if miner is None else cast(MinerOptions, miner.options).level
        if miner is not None and level != options.level:
            what = f"it is never computed: {miner.path} finds {options.target!r} at level {level}"
            hint = f"--{loss.path}.level {level}, or --{miner.path}.level {options.level}"
            yield CseError(what, where=f"{loss.path}.level", value=options.level, hint=hint)
    needed = {options.target for _, options in run.losses()}
    needed.update(name for part in run.parts for name in part.needs("positives"))
    for miner in run.of("positives"):
        groups = sorted(need.name for need in miner.provides if need.kind == "positives")
        if groups and needed.isdisjoint(groups):
            yield (
                f"{miner.path} serves no loss: none has target = {groups[0]}; "
                f"--loss +infonce:more --loss.more.target {groups[0]} adds one"
            )


def check_branches(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse another branch named online; warn of branches that nothing uses."""
    used = {"online", *(view.branch for view in run.views)}
    trained = {"online", *(b.name for b in run.of("branch") if cast(BranchSpec, b.spec).trainable)}
    if trained.isdisjoint(view.branch for view in run.views):
        what = "no view of a loss is encoded by a branch that trains, so nothing would change"
        where = "views.anchor.branch"
        yield CseError(what, where=where, value=run.views[0].branch, hint=f"--{where} online")
    used |= {options.branch for _, options in run.stores() if options.branch is not None}
    used.update(name for part in run.parts for name in part.needs("branch"))
    for branch in run.of("branch"):
        if branch.name == "online" and branch.use != "online":
            what = "online is the encoder in training"
            hint = 'write name = "target" or another'
            yield CseError(what, where=branch.path, value=branch.use, hint=hint)
        if branch.name not in used:
            yield f"{branch.path} encodes nothing: name it in views.VIEW.branch or a store's branch"


def check_sizes(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Check lengths against the model, and the sizes of losses against its vectors."""
    facts = run.facts
    width = facts.hidden
    for part in run.of("pool"):
        if hasattr(part.options, "dimension"):
            width = part.options.dimension or width
        elif part.distribution != TOOLKIT and not isinstance(part.spec, SliceSpec):
            width = None  # it is known when the part is made
    if width is not None:
        yield from check_dimensions(run, width)
    # With a slicing part max_length counts a text's content before it is cut, not a row.
    for where, longest, sliced in (
        ("model.max_length", run.model.max_length, bool(run.pools(SliceSpec))),
        ("inference.max_length", run.inference.max_length or 0, run.inference.slice),
    ):
        if facts.positions is not None and longest > facts.positions and not sliced:
            what = f"exceeds the {facts.positions} positions of {facts.model}"
            hint = f"--set {where}={facts.positions}"
            yield CseError(what, where=where, value=longest, hint=hint)


def check_dimensions(run: Composition, there: int) -> Iterator[CseError]:
    """Refuse sizes of losses beyond those of the vectors."""
    for loss, options in run.losses():
        if options.dimensions and (most := max(options.dimensions)) > there:
            hint = f"name sizes of at most {there}, that of the vectors"
            where = f"{loss.path}.dimensions"
            yield CseError("is more than the vectors have", where=where, value=most, hint=hint)


def check_columns(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Check the columns of views; warn of pairs in the data that the run leaves aside."""
    columns = run.facts.columns
    if columns is None:
        return
    known = {*columns, *run.mined_columns}
    known |= {n.name for part in run.parts for n in part.provides if n.kind == "column"}
    for view in run.views:
        if view.column is None or view.column in known:
            continue
        known.add(view.column)
        named = view.name in run.view_options and run.view_options[view.name].column is not None
        close = did_you_mean(view.column, columns)
        hint = f"say which column holds it: --set data.columns.{view.column}=COLUMN"
        yield CseError(
            f"the data has no column {view.column!r}; it has {', '.join(columns)}",
            where=f"views.{view.name}.column" if named else f"data.columns.{view.column}",
            hint=close if named and close.startswith("did you mean") else hint,
        )
    yield from _left_aside(run, columns)


def _left_aside(run: Composition, columns: tuple[str, ...]) -> Iterator[Problem]:
    """Warn of texts that nothing reads, of installed data those of positives and negatives."""
    read = {"text", *FILLED, *run.read_columns}
    read.update(name for part in run.parts for name in part.needs("column"))
    views = {view.column: view.name for view in run.declared.values() if view.role != "aux"}
    free = [view.name for view in run.views if view.column == "text" and view.role == "positive"]
    for name in columns:
        if name in read:
            continue
        if name in views or (run.read is not None and name in run.read.texts):
            view = views.get(name) or ("positive" if free else "negative")
            yield (
                f"the data has a column {name!r} that this run leaves aside: "
                f"--set views.{view}.column={name} takes it in"
            )


def check_round_texts(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse what reads a column of the data in rounds whose texts are not the data's."""
    miners = [p for p in run.round_miners if "text" in cast(MinerSpec, p.spec).columns]
    if not miners:
        return
    maker = f"{miners[0].path} trains on texts of its own, which have none"
    remove = f"--positives ~{miners[0].name}"
    for part in run.parts:
        column = min({*part.needs("column")} - {*run.mined_columns}, default=None)
        if part not in run.round_miners and column is not None:
            what = f"needs column {column!r} of the data, and {maker}"
            hint = f"remove one: --{part.kind} ~{part.name} or {remove}"
            yield CseError(what, where=part.path, hint=hint)
    for view in run.views:
        if view.column not in (None, *run.mined_columns):
            what = f"reads column {view.column!r} of the data, and {maker}"
            yield CseError(what, where=f"views.{view.name}.column", hint=f"remove one, or {remove}")


def check_attention(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse what the model's backend does, and a first token that sees only itself."""
    problems = list(Models(registry).problems(run.model, run.facts))
    yield from problems
    if run.facts.causal and not problems:
        rows = run.pools(RowPoolerSpec)
        for part in [*rows, *([run.inference_pool] if run.inference_pool else [])]:
            if part.spec.declared("sentence_transformers", part.options) == "cls":
                what = "pools the first token, which sees nothing but itself in causal attention"
                hint = "name last-token or mean"
                if run.facts.either_direction:
                    hint += "; cse train also takes --model.attention bidirectional"
                yield CseError(what, where=part.path, hint=hint)


def check_prompts(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse a prompt where wrapped rows are sliced: it has no place in a later slice."""
    encoding = run.pools(RowPoolerSpec)
    if run.inference_pool is not None and run.inference.slice:
        encoding = [*encoding, run.inference_pool]
    for slicer in run.pools(SliceSpec):
        given = {"model.prompt": run.model.prompt}
        given |= {f"views.{view.name}.prompt": view.prompt for view in run.views}
        for where, prompt in given.items():
            if prompt:
                what = f"{slicer.path} slices texts, and the prompt has no place in a later slice"
                hint = "--prompt ''" if where == "model.prompt" else "leave it out"
                yield CseError(what, where=where, value=prompt, hint=hint)
        for part in encoding if slicer.spec.declared("slices_wrapped", slicer.options) else ():
            if part.spec.declared("prompts", part.options):
                yield CseError(
                    f"it slices rows that are wrapped, and the prompt of {part.path} has no "
                    "place in them",
                    where=slicer.path,
                    hint="let it wrap every slice, or take a row pooler without a prompt",
                )


def check_inference(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Check the slicing of the saved model; its row pooler was looked up before."""
    if run.inference.slice and not run.pools(SliceSpec):
        names = installed_poolers(registry, SliceSpec)
        hint = f"add --pool +{names[0]}" if names else "--set inference.slice=false"
        yield CseError("nothing in this run slices", where="inference.slice", value=True, hint=hint)


def find_inference_pool(run: Run, registry: Registry) -> PlannedPart | None:
    """Return the row pooler of the saved model where it is another than that of training."""
    name, where = run.inference.pool, "inference.pool"
    names = [part.name for part in run.pools(RowPoolerSpec)]
    if name is None or name in names:
        return None
    rows = installed_poolers(registry, RowPoolerSpec)
    if name.rpartition("/")[2] not in rows or not registry.has("pool", name):
        hint = did_you_mean(name, [*names, *rows])
        raise CseError("unknown row pooler", where=where, value=name, hint=hint)
    return PlannedPart.of(registry.find("pool", name, where=where))


def add_branches(
    run: Run, views: Sequence[PlannedView], registry: Registry
) -> tuple[tuple[PlannedPart, ...], list[str], list[Problem]]:
    """Add a default instance of each branch that its record's name asks for.

    Returns:
        The parts of the run with it, notes and problems.
    """
    present = [part.name for part in run.of("branch")]
    provided = {need for part in run.parts for need in part.provides if need.kind != "branch"}
    provided |= {Need("branch", name) for name in present}
    asked = [("views.anchor.branch", "online")]
    asked += [(f"views.{view.name}.branch", view.branch) for view in views]
    stores = [(f"{store.path}.branch", options.branch) for store, options in run.stores()]
    asked += [(where, name) for where, name in stores if name is not None]
    for part in run.parts:
        for alternatives in part.requires:
            branches = [need.name for need in alternatives if need.kind == "branch"]
            if branches and provided.isdisjoint(alternatives):
                asked.append((part.path, branches[0]))
    parts, notes, problems = list(run.parts), list[str](), list[Problem]()
    for where, name in asked:
        if name in present:
            continue
        if not registry.has("branch", name):
            names = [*present, *(record.name for record in registry.parts("branch"))]
            hint = _how_to_add(registry, Need("branch", name)) or did_you_mean(name, names)
            problems.append(CseError("unknown branch", where=where, value=name, hint=hint))
            continue
        added = PlannedPart.of(registry.find("branch", name, where=where))
        present.append(name)
        behind = ("branch", "metric") if name == "online" else ("metric",)
        place = next((i for i, part in enumerate(parts) if part.kind in behind), len(parts))
        parts.insert(place, added)
        if name != "online":
            notes.append(f"{added.path} added with its defaults, for {where}")
    return tuple(parts), notes, problems


def check_requirements(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse each requirement and each level that nothing meets."""
    for part in run.parts:
        for alternatives in part.requires:
            if any(need.kind in ("branch", "precision") for need in alternatives):
                continue  # branches were added, or what refuses them; precisions are warned of
            if not any(is_met(run, part, need) for need in alternatives):
                yield _unmet(run, registry, part, alternatives)
    for part in run.parts:
        options = part.options
        if not isinstance(options, LossOptions | StoreOptions | MinerOptions):
            continue
        level = Need("level", options.level)
        if not is_met(run, part, level):
            provided = (need for other in run.parts for need in other.provides)
            levels = [need.name for need in provided if need.kind == "level"]
            yield CseError(
                "no part of this run makes rows of this level",
                where=f"{part.path}.level",
                value=options.level,
                hint=_how_to_add(registry, level)
                or did_you_mean(options.level, [*BASE_LEVELS, *levels]),
            )


def is_met(run: Composition, part: PlannedPart, need: Need) -> bool:
    """Check whether a need of a part is met; an unknown one counts as met."""
    facts, (kind, name) = run.facts, need
    if kind == "branch":
        return any(branch.name == name for branch in run.of("branch"))
    if any(need in other.provides for other in run.parts if other is not part):
        return True
    if kind == "view":
        return run.can_have_view(name) and run.view_makers.get(name) is not part
    if kind == "level":
        return name in BASE_LEVELS
    if kind == "positives":
        return run.can_have_view(name)
    if kind == "column":
        encoded = name in {view.column for view in run.declared.values()} - {"text"}
        if encoded and isinstance(part.spec, LossSpec):  # it sees vectors, which a view has
            return facts.columns is None or name in run.read_columns
        return run.may_have_column(name)
    if kind == "pairs":
        mined = any(other is not part for other in run.round_miners)
        return mined or facts.columns is None or run.has_pairs(part)
    known = {"vocab": facts.cased, "mask-token": facts.mask_token, "end-token": facts.end_token}
    return known.get(kind, False) is not False


_REMEDIES = {
    "view": "name its column: --set views.{name}.column=COLUMN",
    "column": "say which column of {columns} it is: --set data.columns.{name}=COLUMN",
    "pairs": "name the column: --set data.columns.positive=COLUMN",
    "vocab": "{model} lower-cases: choose another --model, or remove it with "
    "--{part.kind} ~{part.name}",
    "mask-token": "{model} has none: choose another --model, or remove it with "
    "--{part.kind} ~{part.name}",
    "end-token": "{model} has none: set eos_token in its tokenizer_config.json, or name another "
    "--{part.kind}",
}
"""What helps where no part provides what is needed, by the kind of the need."""


def _unmet(
    run: Composition, registry: Registry, part: PlannedPart, alternatives: tuple[Need, ...]
) -> CseError:
    names, remedies, unread = [], [], []
    facts = {"model": run.facts.model, "columns": ", ".join(run.facts.columns or ())}
    for need in alternatives:
        plain = f"the {need.kind} {need.name!r}" if need.name else f"{need.kind!r}"
        names.append(CAPABILITIES.get(str(need), plain))
        column = {"pairs": "positive", "column": need.name}.get(need.kind)
        if column and run.may_have_column(column):
            view = next(view.name for view in run.declared.values() if view.column == column)
            unread.append(f"let a view read column {column}: --set views.{view}.column={column}")
        remedy = _REMEDIES.get(need.kind, "")
        remedies.append(remedy.format(name=need.name, part=part, **facts))
    added = [_how_to_add(registry, need) for need in alternatives]
    hints = [*(unread or (added if any(added) else remedies)), part.spec.hint]
    hint = ", or ".join(dict.fromkeys(filter(None, hints)))
    what = f"needs {' or '.join(names)}, which this run does not have"
    remove = f"remove it with --{part.kind} ~{part.name}"
    return CseError(what, where=part.path, hint=hint or remove)


def _how_to_add(registry: Registry, need: Need) -> str:
    """Name flags that add a part which provides a need; empty where none is known."""
    here, elsewhere = registry.providers(need), registry.providers_elsewhere(need)
    flags = [f"--{part.spec.kind} +{part.name} ({part.label})" for part in here[:3]]
    flags += [f"--{p.kind} +{p.name} (pip install {p.distribution})" for p in [*elsewhere][:3]]
    return f"add {' or '.join(flags)}" if flags else ""


CHECKS = (
    check_losses, check_poolers, check_duplicates, check_requirements, check_negatives,
    check_positives, check_token_losses, check_branches, check_sizes, check_columns,
    check_round_texts, check_inference, check_attention, check_prompts,
)  # fmt: skip
"""All checks, in the order in which their problems are reported."""
