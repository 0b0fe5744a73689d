"""Finding the file of a study and reading it; every mistake is one line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cse_cli.plugins.installed import Installed
from cse_core.errors import CseError, collect_errors, did_you_mean, raise_all
from cse_core.recipes.reading import read_toml
from cse_core.runtime.loading import package_path
from cse_study.definition.points import Point, points_of
from cse_study.definition.schema import After, Axis, Figure, PaperNumbers, Scores, Study

_TABLES: dict[str, Any] = {
    "axes": Axis, "scores": Scores, "paper": PaperNumbers, "figures": Figure, "after": After,
}  # fmt: skip
_WORDS = {
    "missing": "is missing",
    "string_type": "must be a text",
    "int_type": "must be an integer",
    "list_type": "must be a list",
    "too_short": "must have one entry or more",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "float_type": 'must be a number, or "-" where there is none',
}
FILE = "@file:"
"""Before a path: a file that lies beside the study's."""
_LISTS = {"axes": "[[axes]]", "figures": "[[figures]]"}


@dataclass(frozen=True)
class Definition:
    """A study that was read.

    Attributes:
        name: ``mocose/table-7``, or the name of the file without its ending.
        file: Where it was read from.
        study: Its content.
        points: Its points, in their order.
        paper: Citation of the paper; empty for a file of a user.
        distribution: What brings it; empty for a file of a user.
    """

    name: str
    file: Path
    study: Study
    points: tuple[Point, ...]
    paper: str = ""
    distribution: str = ""


def find_study(name: str, plugins: Installed) -> Definition:
    """Read the study of a name, or a user's own file.

    Raises:
        CseError: If there is none of this name, or its file has mistakes: all of them at once.
    """
    known = plugins.studies
    if name in known:
        spec, info = known[name]
        file = package_path(spec.path, where=f"study {name}")
        return read_study(file, name=name, paper=spec.paper, distribution=info.distribution)
    path = Path(name).expanduser()
    if path.is_dir():
        raise CseError("is a folder", where="study", value=name, hint="name a TOML file")
    if path.suffix == ".toml" or path.is_file():
        if not path.is_file():
            raise CseError("no such file", where="study", value=name)
        return read_study(path)
    hint = did_you_mean(name, known)
    if not hint.startswith("did"):
        hint = "see cse study --list, or name a TOML file" if known else "name a TOML file"
    raise CseError("no study of this name is installed", where="study", value=name, hint=hint)


def read_study(
    file: Path, *, name: str = "", paper: str = "", distribution: str = ""
) -> Definition:
    """Read a study file.

    Raises:
        CseError: If it cannot be read, or has mistakes: all of them at once.
    """
    label = name and f"study {name}" or str(file)
    table = _with_files(read_toml(file, label), file, label)
    try:
        study = Study.model_validate(table)
    except ValidationError as error:
        raise_all([_mistake(label, each) for each in _of_one_place(error)])
        raise
    points = points_of(study)
    _check(study, points, label)
    return Definition(name or file.stem, file, study, points, paper, distribution)


def _with_files(value: Any, file: Path, label: str) -> Any:
    """Return a value of a study file with the paths of files that lie beside it.

    Raises:
        CseError: If no such file is there.
    """

    def path(found: re.Match[str]) -> str:
        beside = file.parent / found[1]
        if not beside.is_file():
            hint = f"it is looked for in {file.parent}"
            raise CseError("no such file", where=label, value=found[0], hint=hint)
        return str(beside)

    if isinstance(value, str):
        return re.sub(rf"{FILE}(\S+)", path, value)
    if isinstance(value, Mapping):
        return {key: _with_files(each, file, label) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_files(each, file, label) for each in value]
    return value


