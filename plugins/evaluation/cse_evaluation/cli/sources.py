"""What ``cse eval`` and ``cse.evaluate`` are asked for, and what models are scored on.

Both are checked, and texts are read, before any model is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import Any

from cse_cli.api import (
    DATA_VARIABLE,
    Installed,
    check_model,
    check_out_file,
    data_folder,
    echo_err,
    known_set,
    plain_table,
    say_json,
    say_table,
)
from cse_core.errors import CseError, did_you_mean
from cse_core.loading import load_factory
from cse_core.records import SourceSpec, SuiteSpec
from cse_core.suites import Suite
from cse_evaluation.collection_files import files_in, find_collections, folder_of
from cse_evaluation.collections import Collection, read_collection
from cse_evaluation.documents import DocumentSet, read_documents
from cse_evaluation.labelled import LongTexts, Task, read_tasks
from cse_evaluation.pairs import PairSet, find_pairs, pairs_from_rows
from cse_evaluation.results import check_names
from cse_evaluation.suites import STS_DEVS, Classify, Collections, Graded, Labelled, Retrieval

_CHOICES = {
    "long_texts": ("way with long texts", ("cut", "slice")),
    "classifier": ("classifier", ("exact", "senteval")),
}


@dataclass(frozen=True)
class Request:
    """What to score, on what, how; each field is the option of ``cse eval`` of its name."""

    models: tuple[str, ...]
    suite: tuple[str, ...] = ()
    data_dir: Path | None = None
    pairs: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    labelled: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()
    long_texts: LongTexts | None = None
    classifier: str = "exact"
    seed: int = 1111
    pooling: str | None = None
    max_length: int | None = None
    prompt: str | None = None
    truncate_dim: int | None = None
    device: str = "auto"
    precision: str = "fp32"
    batch_tokens: int | None = None
    pairs_out: Path | None = None
    items_out: Path | None = None
    metric: tuple[str, ...] = ()
    level: str | None = None
    queries_model: str | None = None
    no_baselines: bool = False

    @classmethod
    def of(cls, models: Sequence[str], options: Mapping[str, Any]) -> Request:
        """Return a request; in Python one name stands for a list of one."""
        known = {item.name: item for item in fields(cls) if item.name != "models"}
        values: dict[str, Any] = {}
        for name, value in options.items():
            if name not in known:
                hint = did_you_mean(name, known)
                raise CseError("unknown option", where=name, value=value, hint=hint)
            if known[name].default == ():
                one = isinstance(value, str | Path)
                value = tuple(map(str, [value] if one else value or ()))
            elif name in ("data_dir", "pairs_out", "items_out") and value is not None:
                value = Path(value)
            values[name] = value
        if not models:
            raise CseError("no model is named", hint="name a run, a model folder or starter")
        return cls(tuple(models), **values)

    @property
    def outs(self) -> dict[str, Path | None]:
        """Return the files to write, by flag."""
        return {"--pairs-out": self.pairs_out, "--items-out": self.items_out}

    def changed(self) -> dict[str, Any]:
        """Return the options that are not the defaults, files by their whole paths."""
        given: dict[str, Any] = {}
        for item in fields(self)[1:]:
            value = getattr(self, item.name)
            if isinstance(value, tuple) and value:
                given[item.name] = [_whole(one) for one in value]
            elif value != item.default:
                given[item.name] = _whole(value)
        return given


def _whole(value: Any) -> Any:
    is_file = isinstance(value, Path) or (isinstance(value, str) and os.path.isfile(value))
    return os.path.abspath(value) if is_file else value


@dataclass(frozen=True)
class OtherSuite:
    """A suite of another distribution, and what its ``score`` gets."""

    spec: SuiteSpec
    suite: Suite
    read: Any


@dataclass
class Sources:
    """What a request is scored on.

    Attributes:
        tasks: Labelled texts, with what becomes of those that are too long.
        synthetic: Names of the sets that are made up.
        missing: Names of the suites' sets that are not there.
        folder: Where the first suite is.
        files: Those of suites and of graded pairs, which outputs leave as they are.
        notes: What to tell about the choice.
    """

    pairs: list[PairSet] = field(default_factory=list)
    tasks: list[tuple[LongTexts, list[Task]]] = field(default_factory=list)
    documents: list[DocumentSet] = field(default_factory=list)
    collections: list[Collection] = field(default_factory=list)
    others: list[OtherSuite] = field(default_factory=list)
    synthetic: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    folder: Path | None = None
    files: list[str | Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each set: its name, kind and size; a suite's sets are its own matter."""
        tasks = chain.from_iterable(tasks for _, tasks in self.tasks)
        sizes: list[tuple[str, str, int | None]] = [
            *((part.name, "graded pairs", len(part.pairs)) for part in self.pairs),
            *((part.name, "labelled texts", len(part.texts)) for part in tasks),
            *((part.name, "documents", len(part)) for part in self.documents),
            *((part.name, "judged queries", len(part.queries)) for part in self.collections),
            *((part.spec.name, "suite", None) for part in self.others),
        ]
        return [{"name": name, "kind": kind, "size": size} for name, kind, size in sizes]


