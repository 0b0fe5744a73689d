"""The dev sets that ``train.dev`` names, and which of their scores chooses a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_core.capabilities import Need
from cse_core.errors import CseError
from cse_core.loading import load_factory
from cse_core.records import SuiteSpec
from cse_core.registry.names import source_of
from cse_core.registry.registry import Registry
from cse_core.suites import DevSet, NoDevSet, Suite
from cse_core.texts import FILLED, Wanted
from cse_engine.compose.settings import TrainOptions

if TYPE_CHECKING:
    from cse_core.protocols import Corpus

MEAN = "mean"
DEV = Need("dev")
"""What a suite provides whose files may be dev sets, in the list of known parts."""
DEV_OF_ROWS = Need("dev-of-rows")
"""What one provides that makes dev sets of rows that are held out of training."""
_UNREAD = "no installed suite can read this dev set"


def by_name(sets: Sequence[DevSet]) -> dict[str, DevSet]:
    """Return dev sets by name; of equal names the second becomes ``name-2``."""
    named: dict[str, DevSet] = {}
    for dev_set in sets:
        name, number = dev_set.name, 1
        while name in named:
            number += 1
            name = f"{dev_set.name}-{number}"
        named[name] = dev_set
    return named


def choosing_score(sets: Mapping[str, DevSet], wanted: str | None) -> str | None:
    """Return the score that chooses a checkpoint, ``mean`` of several sets; None without a set.

    ``wanted`` is a score, a set or ``mean``; an unknown one raises a ``CseError``.
    """
    usual = {name: f"{name}.{dev_set.choices[0]}" for name, dev_set in sets.items()}
    if wanted in (None, MEAN):
        return MEAN if len(usual) > 1 else next(iter(usual.values()), None)
    choices = [f"{name}.{score}" for name, dev in sets.items() for score in dev.choices]
    if (chosen := usual.get(wanted, wanted)) in choices:
        return chosen
    hint = "one of " + ", ".join([*choices, MEAN])
    raise CseError("is not a dev score of this run", where="train.select", value=wanted, hint=hint)


def dev_sets(
    options: TrainOptions,
    data: Sequence[str],
    registry: Registry,
    warn: Callable[[str], None],
    commits: dict[str, str] | None = None,
    corpus: Corpus | None = None,
) -> list[DevSet]:
    """Return the dev sets that ``train.dev`` names: files, installed data sets or sets of the hub.

    Behind them stand those that suites make of rows of ``corpus`` that are held out of training.

    ``auto`` takes the pairs of the installed data sets among ``data``, what is trained on; without
    a suite that reads pairs it warns and takes none. ``commits`` gets the commit of each name of
    the hub, where it is known.
    """
    sets: list[DevSet] = []
    installed = registry.datasets()

    def suites(kind: object) -> list[Suite]:
        specs = [suite.spec for suite in registry.all(SuiteSpec)]
        return [load_factory(spec.factory)() for spec in specs if spec.dev == kind]

    of_pairs = suites("pairs") if options.dev else []
    for name in options.dev:
        auto = name == "auto"
        names = [path for path in (data if auto else [name]) if path in installed]
        if not auto and (not names or Path(name).exists()):
            if name != "none":
                read = _rows(name, of_pairs, registry, commits)
                sets.append(read or _read(name, [*suites(True), *of_pairs], registry))
        elif names and not of_pairs:
            error = _no_dev_set(registry, NoDevSet(_UNREAD, where=f"{names[0]}.dev"))
            if not auto:
                raise error
            warn(str(error))
        else:
            for dataset in names:
                pairs = load_factory(installed[dataset].spec.factory)().pairs("dev")
                sets.append(of_pairs[0].dev_of_pairs(f"{dataset}.dev", pairs))
    if corpus is not None:
        _say_trained(sets, corpus, warn)
    if corpus is not None and corpus.held_out is not None:
        of_rows = suites("rows")
        if not of_rows:
            ways = [part.install for part in registry.providers_elsewhere(DEV_OF_ROWS)]
            what = "no installed suite makes a dev set of rows"
            raise CseError(what, where="data.held_out", hint=" or ".join(ways))
        sets += [suite.dev_of_rows(corpus.held_out, corpus) for suite in of_rows]
    return sets


def _say_trained(sets: Sequence[DevSet], corpus: Corpus, warn: Callable[[str], None]) -> None:
    """Warn of texts of dev sets that stand in the training data too."""
    for name, scored in ((dev.name, {*dev.scored_texts()}) for dev in sets):
        columns = [column for column in corpus.names if scored and column not in FILLED]
        if both := {t for column in columns for t in corpus.texts_of(column) if t in scored}:
            share = f"{len(both):,} of its {len(scored):,} texts"
            warn(f"dev set {name}: {share} stand in the training data too, so it may score memory")


def _rows(
    name: str, of_pairs: Sequence[Suite], registry: Registry, commits: dict[str, str] | None
) -> DevSet | None:
    """Make a dev set of the rows of a source that gives its sets titles, as those of the hub."""
    place = source_of(name, registry) if of_pairs else None
    source: Any = None if place is None else load_factory(place.spec.factory)()
    if place is None or not hasattr(source, "title"):
        return None
    asked = Wanted(split="dev", options=place.options)
    rows = [dict(row) for _, row in source.rows(place.name, asked)]
    if commits is not None and (commit := source.commit(place.name)):
        commits[name] = commit
    return of_pairs[0].dev_of_pairs(source.title(place.name), rows)


def _read(path: str, suites: Sequence[Suite], registry: Registry) -> DevSet:
    """Read a file as a dev set of the first suite that takes it."""
    why = NoDevSet(_UNREAD, where=path)
    for suite in suites:
        try:
            if (read := suite.read_dev(path)) is not None:
                return read
        except NoDevSet as error:
            why = error
    raise _no_dev_set(registry, why)


def _no_dev_set(registry: Registry, why: NoDevSet) -> NoDevSet:
    """Return the error with the suites that would read more."""
    others: dict[str, list[str]] = {}
    for part in registry.providers_elsewhere(DEV):
        others.setdefault(registry.how_to_get(part.kind, part.name), []).append(part.name)
    hints = [f"be one of suite {' or '.join(names)} ({how})" for how, names in others.items()]
    start = f"{why.hint}, or " if why.hint else "it may "
    hint = start + ", or ".join(hints) if hints else why.hint
    return NoDevSet(why.what, where=why.where, hint=hint)
