"""The tables and keys of a study file, as pydantic models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from cse_cli.api import CORE_OPTIONS
from cse_core.errors import did_you_mean
from cse_core.loading import load_factory
from cse_core.records import Kind

KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of parts."""
ARGUMENTS = ("recipe", "model", "data", "dev", *KINDS)
"""Settings that are arguments of ``cse.plan``; every other one is the path of an option."""
HEADS = (*CORE_OPTIONS, "views", "params", *KINDS)
"""First words of the paths of options."""
_ELSEWHERE = {
    "seed": "seeds of a study are its key seeds",
    "train.seed": "seeds of a study are its key seeds",
    "out": "--out says where a study lies",
    "report": "reporters belong to a run of its own",
    "train.report": "reporters belong to a run of its own",
}
DEFAULT = "@default"
"""Stands in a list of an axis where a place does not set the path: that of ``[settings]`` or of the
recipe stays."""
UNTRAINED = "@none"
"""A recipe: the model is scored as it is."""
DEV = "dev"
"""Stands for the dev score that chose the checkpoint."""
MISSING = "-"
"""Stands in a list of the paper's numbers where it prints none."""

_OF_KIND = {"command": "command", "call": "function", "values": "command", "after": "train",
            "tune": "train"}  # fmt: skip
"""Keys of a study that belong to only one kind."""
Number = float | None


class Table(BaseModel):
    """What every table of a study file is: it takes no unknown key and is never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def flat(settings: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return settings by the whole paths of options: ``{"train": {"lr": 1}}`` is ``train.lr``."""
    values: dict[str, Any] = {}
    for name, value in settings.items():
        path = f"{above}{name}"
        if isinstance(value, Mapping):
            values |= flat(value, f"{path}.")
        else:
            values[path] = value
    return values