def read_sources(request: Request, plugins: Installed) -> Sources:
    """Read what a request is scored on, and check the rest of it."""
    specs = {name: plugins.registry.one(SuiteSpec, name).spec for name in request.suite}
    _check_options(request, plugins)
    sources = Sources()
    data = _implied(request, plugins, specs, sources)
    for spec in specs.values():
        _add_suite(sources, spec, request)
    pairs = [known_set(file, plugins, "--pairs") for file in request.pairs]
    sources.files += pairs
    sources.pairs += map(find_pairs, pairs)
    for name in data:
        dataset = plugins.registry.one(SourceSpec, name, where="--data").spec
        rows = load_factory(dataset.factory)().pairs("test")
        sources.pairs.append(pairs_from_rows(f"{name}.test", rows))
        if plugins.datasets[name].synthetic:
            sources.synthetic.append(f"{name}.test")
    if request.labelled:
        sources.tasks.append((request.long_texts or "slice", read_tasks(request.labelled)))
    for file in request.documents:
        sources.documents.append(read_documents(file, plugins))
        if file in plugins.datasets and plugins.datasets[file].synthetic:
            sources.synthetic.append(sources.documents[-1].name)
    for folder in request.collections:
        path = Path(folder).expanduser()
        inside = find_collections(path).values()
        read = inside or [folder_of(path) if path.is_file() else path]
        sources.files += [folder, *map(str, chain.from_iterable(map(files_in, read)))]
        sources.collections += map(read_collection, inside or [folder])
    tasks = chain.from_iterable(tasks for _, tasks in sources.tasks)
    notes = (*(task.note for task in tasks), *(part.note for part in sources.collections))
    sources.notes += filter(None, notes)
    check_names([row["name"] for row in sources.rows() if row["size"] is not None])
    _check_kinds(request, sources, plugins)
    _check_outs(request, sources)
    return sources


def _check_options(request: Request, plugins: Installed) -> None:
    for flag, file in request.outs.items():
        if file is not None and len(request.models) > 1:
            raise CseError("is for one model", where=flag, hint="evaluate them one by one")
    for name in request.models:
        check_model(name, plugins.registry, pooling=request.pooling, max_length=request.max_length)
    for name, (noun, known) in _CHOICES.items():
        value = getattr(request, name)
        if value is not None and value not in known:
            flag, hint = f"--{name.replace('_', '-')}", did_you_mean(value, known)
            raise CseError(f"unknown {noun}", where=flag, value=value, hint=hint)
    if not (isinstance(request.seed, int) and 0 <= request.seed < 2**32):
        raise CseError("is not a seed", where="--seed", value=request.seed, hint="write 0 or more")
    for metric in request.metric:
        plugins.registry.find("metric", metric, where="--metric")


def _check_kinds(request: Request, sources: Sources, plugins: Installed) -> None:
    """Refuse options of a kind of set where none is scored, and two that exclude each other."""
    options = {item.name: item.default for item in fields(request)}
    for kind, there, more, names in (
        ("judged queries", sources.collections, "--collections FOLDER", ("level", "queries_model")),
        ("labelled texts", sources.tasks, "--labelled FILE", ("long_texts", "classifier", "seed")),
        ("graded pairs", sources.pairs, "--pairs FILE or --suite sts", ("metric",)),
    ):
        for name in names:
            value = getattr(request, name)
            if value != options[name] and not there:
                shown = ", ".join(value) if isinstance(value, tuple) else value
                raise CseError(f"there are no {kind}", where=f"--{name.replace('_', '-')}",
                               value=shown, hint=f"name some with {more}")  # fmt: skip
    if request.level is not None and request.queries_model is not None:
        what = "compares vectors of one model, and another one encodes the queries"
        raise CseError(what, where="--level", value=request.level, hint="leave one of them out")
    if request.queries_model is not None:
        check_model(request.queries_model, plugins.registry, pooling=request.pooling,
                    max_length=request.max_length)  # fmt: skip


