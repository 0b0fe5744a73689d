"""Finding the file of a study and reading it; every mistake is one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cse_cli.plugins.installed import Installed
from cse_core.errors import CseError, did_you_mean, raise_all
from cse_core.recipes.reading import read_toml
from cse_core.runtime.loading import package_path
from cse_study.definition.points import Point, points_of
from cse_study.definition.schema import After, Axis, Figure, PaperNumbers, Scores, Study

FILE = "@file:"
"""Before a path: a file that lies beside the study's."""
RUN = "@run:"
"""Before the name of a run that others start from, or its key."""
_TABLES: dict[str, Any] = {
    "axes": Axis, "scores": Scores, "paper": PaperNumbers, "figures": Figure, "after": After,
}  # fmt: skip


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
    """Refuse what a file says of its own points and runs and does not fit them.

    Raises:
        CseError: All such mistakes at once.
    """
    labels = [point.label_without(study.tuned) for point in points]
    no_point = "no point has this label"
    named: list[tuple[str, str, Iterable[str], str]] = [
        ("baseline", study.baseline or labels[0], labels, no_point)
    ]
    for at, claim in enumerate(study.claims):
        shown = study.scores.columns
        named += [
            (f"claims.{at}.better", claim.better, labels, no_point),
            (f"claims.{at}.than", claim.than, labels, no_point),
            (f"claims.{at}.score", claim.score or shown[0], shown, "scores.shown lacks it"),
        ]
    settings = [study.settings, *(point.settings for point in points), *study.runs.values()]
    runs = [text.removeprefix(RUN) for text in texts_of(settings) if text.startswith(RUN)]
    named += [("runs", run, study.runs, "no such run to start from") for run in runs]
    errors = [
        CseError(what, where=f"{label}: {where}", value=value,
                 hint=did_you_mean(value, known) if known else f"add a table [runs.{value}]")
        for where, value, known, what in named if value not in known
    ]  # fmt: skip
    for key in ("numbers", "deviations"):
        lists = getattr(study.paper, key)
        given = dict(lists.items() if isinstance(lists, Mapping) else [("", lists)])
        given |= {name: getattr(each, key) for name, each in study.paper.variants.items()}
        for name, numbers in given.items():
            if study.kind == "train" and numbers and len(numbers) != len(points):
                hint = 'one for each point, the last axis fastest, "-" where the paper prints none'
                what = f"{len(numbers)} numbers for {len(points)} points"
                where = f"{label}: paper.{key}.{name}".rstrip(".")
                errors.append(CseError(what, where=where, hint=hint))
    heads = {path.split(".")[0] for axis in study.axes for path in axis.values}
    if study.kind == "train" and "without" in heads:
        errors.append(CseError("without is a setting of all runs", where=f"{label}: axes"))
    raise_all(errors)


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
    if details["type"] == "extra_forbidden":
        model = _TABLES.get(path.split(".")[0], Study) if "." in path else Study
        hint = did_you_mean(path.rpartition(".")[2], model.model_fields)
        return CseError(f"a study has no key {path!r}", where=label, hint=hint)
    where = f"{label}: {path}" if path else label
    if details["type"] == "value_error":
        return CseError(str(details["ctx"]["error"]), where=where)
    value = None if isinstance(details["input"], Mapping) else details["input"]
    return CseError(details["msg"][:1].lower() + details["msg"][1:], where=where, value=value)
