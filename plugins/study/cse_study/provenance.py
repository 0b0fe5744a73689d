"""What a pack says of its study, made from a session; and the files of a pack, found again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cse_cli.api import Installed, Models, data_folder, known_set
from cse_core.errors import CseError, raise_all
from cse_study.definition.reading import Definition
from cse_study.execution.packs import FileSum, Head, PackedPoint, Source
from cse_study.planning.composing import (
    Inputs,
    Wish,
    digest,
    file_digest,
    model_digest,
    model_files,
)
from cse_study.planning.plan import roles_of
from cse_study.session import Session

WHERE = "cse verify"
"""Where what is refused of a pack's rows and files comes from."""
Put = Callable[[Path, Path], object]
"""Puts a file at a place."""


def definition_digest(definition: Definition) -> str:
    """Return a digest of what a study's file says of its runs and of their scores."""
    runs = {"kind", "settings", "axes", "tune", "runs", "after"}
    study = definition.study.model_dump(include=runs)
    scores = definition.study.scores.model_dump(include={"suites", "options"})
    return digest({**study, "scores": scores})


def head_of(session: Session) -> Head:
    """Return what makes the runs of a session again.

    The files of texts and models are listed by their content, without the folders they lay in.

    Raises:
        CseError: A name has characters that cannot be printed, which packs do not hold.
    """
    definition, wish, scoring = session.definition, session.wish, session.scoring
    assert scoring is not None
    study = definition.study
    about: dict[str, Any] = {
        "study": definition.name,
        "definition": definition_digest(definition),
        "settings": _nameless(study.settings),
        "steps": wish.steps,
        "limit": wish.rows,
        "seeds": session.plan.seeds,
        "trials": prod(axis.size for axis in study.axes if axis.called in study.tuned),
        "suites": wish.suites,
        "scoring": scoring.key,
        "scored_by": " ".join(map(_base, scoring.words)),
    }
    try:
        rows = tuple(
            PackedPoint(
                key=row.key, seed=row.seed, labels=dict(row.point.labels),
                columns=dict(row.point.columns), settings=_nameless(row.point.settings),
            )
            for row in session.shown_rows if row.status == "done"
        )  # fmt: skip
        sets = tuple(_sets(scoring.words, wish, session.plugins))
        return Head(**about, **_sources(session), sets=sets, rows=rows)
    except ValidationError as error:
        value = error.errors(include_url=False)[0]["input"]
        raise CseError("a pack cannot hold this name", where=definition.name, value=value) from None


def _sources(session: Session) -> dict[str, Any]:
    """Return what was named for each role, and the pairs to score on."""
    definition, wish, plugins = session.definition, session.wish, session.plugins
    models: dict[str, Source] = {}
    data: dict[str, tuple[Source, ...]] = {}
    dev: tuple[Source, ...] = ()
    trained = roles_of(definition, scored=False)
    for role in roles_of(definition):
        kind, _, which = role.removeprefix("@").partition(":")
        if not wish.inputs.has(role, trained):
            continue
        names = wish.inputs.of_role(role)
        if kind == "model":
            models[which] = _model(names[0], plugins)
        elif kind == "dev":
            dev = tuple(_texts(known_set(name, plugins, "--dev"), plugins) for name in names)
        else:
            data[kind] = tuple(_texts(name, plugins) for name in names)
    pairs = tuple(_texts(known_set(name, plugins, "--pairs"), plugins) for name in wish.pairs)
    return {"models": models, "data": data, "dev": dev, "pairs": pairs}


def _base(text: str) -> str:
    return os.path.basename(text) if os.path.isabs(text) else text