def _check_outs(request: Request, sources: Sources) -> None:
    items = bool(sources.tasks or sources.documents or sources.collections)
    others = (*request.labelled, *request.documents)
    for flag, known, what, more in (
        ("--pairs-out", bool(sources.pairs), "graded pairs", "--pairs FILE or --suite sts"),
        ("--items-out", items, "documents, judged queries or labelled texts",
         "--documents FILE, --collections FOLDER or --labelled FILE"),
    ):  # fmt: skip
        file = request.outs[flag]
        if file is not None and not known:
            hint = f"name some with {more}"
            raise CseError(f"there are no {what} to write", where=flag, hint=hint)
        if file is not None:
            read = [*map(Path, (*sources.files, *others))]
            # Of collections the files that are read are known; a result may lie beside them.
            folders = [path for path in read if path.is_dir() and not find_collections(path)]
            read += chain.from_iterable(path.rglob("*") for path in folders)
            check_out_file(file, flag, inputs=read)


def _implied(
    request: Request, plugins: Installed, specs: dict[str, SuiteSpec], sources: Sources
) -> Sequence[str]:
    """Return the data sets to score on, where no suite is named; add the STS suite if it is."""
    if specs:
        return request.data
    if request.labelled or request.documents or request.collections:
        if request.data_dir is not None:
            hint = "name one with --suite, or leave --data-dir out"
            raise CseError("no suite is named", where="--data-dir", value=str(request.data_dir),
                           hint=hint)  # fmt: skip
        return request.data
    sts = plugins.registry.one(SuiteSpec, "sts").spec
    if request.data_dir is not None:
        specs["sts"] = sts
        return request.data
    if request.pairs or request.data:
        return request.data
    if plugins.locate("sts", data_folder()[0]).there:
        specs["sts"], names, what = sts, [], "the STS suite"
    else:
        names = list(plugins.datasets)
        what = f"the test pairs of {', '.join(names)}"
    if not specs and not names:
        raise CseError(
            "nothing to score on: no data set is installed and no STS file is found",
            hint="name pairs with --pairs FILE, or --suite sts --data-dir DIR",
        )
    sources.notes.append(f"no --suite, --pairs or --data: scored on {what}")
    return names


def _add_suite(sources: Sources, spec: SuiteSpec, request: Request) -> None:
    """Read the files of a suite."""
    suite: Suite = load_factory(spec.factory, where=f"suite {spec.name}")()
    if spec.dev == "rows":
        what = "is made of rows that are held out of training, and has no files"
        raise CseError(what, where="--suite", value=spec.name)
    # Those of all files of a folder have an option that names single ones.
    option = suite.option if isinstance(suite, Classify | Retrieval | Collections) else ""
    if option and getattr(request, option) and request.data_dir is None:
        return  # the files that are named are the suite
    folder, origin = data_folder(request.data_dir)
    hint = f"name the folder of its files with --data-dir DIR or {DATA_VARIABLE}"
    if option:
        named = ("folder", "FOLDER") if option == "collections" else ("file", "FILE")
        hint += f", or a {named[0]} with --{option} {named[1]}"
    if spec.sources and origin != "--data-dir":
        hint = f"`cse data fetch {spec.name}` brings them; or {hint}"
    if not folder.is_dir():
        shown = "this is not a directory" if folder.exists() else "no such directory"
        raise CseError(f"{shown} (from {origin})", where=str(folder), hint=hint)
    files = suite.locate(folder)
    if files.broken:
        raise files.broken[0]
    if not files.there:
        what = f"no file of the suite {spec.name} is here ({', '.join(files.missing)})"
        raise CseError(what, where=str(folder), hint=hint)
    sources.files += files.there.values()
    read = suite.read(files.there)
    if isinstance(suite, Graded):
        sources.pairs += read
    elif isinstance(suite, Labelled):
        sources.tasks.append((request.long_texts or suite.long_texts, read))
    elif isinstance(suite, Retrieval):
        sources.documents += read
    elif isinstance(suite, Collections):
        sources.files += chain.from_iterable(map(files_in, files.there.values()))
        sources.collections += read
    else:
        sources.others.append(OtherSuite(spec, suite, read))
    if isinstance(suite, Graded | Labelled) and not option:
        folder = next(iter(files.there.values())).parent
    sources.folder = sources.folder or folder
    missing = [name for name in files.missing if name not in STS_DEVS]
    sources.missing += missing
    if missing:
        sources.notes.append(f"not there, looked for in {folder}: {', '.join(missing)}")


def show_sources(sources: Sources, *, json: bool) -> None:
    """Print what models would be scored on."""
    rows = sources.rows()
    if json:
        say_json({"sets": rows, "missing": sources.missing})
        return
    table = plain_table("scored on", ("set", "of", "number"))
    for row in rows:
        table.add_row(row["name"], row["kind"], "" if row["size"] is None else f"{row['size']:,}")
    say_table(table)
    if sources.missing:
        echo_err(f"not there: {', '.join(sources.missing)}")
