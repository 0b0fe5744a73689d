"""The suite of reporters."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

import torch

from cse_cli.plugins.reporters import reporters_of
from cse_core.errors import CseError
from cse_core.registry.registry import Registry
from cse_core.runtime.reporter import Reporter
from cse_testkit.installed import installed_registry
from cse_testkit.promises import BrokenPromise, promise
from cse_testkit.snapshots import difference, snapshot

SETTINGS: Mapping[str, Any] = {
    "model": {"name": "starter"},
    "data": {"path": ["texts.txt"]},
    "train": {"batch_size": 4, "seed": 42, "max_steps": 3},
}
LINES: tuple[Mapping[str, float], ...] = (
    {"step": 1, "round": 0, "lr": 3e-5, "loss": 2.5},
    {"step": 2, "round": 0, "lr": 2e-5, "loss": 1.5, "tiny.dev.spearman": 61.25},
    {"step": 3, "round": 0, "lr": 1e-5, "loss": 1.0},
)


class ReporterSuite:
    """What a reporter promises: it lives through a run, from the start or from a checkpoint.

    ::

        class TestNotes(ReporterSuite):
            reporter = "notes"

    Attributes:
        reporter: Its name, with options as for ``--report``: ``notes:digits=1``.
        registry: Where it is found; None is what is installed.
    """

    reporter: ClassVar[str]
    registry: ClassVar[Registry | None] = None

    def made(self) -> Reporter:
        """Return the reporter."""
        try:
            (make,) = reporters_of([self.reporter], self.registry or installed_registry()).values()
            reporter = make()
        except CseError as error:
            raise BrokenPromise(str(error)) from None
        name = type(reporter).__name__
        promise(isinstance(reporter, Reporter), f"its factory makes a {name}, not a Reporter")
        return reporter

    def test_it_hears_a_run(self) -> None:
        """Every call of a run, a text of each kind among them, ends without an exception."""
        with _folder() as folder:
            _run(self.made(), folder)

    def test_it_hears_a_run_that_goes_on(self) -> None:
        """The same of a run that goes on from step 2, with lines of later steps in the file."""
        with _folder() as folder:
            _run(self.made(), folder)
            text = "".join(f"{json.dumps(line)}\n" for line in LINES)
            (folder / "metrics.jsonl").write_text(text, encoding="utf-8")
            _run(self.made(), folder, done=2)

    def test_it_changes_nothing(self) -> None:
        """What it is given stays as it was, and random numbers are drawn by others alone."""
        given = deepcopy(SETTINGS), deepcopy(LINES)
        before = snapshot(given), torch.get_rng_state()
        with _folder() as folder:
            _run(self.made(), folder, given)
        where = difference(before[0], snapshot(given))
        promise(where is None, f"changes {where}")
        same = torch.equal(before[1], torch.get_rng_state())
        promise(same, "draws from the global generator of torch")


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cse-reporter-") as folder:
        (Path(folder) / "run.toml").write_text("[train]\nseed = 42\n", encoding="utf-8")
        yield Path(folder)


Given = tuple[Mapping[str, Any], tuple[Mapping[str, float], ...]]


def _run(reporter: Reporter, folder: Path, given: Given | None = None, done: int = 0) -> None:
    """Tell a reporter of a run of three steps: its settings and lines, copies of the kit's own."""
    settings, lines = given or (deepcopy(SETTINGS), deepcopy(LINES))

    def tell(method: str, *values: Any) -> None:
        try:
            getattr(reporter, method)(*values)
        except Exception as error:
            raise BrokenPromise(f"{method} raised {type(error).__name__}: {error}") from error

    tell("start", folder, settings)
    tell("message", "24 rows of texts.txt, [2] blank ones dropped")
    tell("progress", 12, 24, "sentences encoded")
    tell("begin", 0, len(lines), done)
    for line in lines[done:]:
        tell("step", int(line["step"]))
        tell("line", line)
        if "tiny.dev.spearman" in line:
            tell("scores", int(line["step"]), {"tiny.dev.spearman": 61.25}, True)
    tell("warning", "vectors begin to collapse")
    tell("end")
