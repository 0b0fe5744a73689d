"""The graded pairs of ``cse eval``: finding and reading them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cse_cli.plugins.installed import Installed
from cse_cli.plugins.known_sets import known_set
from cse_core.errors import CseError

if TYPE_CHECKING:
    from cse_evaluation.lexical import TextCollection
    from cse_evaluation.pairs import PairSet


@dataclass
class Sets:
    """The sets that models are scored on.

    Attributes:
        synthetic: Names of those made up.
        missing: Test sets of the suite that are not there.
        folder: Where the suite is.
        notes: What to tell about the choice.
    """

    sets: list[PairSet]
    synthetic: frozenset[str] = frozenset()
    missing: tuple[str, ...] = ()
    folder: Path | None = None
    notes: list[str] = field(default_factory=list)


def find_sets(
    plugins: Installed,
    suites: list[str] | tuple[()],
    data_dir: Path | None,
    files: list[str] | tuple[()],
    names: list[str] | tuple[()],
    other: bool,
) -> Sets:
    """Read the graded pairs that were asked for; with ``other`` things asked for, maybe none."""
    from cse_evaluation.pairs import find_pairs
    from cse_evaluation.suite import find_chinese, find_suite, locate_suite

    found = Sets([])
    wanted = list(names)
    other = other or "chinese" in suites
    use_suite = "sts" in suites or (data_dir is not None and not suites and not other)
    if not (use_suite or files or names or other):
        use_suite = any(locate_suite().values())
        wanted = [] if use_suite else list(plugins.datasets)
        if not use_suite and not wanted:
            raise CseError(
                "nothing to score on: no data set is installed and no STS file is found",
                hint="name pairs with --pairs FILE, or --suite sts --data-dir DIR",
            )
        what = "the STS suite" if use_suite else f"the test pairs of {', '.join(wanted)}"
        found.notes.append(f"no --suite, --pairs or --data: scored on {what}")
    chosen = [find_suite] if use_suite else []
    chosen += [find_chinese] if "chinese" in suites else []
    for find in chosen:
        suite = find(data_dir)
        found.sets += suite.sets
        found.missing, found.folder = (*found.missing, *suite.missing), found.folder or suite.folder
        if suite.missing:
            missing = ", ".join(suite.missing)
            found.notes.append(f"not there, looked for in {suite.folder}: {missing}")
    found.sets += [find_pairs(known_set(file, plugins, "--pairs")) for file in files]
    made_up = set()
    for name in wanted:
        pairs = _installed_pairs(name, plugins)
        found.sets.append(pairs)
        if plugins.datasets[name].synthetic:
            made_up.add(pairs.name)
    found.synthetic = frozenset(made_up)
    return found


def read_texts(file: str, plugins: Installed) -> TextCollection:
    """Read the texts whose document frequencies TF-IDF uses."""
    from cse_core.data import load_corpus
    from cse_core.recipes.settings import DataOptions
    from cse_evaluation.lexical import TextCollection

    corpus = load_corpus(DataOptions(path=(file,)), datasets=plugins.datasets)
    return TextCollection(Path(file).name, list(corpus.column("text")))


def _installed_pairs(name: str, plugins: Installed) -> PairSet:
    from cse_core.runtime.loading import load_factory
    from cse_evaluation.pairs import pairs_from_rows

    spec = plugins.registry.dataset(name, where="--data").spec
    return pairs_from_rows(f"{name}.test", load_factory(spec.factory)().pairs("test"))
