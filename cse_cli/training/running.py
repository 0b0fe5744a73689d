"""Run a composition, or go on with a run: what both doors, shell and Python, do."""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from cse_cli.machine.out_files import check_out_folder
from cse_cli.machine.refusals import exits_as_errors
from cse_cli.models.processes import is_first
from cse_cli.plugins.installed import Installed
from cse_cli.plugins.reporters import Reporters, reporters_of
from cse_cli.terminal.console import echo, echo_err, warn
from cse_cli.texts.corpus_facts import Lengths, lengths
from cse_cli.training.pages import PagesWatch, by_tcmalloc
from cse_cli.training.resolving import with_absolute_paths
from cse_cli.training.train_checks import check_out, check_resumed, default_folder
from cse_core.files import RUN_FILE, file_text
from cse_core.reporter import Reporter
from cse_engine.runtime.memory import map_large_tensors

if TYPE_CHECKING:
    from cse_cli.terminal.progress import SilentReporter
    from cse_engine.compose.composition import Composition
    from cse_engine.run.trainer import Outcome


def run(
    composition: Composition | None,
    folder: Path | None,
    plugins: Installed,
    *,
    quiet: bool = False,
    force: bool = False,
    check_parts: bool = False,
) -> tuple[Outcome, Path, SilentReporter]:
    """Train into a folder; without a composition, go on with the run that is there.

    Without a folder a new one is made under ``runs/``; with ``force`` a run there is replaced;
    ``check_parts`` checks parts thoroughly in every step.

    Returns:
        What came of it, its folder, and what was reported meanwhile.

    Raises:
        Stopped: If it was asked to stop; ``folder`` says which run.
    """
    from cse_cli.terminal.progress import libraries_quiet, reporter_for

    first, registry, recorded = is_first(), plugins.registry, None
    if composition is None:
        assert folder is not None
        check_resumed(folder)
    elif folder is not None and first:
        check_out(folder, force=force)

    seen = None if composition is None else lengths(composition, plugins)

    def opening() -> None:
        plugins.warn_of_failed()
        if composition is not None:
            show_in_short(composition)
            show_lengths(seen)

    with ExitStack() as stack:
        stack.enter_context(exits_as_errors())
        if folder is None:
            assert composition is not None
            new = _new_folder(composition)
            folder = stack.enter_context(new) if first else default_folder(composition)
        path = Path(os.path.abspath(folder))  # wherever a part goes meanwhile
        shown = reporter_for(quiet=quiet or not first, opening=opening)
        reporter = stack.enter_context(shown)
        reporter.loading()
        if composition is not None and not by_tcmalloc():  # it has neither gaps nor new pages
            map_large_tensors(_states(composition, seen))
        from cse_cli.texts.table_cache import token_table
        from cse_cli.training.collapse import CollapseDetector
        from cse_engine.run.prepare import prepare
        from cse_engine.run.run import read_run, resume, train
        from cse_engine.run.run_folder import RunFolder
        from cse_engine.run.signals import Stopped
        from cse_engine.runtime.device import resolve_device

        stack.enter_context(libraries_quiet())
        if composition is None:
            if first:
                stack.enter_context(RunFolder(path).held("--resume"))
            recorded = read_run(path, registry)
            trained = recorded.composition
        else:
            trained = with_absolute_paths(composition, registry)
        makers: dict[str, Callable[[], Reporter]] = {}
        if first:
            makers = reporters_of(trained.train.report, registry)
            makers["of the card"] = partial(_Card, plugins, reporter)
            makers["of a collapse"] = partial(CollapseDetector, trained)
            if resolve_device(trained.train.device).type == "cpu":
                makers["of memory"] = PagesWatch
        prepared = prepare(
            trained,
            registry,
            reporter=Reporters(reporter, makers),
            read_texts=plugins.read,
            make_table=token_table,
            recorded=None if recorded is None else recorded.settings["run"],
        )
        prepared.assembly.calls.always = check_parts
        try:
            if recorded is None:
                outcome = train(prepared, path, replace_run=force)
            else:
                outcome = resume(recorded, prepared)
        except Stopped as stopped:
            stopped.folder = folder
            raise
        if first:
            _point_to(path)
    return outcome, folder, reporter


class _Card(Reporter):
    """Writes the card of a run's model; one that cannot be written costs a warning, not the run."""

    def __init__(self, plugins: Installed, reporter: SilentReporter) -> None:
        self._plugins, self._reporter = plugins, reporter

    def finish(self, folder: Path, result: Mapping[str, Any]) -> None:
        from cse_cli.cards.card import write_card

        try:
            write_card(folder, result, self._plugins.registry)
        except (OSError, ValueError, KeyError) as error:
            what = f"the model is saved without its card: {type(error).__name__}: {error}"
            self._reporter.warning(what)


