"""Checks of a composition that need no model: each yields the problems that it finds.

``CHECKS`` are all of them; ``add_branches`` adds the branches that parts ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from cse_core.capabilities import CAPABILITIES, Need
from cse_core.errors import CseError, did_you_mean
from cse_core.options import LossOptions, MinerOptions, StoreOptions
from cse_core.records import (
    LossSpec,
    MinerSpec,
    MultiVectorSpec,
    PoolSpec,
    RowPoolerSpec,
    SliceSpec,
)
from cse_core.registry.registry import Registry
from cse_engine.compose.composition import Composition, PlannedPart, Problem
from cse_engine.compose.models import Models
from cse_engine.compose.size_checks import check_sizes

if TYPE_CHECKING:
    from cse_core.protocols import Corpus

_SHOWN = 8
"""Values of a column that a message names."""
BASE_LEVELS = ("sentence", "input")
"""Levels that every run has."""


def check_losses(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse a run without a loss."""
    if not run.of("loss"):
        names = [part.name for part in registry.parts("loss")]
        hint = f"add one: --loss {names[0]}" if names else "no loss is installed"
        yield CseError("nothing is minimised", where="loss", hint=hint)


def check_poolers(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse a run without a row pooler, two of a kind, and layers beside an adapter."""
    rows, slices = run.pools(RowPoolerSpec), run.pools(SliceSpec)
    if not rows:
        names = installed_poolers(registry, RowPoolerSpec)
        hint = f"add one: --pool +{' or +'.join(names)}" if names else "no row pooler is installed"
        yield CseError("no row pooler turns token states into vectors", where="pool", hint=hint)
    single: dict[str, Sequence[PlannedPart]] = {"row pooler": rows, "slice stage": slices}
    for noun, parts in (single | {kind: run.of(kind) for kind in ("sampler", "adapter")}).items():
        names = [part.name for part in parts]
        if len(names) > 1:
            hint = f"remove {len(names) - 1}, for instance --{parts[0].kind} ~{names[0]}"
            what = f"a run has one {noun}, not {' and '.join(names)}"
            yield CseError(what, where=parts[0].kind, hint=hint)
    if run.model.train_layers and run.of("adapter"):
        what, hint = "the adapter of this run decides what is trained", "leave one out"
        yield CseError(what, where="model.train_layers", value=run.model.train_layers, hint=hint)


def installed_poolers(registry: Registry, record: type[PoolSpec]) -> list[str]:
    """Return the names of the installed poolers with a record of a class."""
    return [part.name for part in registry.parts("pool") if isinstance(part.spec, record)]


def check_duplicates(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse two parts that make one view, positives, column or level, or read it otherwise."""
    owners: dict[Need, PlannedPart] = {}
    for part in run.parts:
        remove = f"remove one, for instance --{part.kind} ~{part.name}"
        for name, dtype in part.reads.items():
            other = owners.setdefault(Need("reads", name), part)
            if other.reads[name] != dtype:
                what = f"reads {dtype}, and {other.path} reads {other.reads[name]}"
                yield CseError(what, where=part.path, value=f"column {name}", hint=remove)
        once = ["view", "positives", "column"]
        once += ["level"] * isinstance(part.spec, MultiVectorSpec)
        for need in sorted(part.provides):
            other = owners.setdefault(need, part)
            if need.kind in once and other is not part:
                what = f"{other.path} and {part.path} both make the {need.kind} {need.name!r}"
                yield CseError(what, where=part.path, hint=remove)
    for name in run.groups.keys() & run.view_makers.keys():
        maker, miner = run.view_makers[name], run.groups[name]
        if maker is not miner:
            what = f"{maker.path} makes a view and {miner.path} a group of positives named {name!r}"
            yield CseError(what, where=miner.path, hint="remove one")


def check_negatives(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse contrastive losses without negatives; warn of stores that serve no loss."""
    stores, size = run.of("negatives"), run.train.batch_size
    for loss, options in run.losses():
        where, taken = f"{loss.path}.negatives", options.negatives
        value: object = taken
        names = [store.name for store in stores] + ["all", "in-batch", "stored", "none"]
        for name in taken if isinstance(taken, tuple) else ():
            if name not in names[:-4]:
                hint = did_you_mean(name, names)
                yield CseError("unknown negative store", where=where, value=name, hint=hint)
        served = any(run.serves(store, loss) for store in stores)
        if not cast(LossSpec, loss.spec).contrastive:
            continue
        if served and (taken, options.directions) == ("stored", "both"):
            what = "positives as anchors have no stored negatives, which are the anchors'"
            yield CseError(what, where=where, value=taken, hint=f"--set {where}=all")
        if served:
            continue
        if taken == "none":
            what, hint = "a contrastive loss needs negatives", f"--set {where}=all"
        elif taken == "stored":
            what = "no store of this run serves this loss, so it has no negatives"
            hint = "add a store with --negatives NAME, or use all"
        elif any(v.role == "negative" for v in run.views) or min(size, run.facts.rows or size) > 1:
            continue
        else:
            what = f"a batch of one sentence gives {loss.path} no negative"
            hint = "take at least 2 sentences, or add a store with --negatives NAME"
            where, value = "train.batch_size" if size == 1 else "data.path", 1
        yield CseError(what, where=where, value=value, hint=hint)
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


def check_only(run: Composition, corpus: Corpus) -> Iterator[CseError]:
    """Refuse losses for rows of a text that no row has in its column."""
    for loss in run.of("loss"):
        only = {name: value for name, value in loss.only.items() if name not in run.mined_columns}
        columns = [corpus.column(name) for name in only]
        if not only or tuple(only.values()) in zip(*columns, strict=True):
            continue
        value: object = only
        where, hint = f"{loss.path}.only", "name values that one row has"
        for (name, text), column in zip(only.items(), columns, strict=True):
            texts = column.distinct()[0]
            if text not in texts:
                some = ", ".join(map(repr, texts[:_SHOWN])) + ", …" * (len(texts) > _SHOWN)
                where, value, hint = f"{where}.{name}", text, f"column {name} has {some}"
                break
        what = "no row has it, so the loss would never act"
        yield CseError(what, where=where, value=value, hint=hint)


def check_token_losses(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse losses on token states of views that several branches encode, or an untrained one."""
    branch_of = {view.name: view.branch for view in run.views}
    for loss in run.of("loss"):
        by = {view: branch_of[view] for view in loss.token_views if view in branch_of}
        if len({*by.values()}) > 1 or not run.trained_branches.issuperset(by.values()):
            words = ", ".join(f"{view} by {branch}" for view, branch in by.items())
            what = "reads token states, and needs its views encoded by one branch that is trained"
            elsewhere = next(view for view, branch in by.items() if branch != "online")
            hint = f"--views.{elsewhere}.branch online"
            yield CseError(what, where=loss.path, value=words, hint=hint)
        size = run.train.chunk_size
        if loss.whole_batch and size is not None and size < run.train.batch_size:
            what = f"{loss.path} compares token states of all rows, which chunks keep apart"
            hint = f"remove one: --train.chunk_size none or --loss ~{loss.name}"
            yield CseError(what, where="train.chunk_size", value=size, hint=hint)


def check_positives(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse losses of another level than their miner; warn of miners that nothing asks."""
    needed = {name for part in run.parts for name in part.needs("positives")}
    for loss, options in run.losses():
        needed.add(options.target)
        miner = run.groups.get(options.target)
        level = None if miner is None else cast(MinerOptions, miner.options).level
        if miner is not None and level != options.level:
            what = f"it is never computed: {miner.path} finds {options.target!r} at level {level}"
            hint = f"--{loss.path}.level {level}, or --{miner.path}.level {options.level}"
            yield CseError(what, where=f"{loss.path}.level", value=options.level, hint=hint)
    for miner in run.of("positives"):
        groups = sorted(need.name for need in miner.provides if need.kind == "positives")
        if groups and needed.isdisjoint(groups):
            hint = f"--loss +infonce:more --loss.more.target {groups[0]} adds one"
            yield f"{miner.path} serves no loss: none has target = {groups[0]}; {hint}"


def check_branches(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse another branch named online; warn of branches that nothing uses."""
    used = {"online", *(view.branch for view in run.views), *(o.branch for _, o in run.stores())}
    used.update(name for part in run.parts for name in part.needs("branch"))
    if run.trained_branches.isdisjoint(view.branch for view in run.views):
        what = "no view of a loss is encoded by a branch that trains, so nothing would change"
        where = "views.anchor.branch"
        yield CseError(what, where=where, value=run.views[0].branch, hint=f"--{where} online")
    for branch in run.of("branch"):
        if branch.name == "online" and branch.use != "online":
            what = "online is the encoder in training"
            hint = 'write name = "target" or another'
            yield CseError(what, where=branch.path, value=branch.use, hint=hint)
        if branch.name not in used:
            yield f"{branch.path} encodes nothing: name it in views.VIEW.branch or a store's branch"


def check_columns(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Check the columns of views; warn of pairs in the data that the run leaves aside."""
    columns = run.facts.columns
    if columns is None:
        return
    known = {*columns, *run.mined_columns, *run.made("column")}
    for view in run.views:
        if view.column is None or view.column in known:
            continue
        known.add(view.column)
        where = f"data.columns.{view.column}"
        hint = f"say which column holds it: --set {where}=COLUMN"
        options = run.view_options.get(view.name)
        if options is not None and options.column is not None:
            where = f"views.{view.name}.column"
            close = did_you_mean(view.column, columns)
            hint = close if close.startswith("did you mean") else hint
        what = f"the data has no column {view.column!r}; it has {', '.join(columns)}"
        if run.read and (name := run.read.renamed.get(view.column)):
            what = f"the file's column {view.column!r} is read as {name!r}"
            hint = f"--views.{view.name}.column {name}"
        yield CseError(what, where=where, hint=hint)
    # Texts that nothing reads, of installed data those of positives and negatives.
    read = run.columns_read | (run.read.graded if run.read else set())
    views = {view.column: view.name for view in run.declared.values() if view.role != "aux"}
    pairs = all(view.column != "text" for view in run.views if view.role == "positive")
    free = "negative" if pairs else "positive"
    texts = () if run.read is None else run.read.texts
    for name in columns:
        if name not in read and (name in views or name in texts):
            hint = f"--set views.{views.get(name, free)}.column={name} takes it in"
            yield f"the data has a column {name!r} that this run leaves aside: {hint}"


def check_lists(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse lists of the anchor, and views that take the lists of one column in two ways."""
    for view in run.views:
        where = f"views.{view.name}.lists"
        if view.lists != "rows" and view.role == "anchor":
            hint = f"--set {where}=rows"
            yield CseError("a row has one anchor", where=where, value=view.lists, hint=hint)
        if view.lists != "rows" and run.round_miners and view.column in run.mined_columns:
            what = f"{run.round_miners[0].path} brings one text of column {view.column} a row"
            yield CseError(what, where=where, value=view.lists, hint="leave it out")
        if view.weights and view.role != "positive":
            at, hint = f"views.{view.name}.weights", "remove it, or name a view of positives"
            yield CseError("only positives have weights", where=at, value=view.weights, hint=hint)
        for other in run.views if view.lists != "rows" else ():
            if other.column == view.column and other.lists == "rows":
                what = f"{other.name} makes rows of the lists of column {view.column}"
                hint = f"--set views.{other.name}.lists={view.lists}"
                yield CseError(what, where=where, value=view.lists, hint=hint)


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
        for part in [*run.pools(RowPoolerSpec), *filter(None, [run.inference_pool])]:
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
    prompts = {"model.prompt": run.model.prompt}
    prompts |= {f"views.{view.name}.prompt": view.prompt for view in run.views}
    for slicer in run.pools(SliceSpec):
        for where, prompt in prompts.items():
            if prompt:
                what = f"{slicer.path} slices texts, and the prompt has no place in a later slice"
                hint = "--prompt ''" if where == "model.prompt" else "leave it out"
                yield CseError(what, where=where, value=prompt, hint=hint)
        for part in encoding if slicer.spec.declared("slices_wrapped", slicer.options) else ():
            if part.spec.declared("prompts", part.options):
                what = f"it slices wrapped rows, and the prompt of {part.path} has no place in them"
                hint = "let it wrap every slice, or take a row pooler without a prompt"
                yield CseError(what, where=slicer.path, hint=hint)


def prompts_of(run: Composition) -> Iterator[tuple[str, str, str]]:
    """Yield what stands before texts: the option that says it, a view that has it, the text."""
    own = {f"views.{v.name}.prompt": (v.name, v.prompt) for v in run.views if v.prompt is not None}
    for where, (view, prompt) in ({"model.prompt": ("anchor", run.model.prompt)} | own).items():
        for before in run.data.prompts or ("",):
            if prompt or before:
                yield where if prompt else "data.prompts", view, (prompt or "") + before


def no_room(where: str, prompt: str, longest: int) -> CseError:
    """Return the error of a prompt as long as a row."""
    what = f"leaves no room for a text in {longest} tokens"
    hint = "shorten it, or raise model.max_length"
    return CseError(what, where=where, value=prompt, hint=hint)


def check_inference(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Check the slicing of the saved model; its row pooler was looked up before."""
    if run.inference.slice and not run.pools(SliceSpec):
        names = installed_poolers(registry, SliceSpec)
        hint = f"add --pool +{names[0]}" if names else "--set inference.slice=false"
        yield CseError("nothing in this run slices", where="inference.slice", value=True, hint=hint)


def check_ensemble(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse an ensemble of what is not a branch; warn of a run from only one of its encoders."""
    names = [part.name for part in run.of("branch") if part.name != "online"]
    for name in run.inference.ensemble:
        if name not in names or run.inference.ensemble.count(name) > 1:
            hint = did_you_mean(name, names) if names else "add one: --branch ema"
            what = "names no further branch of this run" if name not in names else "is named twice"
            yield CseError(what, where="inference.ensemble", value=name, hint=hint)
    if run.inference.ensemble and run.of("adapter"):
        what, hint = "the adapter would be merged only into the online encoder", "leave one out"
        yield CseError(what, where="inference.ensemble", hint=hint)
    if run.says.ensemble and run.of("loss"):
        others = ", ".join(run.says.ensemble)
        yield f"{run.facts.model} is an ensemble: this run starts without its encoders {others}"


def find_inference_pool(run: Composition, registry: Registry) -> PlannedPart | None:
    """Return the row pooler of the saved model where it is another than that of training."""
    name, where = run.inference.pool, "inference.pool"
    if name is None or name in (part.name for part in run.pools(RowPoolerSpec)):
        return None
    record = registry.find("pool", name, where=where)
    if not isinstance(record.spec, RowPoolerSpec):
        hint = did_you_mean(name, installed_poolers(registry, RowPoolerSpec))
        raise CseError("unknown row pooler", where=where, value=name, hint=hint)
    return PlannedPart.of(record)


def add_branches(
    run: Composition, registry: Registry, notes: list[str], problems: list[Problem]
) -> tuple[PlannedPart, ...]:
    """Add a default instance of each branch that its record's name asks for, and return all parts.

    What is added is noted, and what cannot be is a problem.
    """
    present = [part.name for part in run.of("branch")]
    provided = {need for part in run.parts for need in part.provides if need.kind != "branch"}
    provided |= {Need("branch", name) for name in present}
    asked = [("views.anchor.branch", "online")]
    asked += [(f"views.{view.name}.branch", view.branch) for view in run.views]
    asked += [(f"{store.path}.branch", o.branch) for store, o in run.stores() if o.branch]
    for part in run.parts:
        for alternatives in part.requires:
            branches = [need.name for need in alternatives if need.kind == "branch"]
            if branches and provided.isdisjoint(alternatives):
                asked.append((part.path, branches[0]))
    parts = list(run.parts)
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
        behind = (*["branch"] * (name == "online"), "metric", "adapter")
        place = next((i for i, part in enumerate(parts) if part.kind in behind), len(parts))
        parts.insert(place, added)
        if name != "online":
            notes.append(f"{added.path} added with its defaults, for {where}")
    return tuple(parts)


def check_requirements(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Refuse each requirement and each level that nothing meets."""
    for part in run.parts:
        for alternatives in part.requires:
            # Branches were added, or what refuses them; precisions are warned of.
            kinds = {need.kind for need in alternatives} & {"branch", "precision"}
            if not kinds and not any(is_met(run, part, need) for need in alternatives):
                yield _unmet(run, registry, part, alternatives)
    levels = [*BASE_LEVELS, *run.made("level")]
    for part in run.parts:
        options = part.options
        if isinstance(options, LossOptions | StoreOptions | MinerOptions):
            level, where = options.level, f"{part.path}.level"
            if level not in levels:
                what = "no part of this run makes rows of this level"
                hint = _how_to_add(registry, Need("level", level)) or did_you_mean(level, levels)
                yield CseError(what, where=where, value=level, hint=hint)


def is_met(run: Composition, part: PlannedPart, need: Need) -> bool:
    """Check whether a need of a part is met; an unknown one counts as met."""
    facts, (kind, name) = run.facts, need
    if any(need in other.provides for other in run.parts if other is not part):
        return True
    if kind in ("view", "positives"):
        return run.can_have_view(name) and run.view_makers.get(name) is not part
    if kind == "level":
        return name in BASE_LEVELS
    if kind == "column":
        encoded = name in {view.column for view in run.declared.values()} - {"text"}
        if encoded and isinstance(part.spec, LossSpec):  # it sees vectors, which a view has
            return facts.columns is None or name in run.read_columns()
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
    "vocab": "{model} lower-cases: choose another --model, or {remove}",
    "mask-token": "{model} has none: choose another --model, or {remove}",
    "end-token": "{model} has none: set eos_token in its tokenizer_config.json, or name another "
    "--{kind}",
}
"""What helps where no part provides what is needed, by the kind of the need."""


def _unmet(
    run: Composition, registry: Registry, part: PlannedPart, alternatives: tuple[Need, ...]
) -> CseError:
    names, remedies, unread = [], [], []
    remove = f"remove it with --{part.kind} ~{part.name}"
    words = {"model": run.facts.model, "columns": ", ".join(run.facts.columns or ())}
    words |= {"remove": remove, "kind": part.kind}
    for need in alternatives:
        plain = f"the {need.kind} {need.name!r}" if need.name else f"{need.kind!r}"
        names.append(CAPABILITIES.get(str(need), plain))
        column = {"pairs": "positive", "column": need.name}.get(need.kind)
        if column and run.may_have_column(column):
            view = next(view.name for view in run.declared.values() if view.column == column)
            unread.append(f"let a view read column {column}: --set views.{view}.column={column}")
        remedies.append(_REMEDIES.get(need.kind, "").format(name=need.name, **words))
    added = [_how_to_add(registry, need) for need in alternatives]
    hints = [*(unread or (added if any(added) else remedies)), part.spec.hint]
    hint = ", or ".join(dict.fromkeys(filter(None, hints)))
    what = f"needs {' or '.join(names)}, which this run does not have"
    return CseError(what, where=part.path, hint=hint or remove)


def _how_to_add(registry: Registry, need: Need) -> str:
    """Name flags that add a part which provides a need; empty where none is known."""
    here, elsewhere = registry.providers(need), registry.providers_elsewhere(need)
    flags = [f"--{part.spec.kind} +{part.name} ({part.label})" for part in here[:3]]
    flags += [f"--{p.kind} +{p.name} ({p.install})" for p in [*elsewhere][:3]]
    return f"add {' or '.join(flags)}" if flags else ""


CHECKS = (
    check_losses, check_poolers, check_duplicates, check_requirements, check_negatives,
    check_positives, check_token_losses, check_branches, check_sizes, check_columns, check_lists,
    check_round_texts, check_inference, check_ensemble, check_attention, check_prompts,
)  # fmt: skip
"""All checks, in the order in which their problems are reported."""