def _unknown(paths: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with the names of settings of a run."""
    for path in paths:
        head, _, rest = path.partition(".")
        if path in _ELSEWHERE:
            yield f"{path} is not a setting of a study: {_ELSEWHERE[path]}"
        elif path not in ARGUMENTS and not (rest and head in HEADS):
            close = did_you_mean(path, ARGUMENTS)
            if not close.startswith("did"):
                known = ", ".join(ARGUMENTS)
                close = f"arguments are {known}; options have a path, such as train.lr"
            yield f"unknown setting {path!r}; {close}"


def _settings(given: object) -> object:
    return flat(given) if isinstance(given, Mapping) else given


def _numbers(given: object) -> object:
    if isinstance(given, list):
        return [None if item == MISSING else float(item) if type(item) is int else item
                for item in given]  # fmt: skip
    return given


def _listed(given: object) -> object:
    return [given] if isinstance(given, str) else given


_Size = Annotated[float, Field(ge=0, allow_inf_nan=False)]
MAX_SEED = 2**63 - 1
_Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Settings = Annotated[dict[str, Any], BeforeValidator(_settings)]
Numbers = Annotated[list[Number], BeforeValidator(_numbers)]


def _distinct(values: list[Any]) -> list[Any]:
    if len(set(values)) < len(values):
        raise ValueError("has one value twice")
    return values


class Axis(Table):
    """What varies: lists of equal length, one value of each at a time.

    Attributes:
        name: What ``--points`` and tables call it; by default the last word of its first path.
        values: A list of values for each setting.
        labels: What tables call each place; by default made of the values.
        places: Instead of both, a table for each place: its ``label``, and what only it sets.
        columns: What tables and figures show of each place beside its label, as a distance that
            follows from several values; it sets nothing.
    """

    name: str = ""
    values: dict[str, list[Any]] = Field(min_length=1)
    columns: dict[str, list[Any]] = {}
    labels: Annotated[list[str], AfterValidator(_distinct)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_places(cls, given: object) -> object:
        if not isinstance(given, Mapping) or "places" not in given:
            return given
        places = given["places"]
        if not isinstance(places, list) or not all(isinstance(place, Mapping) for place in places):
            raise ValueError("places: is not a list of tables; write [[axes.places]]")
        if "values" in given or "labels" in given:
            raise ValueError("places stand instead of values and labels")
        if missing := [str(at) for at, place in enumerate(places, 1) if "label" not in place]:
            raise ValueError(f"places: {', '.join(missing)} without a label")
        sets = [flat({k: v for k, v in place.items() if k != "label"}) for place in places]
        paths = dict.fromkeys(path for part in sets for path in part)
        values = {path: [part.get(path, DEFAULT) for part in sets] for path in paths}
        rest = {name: value for name, value in given.items() if name != "places"}
        return {**rest, "values": values, "labels": [place["label"] for place in places]}

    @field_validator("values")
    @classmethod
    def _of_settings(cls, values: dict[str, list[Any]]) -> dict[str, list[Any]]:
        for path, items in values.items():
            if not items:
                raise ValueError(f"{path} has no value")
        lengths = {path: len(items) for path, items in values.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{path} {count}" for path, count in lengths.items())
            raise ValueError(
                f"lists of one axis are zipped and have equal lengths, these have {shown}; "
                "lists that are crossed are axes of their own"
            )
        return values

    @model_validator(mode="after")
    def _labelled(self) -> Axis:
        if self.labels is not None and len(self.labels) != self.size:
            raise ValueError(f"labels: {len(self.labels)} of them for {self.size} places")
        for name, values in self.columns.items():
            if len(values) != self.size:
                raise ValueError(f"columns.{name}: {len(values)} of them for {self.size} places")
        return self

    @property
    def size(self) -> int:
        """The number of places."""
        return len(next(iter(self.values.values())))

    @property
    def called(self) -> str:
        """Return its name, or the last word of its first path."""
        return self.name or next(iter(self.values)).rpartition(".")[2]


class Tune(Table):
    """A choice among places of some axes, made for each place of the others before all seeds run.

    Attributes:
        over: The axes, such as one of learning rates. Each of their places is a trial; the one
            with the highest dev score, averaged over the trials' seeds, is kept.
        seeds: Of the trials; by default the first one of the study's file.
    """

    over: list[str] = Field(min_length=1)
    seeds: Annotated[list[_Seed], AfterValidator(_distinct)] = []


class Scores(Table):
    """What finished runs are scored on.

    Attributes:
        suites: Suites of ``cse eval``; without any, and without ``options`` that name texts, the
            starter's test pairs.
        shown: The score of the table, a name or a pattern such as ``sts.mean``; several make
            several columns; ``@pairs`` stands for the sets of the files of that role.
        smallest: The smallest difference that matters, of all shown scores or by their name.
        options: More options of ``cse eval``: ``{ pooling = "mean", documents = "@titles" }``.
    """

    suites: list[str] = []
    shown: Annotated[list[str], BeforeValidator(_listed)] = []
    smallest: _Size | dict[str, _Size] = 0.0
    options: dict[str, Any] = {}

    def smallest_of(self, name: str) -> float:
        """Return the smallest difference that matters of a shown score; 0 where all do."""
        if isinstance(self.smallest, Mapping):
            return self.smallest.get(name, 0.0)
        return self.smallest


class Variant(Table):
    """The paper's numbers for another encoder or other texts, in the form of the first ones."""

    numbers: Numbers | dict[str, Numbers] = []
    deviations: Numbers | dict[str, Numbers] = []


class PaperNumbers(Table):
    """What the paper reports: the tables of ``paper.tsv`` at the study's source, or lists.

    Attributes:
        metric: What its numbers are, in words.
        model: The encoder or corpus whose numbers stand beside runs of other encoders.
        rows: The row of each point in ``paper.tsv``; by default the point's label.
        scale: What the numbers of ``paper.tsv`` are multiplied by.
        numbers: Without such a file, one for each point, in the order of the points, ``"-"`` where
            it prints none; or such a list for each shown score.
        deviations: Standard deviations, in the same form.
        variants: Numbers of other encoders or other texts by their name; those of an encoder
            stand beside runs of ``--model`` with this name.
        missing: What it prints and is not entered, with the reason.
    """

    metric: str = ""
    model: str = ""
    rows: list[str] = []
    scale: float = 1.0
    numbers: Numbers | dict[str, Numbers] = []
    deviations: Numbers | dict[str, Numbers] = []
    variants: dict[str, Variant] = {}
    missing: str = ""

    def lists(self, first: str) -> Iterator[tuple[str, str, list[Number], list[Number]]]:
        """Yield the encoder, the score, the numbers and the deviations of each list of numbers.

        ``first`` is the score of a list that names none.
        """
        parts: list[tuple[str, PaperNumbers | Variant]] = [(self.model, self)]
        for name, part in [*parts, *self.variants.items()]:
            given, spread = part.numbers, part.deviations
            by_score = given if isinstance(given, Mapping) else {first: given} if given else {}
            spreads = spread if isinstance(spread, Mapping) else {first: spread}
            for score, numbers in by_score.items():
                yield name, score, numbers, spreads.get(score, [])


class After(BaseModel):
    """A function of a finished run that adds columns to its row; other keys are its arguments.

    ``call`` is ``"package.module:function"``; it also gets the paths ``run``, ``scores`` and
    ``pairs``: the run, the JSON of ``cse eval``, the cosines behind it.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    call: str = Field(min_length=1)

    def output(self, run: Path, scores: Path) -> dict[str, Any]:
        """Call the function on a run with these scores and return its output."""
        files = {"run": run, "scores": scores, "pairs": scores.with_suffix(".tsv")}
        given = {**(self.model_extra or {}), **{name: str(path) for name, path in files.items()}}
        result: dict[str, Any] = load_factory(self.call, where="after")(given)
        return result


class Claim(Table):
    """A claim that a study decides: one point is better than another one.

    Attributes:
        source: Where it stands.
        better: Label of a point, without the labels of tuned axes.
        than: Label of the other one.
        score: The shown score that decides; by default the first one.
        lower: Whether the better one has the lower score, such as fewer steps.
    """

    says: str = Field(min_length=1)
    source: str = ""
    better: str
    than: str
    score: str = ""
    lower: bool = False


class Figure(Table):
    """A picture or a table of the page.

    Attributes:
        x: The axis, column or number that it runs along.
        y: Numbers that it shows; by default the shown scores.
        lines: The axis or column that names its lines.
        where: Of a curve, the places of columns that are shown.
        show: Of a table, paths of lists in an output.
    """

    type: Literal["curve", "table", "box", "trace", "scatter", "spectrum", "graph"]
    title: str = ""
    x: str = ""
    y: Annotated[list[str], BeforeValidator(_listed)] = []
    lines: str = ""
    where: dict[str, list[Any]] = {}
    show: list[str] = []


class Study(Table):
    """A study file.

    Attributes:
        summary: What it asks, in one line.
        source: The table or figure of the paper.
        kind: ``train``, ``command`` (a command of ``cse`` a point) or ``function``.
        note: What differs here from the paper.
        baseline: Label of the point that others are compared with, without the labels of tuned
            axes; by default the first one.
        within: Axes, or columns of axes: points are compared with the first one of their own place
            on them, such as the base method that they add to.
        start: Label of the encoder before training: a claim holds only of a point above it too.
        without: Label of the point without the part that the others vary: where the baseline does
            not differ from it, differences between them decide nothing.
        settings: Of every run; of a command or a function under any name.
        axes: What varies; axes are crossed.
        runs: Settings of runs that others start from, by name.
        command: Words of a command, ``{axis}`` and ``{setting}`` in braces.
        call: ``"package.module:function"``.
        values: Numbers of a command: the path in its JSON of each, with dots.
    """

    summary: str = Field(min_length=1)
    source: str = ""
    kind: Literal["train", "command", "function"] = "train"
    seeds: Annotated[list[_Seed], Field(min_length=1), AfterValidator(_distinct)] = [1]
    note: str = ""
    baseline: str = ""
    within: Annotated[list[str], BeforeValidator(_listed)] = []
    start: str = ""
    without: str = ""
    settings: Settings = {}
    axes: list[Axis] = []
    tune: Tune | None = None
    runs: dict[str, Settings] = {}
    scores: Scores = Scores()
    command: list[str] = []
    call: str = ""
    values: dict[str, str] = {}
    after: After | None = None
    paper: PaperNumbers = PaperNumbers()
    claims: list[Claim] = []
    figures: list[Figure] = []

    @property
    def tuned(self) -> list[str]:
        """Return the axes that hold trials."""
        return [] if self.tune is None else self.tune.over

    def trial_seeds(self, seeds: Sequence[int]) -> tuple[int, ...]:
        """Return the seeds that every place of tuned axes is tried with; without any, all."""
        if self.tune is None:
            return tuple(seeds)
        return tuple(self.tune.seeds or self.seeds[:1])

    @model_validator(mode="after")
    def _fits_together(self) -> Study:
        names = [axis.called for axis in self.axes]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"axes: two are called {twice}; give one a name")
        for key, kind in _OF_KIND.items():
            missing = key in ("command", "call") and self.kind == kind and not getattr(self, key)
            if missing or (getattr(self, key) and self.kind != kind):
                what = f'{key} belongs to a study with kind = "{kind}"'
                raise ValueError(what + ", and is missing" * missing)
        paths = [*self.settings, *(path for axis in self.axes for path in axis.values)]
        of_runs = [path for settings in self.runs.values() for path in settings]
        wrong = list(_unknown([*(paths if self.kind == "train" else ()), *of_runs]))
        if wrong:
            raise ValueError("; ".join(dict.fromkeys(wrong)))
        unknown = [axis for axis in self.tuned if axis not in names]
        if unknown:
            known = ", ".join(names)
            raise ValueError(f"tune.over: {unknown[0]} is not an axis; axes are {known}")
        places = {*names, *(column for axis in self.axes for column in axis.columns)}
        if unknown := [name for name in self.within if name not in places]:
            raise ValueError(f"within: no axis or column is called {unknown[0]}")
        set_by = [path for axis in self.axes for path in axis.values]
        if twice := next((path for path in set_by if set_by.count(path) > 1), None):
            raise ValueError(f"axes: two set {twice}, so one of them would change nothing")
        lists = [(path, value) for axis in self.axes for path, value in axis.values.items()]
        for path, value in [*self.settings.items(), *lists]:
            try:
                json.dumps(value)
            except TypeError:
                raise ValueError(f"{path}: a date is not a setting; write it in quotes") from None
        return self