def _point_to(folder: Path) -> None:
    """Let ``runs/latest`` point to a finished run in a folder ``runs``."""
    link = folder.parent / "latest"
    if folder.parent.name != "runs" or (link.exists() and not link.is_symlink()):
        return
    beside = folder / f".latest-{os.getpid():08}"
    with suppress(OSError):
        beside.symlink_to(folder.name, target_is_directory=True)
        os.replace(beside, link)


def _states(run: Composition, seen: Lengths | None) -> int:
    """Return how many bytes the states of a pass take in fp32, 0 where that is not known."""
    chunk = run.train.chunk_size
    rows = chunk if isinstance(chunk, int) else run.train.batch_size
    return int(4 * rows * (0 if seen is None else seen.tokens) * (run.facts.hidden or 0))


@contextmanager
def _new_folder(composition: Composition) -> Iterator[Path]:
    """Make ``runs/<recipe or losses>-<time>``, new; it is removed if it stays empty."""
    base = Path(f"{default_folder(composition)}-{time.strftime('%Y%m%d-%H%M%S')}")
    check_out_folder(base)
    for number in count(1):
        path = base if number == 1 else base.with_name(f"{base.name}-{number}")
        with suppress(FileExistsError):
            path.mkdir(parents=True)
            break
    folders = path.absolute(), path.parent.absolute()
    try:
        yield path
    finally:
        for made in folders:
            with suppress(OSError):  # it holds a run
                made.rmdir()


def show_in_short(composition: Composition) -> None:
    """Print parts, passes and settings in a few lines on stderr."""
    from cse_cli.training.plan import format_steps

    train = composition.train
    parts = ", ".join(
        part.path for part in composition.parts if part.kind != "branch" or part.use != "online"
    )
    echo_err(f"recipe {composition.recipe or 'default'}: {parts}")
    passes = "; ".join(
        f"{step.branch}: {' + '.join(step.views)}" + ("" if step.gradient else " (no gradient)")
        for step in composition.passes
    )
    echo_err(f"each step encodes {passes}")
    echo_err(
        f"model {composition.model.name}, batches of {train.batch_size}, "
        f"learning rate {train.lr:g}{format_steps(composition)}, seed {train.seed}"
    )
    for warning in composition.warnings:
        warn(warning)


def show_lengths(cut: Lengths | None) -> None:
    """Print on stderr what is cut of the texts, and that the vocabulary lacks words of theirs."""
    if cut is not None and cut.longer:
        echo_err(cut.line())
    if cut is not None and cut.unknown:
        warn(cut.unknown)


def show_outcome(outcome: Outcome, folder: Path, plugins: Installed) -> None:
    """Print what came of the run, and what to type next."""
    echo(f"trained {outcome.steps:,} steps in {_duration(outcome.seconds)}")
    if outcome.chosen_by is not None and outcome.score is not None:
        if outcome.step or not outcome.verdicts:  # which say that the start is kept
            chosen = f"chosen: step {outcome.step:,} by {outcome.chosen_by} = {outcome.score:.2f}"
            beside = beside_start(outcome.score, outcome.start)
            echo(chosen + beside, {"better": "32", "worse": "33"}.get(beside[2:].split(" ")[0], ""))
        for verdict in outcome.verdicts:
            echo(verdict)
    else:
        echo(f"kept: step {outcome.step:,}, the last")
    echo(f"model: {folder / 'model'}")
    echo("next:")
    run = quote(str(folder))
    data: list[str] = []
    with suppress(OSError):  # a part may have changed the working folder
        texts = tomllib.loads(file_text(folder / RUN_FILE))["data"]["path"]
        data = [min(text, os.path.relpath(text), key=len) for text in texts if os.path.exists(text)]
    if "eval" in plugins.commands.usable:
        from cse_cli.plugins.folders import data_folder

        suite = plugins.locate("sts", data_folder()[0]).there
        # Without pairs it would score the starter's synthetic ones.
        echo(f"  cse eval {run}{' --suite sts' if suite else ' --pairs PAIRS.tsv' if data else ''}")
    if data and "search" in plugins.commands.usable:
        echo(f"  cse index {run} {' '.join(map(quote, data))}")
        echo(f"  cse search {run} 'what to look for' --bm25 0.3")
    else:
        echo(f"  cse encode {run} --text 'a sentence'")


def beside_start(score: float, start: float | None) -> str:
    """Compare a dev score with the one before the first step, to two decimals."""
    if start is None:
        return ""
    if f"{score:.2f}" == f"{start:.2f}":
        return ", the same as the start"
    if score > start:
        return f", better than the start ({start:.2f})"
    return f", worse than the start ({start:.2f}): a lower --train.lr may help"


def outcome_json(outcome: Outcome, folder: Path, reporter: Any) -> dict[str, Any]:
    """Return the outcome of the run as JSON, with everything that was printed meanwhile."""
    return {
        "run": str(folder),
        **asdict(outcome),
        "model": str(folder / "model"),
        "verdicts": list(outcome.verdicts),
        "seconds": round(outcome.seconds, 1),
        "messages": list(reporter.messages),
        "warnings": list(reporter.warnings),
    }


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