def _check(study: Study, points: tuple[Point, ...], label: str) -> None:
    """Refuse what a file says of its own points and runs and does not fit them."""
    errors: list[CseError] = []
    labels = [point.label_without(study.tuned) for point in points]
    with collect_errors(errors):
        if study.baseline and study.baseline not in labels:
            hint = did_you_mean(study.baseline, labels)
            what = "no point has this label"
            raise CseError(what, where=f"{label}: baseline", value=study.baseline, hint=hint)
    for at, claim in enumerate(study.claims):
        for key, label_ in (("better", claim.better), ("than", claim.than)):
            with collect_errors(errors):
                if label_ not in labels:
                    where = f"{label}: claims.{at}.{key}"
                    hint = did_you_mean(label_, labels)
                    raise CseError("no point has this label", where=where, value=label_, hint=hint)
        with collect_errors(errors):
            shown = study.scores.columns
            if claim.score and claim.score not in shown:
                where = f"{label}: claims.{at}.score"
                hint = did_you_mean(claim.score, shown)
                raise CseError("scores.shown lacks it", where=where, value=claim.score, hint=hint)
    if study.kind == "train":
        for key in ("numbers", "deviations"):
            lists = getattr(study.paper, key)
            given = dict(lists.items() if isinstance(lists, Mapping) else [("", lists)])
            given |= {name: getattr(each, key) for name, each in study.paper.variants.items()}
            for name, numbers in given.items():
                with collect_errors(errors):
                    _check_count(numbers, len(points), f"{label}: paper.{key}", name)
    settings = [study.settings, *(point.settings for point in points)]
    settings += study.runs.values()
    for value in texts_of(settings):
        run = value.removeprefix("@run:")
        if run != value and run not in study.runs:
            with collect_errors(errors):
                hint = did_you_mean(run, study.runs) if study.runs else f"add a table [runs.{run}]"
                raise CseError("no such run to start from", where=label, value=value, hint=hint)
    for axis in study.axes:
        with collect_errors(errors):
            heads = {path.split(".")[0] for path in axis.values}
            if study.kind == "train" and "without" in heads:
                raise CseError("without is a setting of all runs", where=f"{label}: axes")
    raise_all(errors)


def _check_count(numbers: Any, count: int, where: str, score: str) -> None:
    if numbers and len(numbers) != count:
        raise CseError(
            f"{len(numbers)} numbers for {count} points",
            where=f"{where}.{score}".rstrip("."),
            hint='one for each point, the last axis fastest, "-" where the paper prints none',
        )


def texts_of(value: Any) -> Iterator[str]:
    """Yield every text of nested settings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts_of(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_of(each)


def _of_one_place(error: ValidationError) -> Iterator[ErrorDetails]:
    """Yield one mistake of each place: of several allowed forms that which comes furthest."""
    found = {_place(details): details for details in reversed(error.errors(include_url=False))}
    for place, details in reversed(found.items()):
        if not any(other.startswith(f"{place}.") for other in found):
            yield details


def _place(details: ErrorDetails) -> str:
    """Return a place of a file, ``axes.2.values``; numbers count from 1."""
    steps = [step for step in details["loc"] if not re.search(r"[\[(]", str(step))]
    return ".".join(str(step + 1) if isinstance(step, int) else step for step in steps)


def _mistake(label: str, details: ErrorDetails) -> CseError:
    """Return what pydantic says of one place of a file as one line."""
    path = _place(details)
    names = path.split(".")
    where = f"{label}: {path}" if path else label
    kind, context = details["type"], details.get("ctx", {})
    value = details["input"] if not isinstance(details["input"], Mapping) else None
    if kind == "extra_forbidden":
        model = _TABLES.get(names[0], Study) if len(names) > 1 else Study
        hint = did_you_mean(names[-1], model.model_fields)
        return CseError(f"a study has no key {path!r}", where=label, hint=hint)
    if kind == "value_error":
        return CseError(str(context.get("error", "is not accepted")), where=where)
    if kind == "literal_error":
        return CseError(f"must be {context['expected']}", where=where, value=value)
    more: str | None = None
    if kind in ("list_type", "model_type") and names[0] in _LISTS:
        more = f"write {_LISTS[names[0]]}"
    what = _WORDS.get(kind, details["msg"][:1].lower() + details["msg"][1:])
    return CseError(what, where=where, value=None if kind == "missing" else value, hint=more)
