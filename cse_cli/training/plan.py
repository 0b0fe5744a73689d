"""The plan of a run, as lines and as data: its parts, passes and data flow, and how it is scored.

No torch is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cse_core.options import LossOptions, Options, models_named
from cse_core.run_info import RunInfo
from cse_engine.compose.composition import Composition, PlannedPart, PlannedView
from cse_engine.compose.reading import CORE_TABLES
from cse_engine.compose.values import format_value
from cse_engine.run.recipe_file import as_recipe

if TYPE_CHECKING:
    from cse_cli.texts.corpus_facts import Lengths
    from cse_cli.training.duration import Duration
    from cse_core.suites import DevSet
    from cse_engine.run.intervals import Intervals

_OF_BACKENDS = ("backend", "either_direction")
"""Facts that tell how a model is read, not what it is."""


@dataclass(frozen=True)
class PlannedRun:
    """The plan of a run: what is composed, where it will lie, and what it is evaluated on.

    Attributes:
        composition: The checked composition.
        folder: The folder; of a default one the time is not known yet.
        default: Whether nobody named it.
        sets: Its dev sets, by name.
        lengths: How many texts are cut, where that is known.
        adapted: With an adapter, how many weights of the encoder train and how many there are.
        own: How many weights of its own a loss trains, by path.
    """

    composition: Composition
    folder: str
    default: bool
    sets: Mapping[str, DevSet]
    lengths: Lengths | None = None
    adapted: tuple[int, int] | None = None
    own: Mapping[str, int] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Return the plan as lines of plain text, with settings that are not the defaults."""
        changed = [f"  {line}" for line in changed_settings(self.composition)]
        heading = ["changed settings:"] if changed else []
        return [*plan_lines(self.composition, self._own_lines()), *heading, *changed]

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as data that JSON can hold."""
        duration = self._duration()
        return {
            **plan_dict(self.composition),
            "evaluation": {
                "sets": {name: {"texts": dev.size} for name, dev in self.sets.items()},
                "every_steps": self._intervals and (self._intervals.evaluate or None),
                "times": self._times,
                "chosen_by": self._chosen(),
                "patience": self.composition.train.patience,
            },
            "adapter": self.adapted and dict(zip(("trained", "all"), self.adapted, strict=True)),
            "own_weights": dict(self.own),
            "length": self.lengths and self.lengths.as_dict(),
            "seconds": duration and round(duration.training + duration.scoring),
            "folder": {"path": self.folder, "default": self.default},
            "changed": changed_settings(self.composition),
        }

    def _own_lines(self) -> list[str]:
        """Describe its evaluations, its checkpoint and its folder."""
        chosen, patience = self._chosen(), self.composition.train.patience
        lines = [self.lengths.line()] if self.lengths is not None else []
        if self.lengths is not None and self.lengths.unknown:
            lines.append(f"warning: {self.lengths.unknown}")
        if self.adapted is not None:
            trained, every = self.adapted
            lines.append(f"adapter: {trained:,} of {every:,} parameters of the encoder train")
        words = "parameters of its own, which are not saved"
        lines += [f"{path} trains {number:,} {words}" for path, number in self.own.items()]
        lines += [f"evaluation: {self._when()}"]
        lines += [f"verdict: {note}" for dev in self.sets.values() if (note := dev.note())]
        if (duration := self._duration()) is not None:
            lines.append(duration.line())
        if chosen is None:
            why = "train.eval_steps is 0" if self.sets else "no dev set; add one with --dev FILE"
            lines.append(f"checkpoint: the last step is kept: {why}")
        else:
            lines.append(f"checkpoint: the step with the best {chosen} is kept")
            if patience is not None:
                count = patience if isinstance(patience, str) else f"{patience} evaluations"
                lines[-1] += f"; training stops after {count} without a better one"
        other = " (--out DIR names another)" if self.default else ""
        return [*lines, f"folder: {self.folder}{other}"]

    def _duration(self) -> Duration | None:
        from cse_cli.training.duration import duration

        return duration(self.composition, self.lengths, self.sets, self._times)

    def _chosen(self) -> str | None:
        from cse_engine.run.dev_sets import choosing_score

        train = self.composition.train
        return None if train.eval_steps == 0 else choosing_score(self.sets, train.select)

    @cached_property
    def _intervals(self) -> Intervals | None:
        """The intervals of the run; None without dev sets, or where only the run can tell."""
        from cse_engine.run.intervals import Intervals

        train, steps = self.composition.train, self.composition.facts.steps
        if self.composition.round_miners:
            steps = train.max_steps
        if not self.sets or (steps is None and train.eval_steps is None):
            return None
        return Intervals.of(train, 1 if steps is None else steps)

    @cached_property
    def _times(self) -> int | None:
        """How often the dev sets are scored; None where only the run can tell."""
        intervals, steps = self._intervals, self.composition.facts.steps
        if not self.sets or (intervals is not None and not intervals.evaluate):
            return 0
        if intervals is None or steps is None or self.composition.round_miners:
            return None
        times = -(-steps // intervals.evaluate)
        return times and times + 1

    def _when(self) -> str:
        intervals, times = self._intervals, self._times
        if times == 0:
            return "none"
        on = ", ".join(f"{name} ({dev.size:,} texts)" for name, dev in self.sets.items())
        if intervals is None:
            return f"on {on} at the start and every 125 steps, or each tenth of fewer than 1,250"
        every = f"every {intervals.evaluate:,} steps" if intervals.evaluate > 1 else "every step"
        if times is None:
            return f"on {on} at the start, {every} and at the end of each round"
        return f"on {on} at the start, {every} and at the end: {times:,} times"


def changed_settings(composition: Composition) -> list[str]:
    """List the core's settings that differ from their defaults, and where each is from."""
    changed = []
    for table in CORE_TABLES:
        options = getattr(composition, table)
        for name in options.model_dump(exclude_defaults=True):
            origin = composition.origins.get(f"{table}.{name}", "the composer")
            value = format_value(getattr(options, name))
            changed.append(f"{table}.{name} = {value}, from {origin}")
    return changed