def _nameless(value: Any) -> Any:
    """Return settings as JSON holds them, whole paths less the folders."""
    if isinstance(value, Mapping):
        return {name: _nameless(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_nameless(item) for item in value]
    return _base(value) if isinstance(value, str) else value


def _model(name: str, plugins: Installed) -> Source:
    folder = None
    if not plugins.registry.has("encoder", name):
        folder = Models(plugins.registry).find(name)
    if folder is None:
        return Source(name=name, digest=model_digest(name, plugins))
    base = os.path.basename(os.path.abspath(name))
    return Source(name=base, files=tuple(_sums(model_files(folder), folder, base)))


def _texts(name: str, plugins: Installed) -> Source:
    """List a file or folder of texts; any other name, as of a data set, stands for itself."""
    path, mark, options = name.partition("?")
    if name in plugins.datasets or not os.path.exists(path):
        return Source(name=name)
    base = os.path.basename(os.path.abspath(path))
    return Source(name=base + mark + options, files=tuple(_listed(Path(path), base)))


def _listed(path: Path, name: str) -> Iterator[FileSum]:
    """Yield a file, or those of a folder below its name but hidden ones that are not applied."""
    files = [path]
    if path.is_dir():
        files = [
            file for file in sorted(path.rglob("*")) if file.is_file() and not any(
                part[0] == "." and part != ".gitignore" for part in file.relative_to(path).parts
            )
        ]  # fmt: skip
    yield from _sums(files, path, name)


def _sums(files: Iterable[Path], path: Path, name: str) -> Iterator[FileSum]:
    for file in files:
        inner = file.relative_to(path).as_posix() if file != path else ""
        yield FileSum(
            name=f"{name}/{inner}".rstrip("/"), size=file.stat().st_size, sha256=file_digest(file)
        )


def _sets(words: Sequence[str], wish: Wish, plugins: Installed) -> Iterator[FileSum]:
    """Yield the files of the data folder that words of ``cse eval`` read."""
    folder, _ = data_folder(wish.data_dir)
    of_suites = {suite: plugins.locate(suite, folder).there for suite in plugins.suites}
    known = {str(path.resolve()): path for files in of_suites.values() for path in files.values()}
    read: dict[Path, None] = {}
    for flag, word in zip(words, words[1:], strict=False):
        if flag == "--suite":
            read |= dict.fromkeys(of_suites.get(word, {}).values())
        elif word in known:
            read[known[word]] = None
    for path in read:
        if path.is_relative_to(folder):
            yield from _listed(path, path.relative_to(folder).as_posix())


def locate(head: Head, places: Iterable[Path]) -> dict[str, Path]:
    """Find the files of a pack by their content; return each that is there by its checksum.

    Only files of a size that is wanted are read.

    Raises:
        CseError: A place is not there.
    """
    wanted: dict[int, set[str]] = {}
    for file in head.files:
        wanted.setdefault(file.size, set()).add(file.sha256)
    there: dict[str, Path] = {}
    for place in places:
        if not place.exists():
            raise CseError("no such file or folder", where=WHERE, value=str(place))
        for path in _files_below(place):
            left = wanted.get(path.stat().st_size, set()) - there.keys()
            if left and (content := file_digest(path)) in left:
                there[content] = path.absolute()
    return there


def _files_below(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    walked: set[str] = set()  # a link may lead back to a folder above it
    for folder, below, names in os.walk(place, followlinks=True):
        if (real := os.path.realpath(folder)) in walked:
            below.clear()
            continue
        walked.add(real)
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file() and os.access(path, os.R_OK):
                yield path


def check_there(head: Head, there: Mapping[str, Path]) -> None:
    """Refuse to go on without a file of a pack: its name, size and checksum."""
    hint = "--files DIR searches a folder for it"
    lacking = [file for file in head.files if file.sha256 not in there]
    raise_all([CseError(f"{file} is not among the files that were named", where=WHERE,
                        hint=hint) for file in lacking])  # fmt: skip


def inputs_of(head: Head, there: Mapping[str, Path], place: Path) -> tuple[Inputs, list[str], Path]:
    """Lay the files of a pack out in a folder under the names that they had.

    Returns:
        What stands for the study's roles, the pairs to score on, and the folder of suites' files.
    """
    count = 0

    def laid(source: Source, put: Put = os.symlink) -> str:
        nonlocal count
        count += 1
        folder = place / str(count)
        _lay(source.files, there, folder, put)
        return str(folder / source.name) if source.files else source.name

    models = {role: laid(source) for role, source in head.models.items()}
    # Of a folder of documents no link is read that leads out of it.
    data = {role: [laid(source, shutil.copyfile) for source in sources]
            for role, sources in head.data.items()}  # fmt: skip
    inputs = Inputs(models, data, tuple(map(laid, head.dev)))
    pairs = list(map(laid, head.pairs))
    sets = place / "sets"
    sets.mkdir(parents=True)
    _lay(head.sets, there, sets)
    return inputs, pairs, sets


def _lay(
    files: Iterable[FileSum], there: Mapping[str, Path], folder: Path, put: Put = os.symlink
) -> None:
    for file in files:
        place = folder / file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            put(there[file.sha256], place)
