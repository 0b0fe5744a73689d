"""The suites of other distributions in ``cse eval``: finding them, scoring models, showing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_cli.plugins.data_folder import DATA_VARIABLE
from cse_cli.terminal.console import say_table
from cse_core.errors import CseError
from cse_core.evaluation.suites import Progress, Suite, SuiteScore
from cse_core.records import SuiteSpec
from cse_core.runtime.loading import load_factory
from cse_evaluation.suite import existing_folder

if TYPE_CHECKING:
    from cse_core.evaluation.suites import Encode


@dataclass(frozen=True)
class Wanted:
    """A suite that was asked for, and what it read.

    Attributes:
        spec: Its record.
        suite: The suite.
        read: What its ``score`` gets.
        missing: Names of its files that are not there.
        folder: The data folder.
    """

    spec: SuiteSpec
    suite: Suite
    read: Any
    missing: tuple[str, ...]
    folder: Path


def read_suites(specs: Sequence[SuiteSpec], data_dir: Path | None) -> list[Wanted]:
    """Read the files of suites.

    Raises:
        CseError: If the folder is missing, holds no file of a suite, or one is broken.
    """
    found = []
    for spec in specs:
        folder = existing_folder(data_dir, f"the files of {spec.name}")
        suite: Suite = load_factory(spec.factory, where=f"suite {spec.name}")()
        files = suite.locate(folder)
        if files.broken:
            raise files.broken[0]
        if not files.there:
            raise CseError(
                f"no file of the suite {spec.name} is here ({', '.join(files.missing)})",
                where=str(folder),
                hint=f"name their folder with --data-dir DIR or {DATA_VARIABLE}",
            )
        found.append(Wanted(spec, suite, suite.read(files.there), files.missing, folder))
    return found


def score_suites(
    wanted: Sequence[Wanted], encode: Encode, progress: Progress
) -> list[list[SuiteScore]]:
    """Score a model on each suite.

    Raises:
        CseError: If two sets have one name.
    """
    scores = [list(each.suite.score(encode, each.read, progress)) for each in wanted]
    check_sets([score.name for own in scores for score in own])
    return scores


def check_sets(names: Sequence[str]) -> None:
    """Refuse two sets of one name, of which results could show one alone."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CseError(
            f"two sets are called {twice!r}", hint="rename a file, or evaluate them one by one"
        )


def add_suites(
    texts: dict[str, Any], wanted: Sequence[Wanted], scores: Sequence[Sequence[list[SuiteScore]]]
) -> dict[str, Any]:
    """Return the JSON of all models with the scores of these suites added."""
    for model, suites in zip(texts.get("models", [texts]), scores, strict=True):
        model["results"] |= {score.name: score.to_json() for own in suites for score in own}
    for each in wanted:
        texts["missing"] += each.missing
        texts.setdefault("folder", str(each.folder))
    return texts


def show_suites(
    wanted: Sequence[Wanted], models: Sequence[str], scores: Sequence[Sequence[list[SuiteScore]]]
) -> None:
    """Print a table for each suite, a row for each set and model."""
    from rich.table import Table

    for number, each in enumerate(wanted):
        names = list(dict.fromkeys(n for score in scores[0][number] for n in score.scores))
        table = Table(caption=f"{each.spec.name}: {each.spec.summary}", caption_justify="left")
        for column in ("set", "split", "setting", "model"):
            table.add_column(column)
        for name in names:
            table.add_column(name, justify="right")
        for place, first in enumerate(scores[0][number]):
            cells = [first.name, first.split, first.setting]
            for model, own in zip(models, scores, strict=True):
                numbers = own[number][place].scores
                shown = [f"{numbers[n]:.2f}" if n in numbers else "" for n in names]
                table.add_row(*cells, model, *shown)
                cells = ["", "", ""]
        say_table(table)