def plan_lines(composition: Composition, run: Sequence[str] = ()) -> list[str]:
    """Return the plan as lines of plain text; indented lines belong to the heading above.

    ``run`` has lines that stand below those of the settings: dev sets, checkpoint, folder.
    """
    train, facts = composition.train, composition.facts
    rows = "" if facts.rows is None else f"; {facts.rows:,} rows"
    columns = "" if facts.columns is None else f"; columns {', '.join(facts.columns)}"
    unread = [name for name in facts.columns or () if name not in composition.columns_read]
    columns += f" (not read: {', '.join(unread)})" if unread else ""
    lines = [
        f"recipe: {composition.recipe or 'default'}",
        f"model: {composition.model.name}{_known(facts)}",
        f"data: {', '.join(composition.data.path)}{rows}{columns}",
        f"train: batches of {train.batch_size}, learning rate {format_value(train.lr)}"
        f"{format_steps(composition)}, seed {train.seed}, precision {train.precision}",
        *run,
    ]
    if composition.params:
        text = ", ".join(
            f"{name} = {format_value(value)}" for name, value in composition.params.items()
        )
        lines.append(f"params: {text}")
    lines.append("parts:")
    lines += [f"  {_part(part)}" for part in composition.parts]
    lines.append("views:")
    lines += [f"  {_view(view)}" for view in composition.views]
    lines.append("encoder passes per step:")
    for number, step in enumerate(composition.passes, 1):
        gradient = "with" if step.gradient else "without"
        model = _model_of(composition, step.branch)
        by = f"{step.branch} ({model})" if model else step.branch
        lines.append(
            f"  {number}. {by}: {', '.join(step.views)}, {gradient} gradient, for {step.why}"
        )
    if train.chunk_size is not None and train.chunk_size < train.batch_size:
        lines.append(
            f"  in chunks of {train.chunk_size}; those with gradient run twice (gradient caching)"
        )
    for heading, told_lines in (
        ("data flow", data_flow(composition)),
        ("notes", composition.notes),
        ("warnings", warnings_of(composition)),
    ):
        if told_lines:
            lines.append(f"{heading}:")
            lines += [f"  {line}" for line in told_lines]
    return lines


def plan_dict(composition: Composition) -> dict[str, Any]:
    """Return the plan as data that JSON can hold."""
    shown = [name for name in RunInfo.__dataclass_fields__ if name not in _OF_BACKENDS]
    facts = _fields(composition.facts, *shown)
    if composition.round_miners:
        facts["steps"] = composition.train.max_steps
    return {
        "recipe": composition.recipe,
        "settings": as_recipe(composition),
        "params": dict(composition.params),
        "facts": facts,
        "parts": [
            _fields(part, "kind", "name", "use", "distribution", "version")
            | _fields(part.spec, "summary", "paper")
            for part in composition.parts
        ],
        "views": [
            _fields(
                view,
                "name",
                "role",
                "branch",
                "column",
                "lists",
                "weights",
                "made_by",
                "augmenters",
            )
            for view in composition.views
        ],
        "passes": [
            {"branch": step.branch, "model": _model_of(composition, step.branch)}
            | _fields(step, "views", "gradient", "why")
            for step in composition.passes
        ],
        "inference_pool": composition.inference_pool and composition.inference_pool.use,
        "data_flow": data_flow(composition),
        "notes": list(composition.notes),
        "warnings": warnings_of(composition),
    }


def _fields(item: Any, *names: str) -> dict[str, Any]:
    """Return attributes by name, tuples as the lists that JSON has."""
    values = ((name, getattr(item, name)) for name in names)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values}


def warnings_of(composition: Composition) -> list[str]:
    """List the warnings of the data's reading and of the composition."""
    read, needed = composition.read, composition.needed_columns
    noticed = () if read is None else read.corpus(needed).report.messages
    return [*noticed, *composition.warnings]


def _model_of(composition: Composition, branch: str) -> str | None:
    """Return the model that a branch names, None where it is the run's own."""
    options = next(part.options for part in composition.of("branch") if part.name == branch)
    return models_named(options).get("model")


def _known(facts: RunInfo) -> str:
    text = [facts.family] if facts.family else []
    text += [f"hidden {facts.hidden}"] if facts.hidden else []
    text += [f"{facts.layers} layers"] if facts.layers else []
    if facts.cased is not None:
        text.append("cased" if facts.cased else "lower-cased")
    if facts.causal or facts.either_direction:
        text.append("causal" if facts.causal else "bidirectional")
    return f" ({', '.join(text or ['neither installed nor a folder: looked for on the hub'])})"


def format_steps(composition: Composition) -> str:
    """Count the steps; the pairs of a round are not known before it is mined.

    Returns:
        A clause that begins with a comma; empty where nothing is known.
    """
    rounds = bool(composition.round_miners)
    count = composition.train.max_steps if rounds else composition.facts.steps
    if count is None:
        return ", steps per round as its pairs require" if rounds else ""
    limit = " a round, unless its miner says otherwise" if rounds else ""
    return f", {count:,} step{'s' * (count != 1)}{limit}"


def _part(part: PlannedPart) -> str:
    use = "" if part.use == part.name else f" = {part.use}"
    changed = _changed(part.options)
    return f"{part.path}{use} ({part.owner}){': ' if changed else ''}{changed}"


def _changed(options: Options) -> str:
    """Return the options that are not at their defaults."""
    names = options.model_dump(exclude_defaults=True)
    return ", ".join(f"{name} = {format_value(getattr(options, name))}" for name in names)


def _view(view: PlannedView) -> str:
    source = f"made by {view.made_by}" if view.made_by else f"column {view.column}"
    source += {"rows": "", "draw": " (one of a list)", "all": " (all of a list)"}[view.lists]
    source += f", weights {view.weights}" if view.weights else ""
    by = f", changed by {', '.join(view.augmenters)}" if view.augmenters else ""
    role = "" if view.role == view.name else f", role {view.role}"
    before = "" if view.prompt is None else f", prompt {view.prompt!r}"
    return f"{view.name}: {source}{role}, branch {view.branch}{by}{before}"


def data_flow(run: Composition) -> list[str]:
    """Draw the data flow between parts, one line for each edge."""
    branch_of = {view.name: view.branch for view in run.views}
    lines = []
    for loss, options in run.losses():
        miner = run.groups.get(options.target)
        source = f"{miner.path} (group {options.target})" if miner else options.target
        lines.append(f"{source} -> {loss.path} ({_in_batch(options)})")
        for (kind, name), *others in loss.requires:
            if kind == "view" and name != options.target and not others:
                lines.append(f"{name} -> {loss.path} (view)")
        for store, _ in run.stores():
            if run.serves(store, loss):
                asked = _encoded(store, branch_of)
                lines.append(f"{store.path}{f' ({asked})' if asked else ''} -> {loss.path}")
    for part in run.parts:
        if part.encodes and part.kind != "negatives":
            lines.append(f"{_encoded(part, branch_of)} -> {part.path}")
    lines += [f"{path} -> {view.name}" for view in run.views for path in view.augmenters]
    for part in run.parts:
        for (kind, name), *others in part.requires:
            if kind == "branch" and name != "online" and not others:
                lines.append(f"branch.{name} -> {part.path}")
    return list(dict.fromkeys(lines))


def _encoded(part: PlannedPart, branch_of: Mapping[str, str]) -> str:
    """Return the views that a part asks for, with the branches that encode them."""
    by: dict[str, list[str]] = {}
    for view, branch in part.encodes:
        by.setdefault(branch or branch_of.get(view, "online"), []).append(view)
    return ", ".join(f"{', '.join(views)} by branch {branch}" for branch, views in by.items())


def _in_batch(options: LossOptions) -> str:
    rows = "no in-batch negatives"
    if options.negatives not in ("none", "stored"):
        rows = f"in-batch: {options.in_batch}"
    return rows if options.level == "sentence" else f"level {options.level}, {rows}"
