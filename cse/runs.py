"""Train into a folder, and go on with a run that was stopped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from cse.plans import Chosen, File, Plan, compose
from cse_cli.models.processes import check_launch
from cse_cli.plugins.installed import Installed
from cse_cli.training.stored_run import StoredRun
from cse_cli.training.train_checks import check_auto, check_same
from cse_core.errors import CseError

if TYPE_CHECKING:
    from cse.models import Model
    from cse_engine.compose.composition import Composition
    from cse_engine.run.trainer import Outcome


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        folder: The run's folder; ``cse.load`` and ``cse eval`` take it.
        outcome: Steps, the chosen step, its scores, the seconds.
        messages: What the run reported.
        warnings: What it warned of.
    """

    folder: Path
    outcome: Outcome
    messages: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def model(self) -> Path:
        """Return the folder that transformers and sentence-transformers load as it is."""
        return self.folder / "model"

    @property
    def scores(self) -> dict[str, float]:
        """Return the dev scores of the chosen weights by name, ``stsb.dev.spearman``."""
        return self.outcome.scores

    def load(self, **options: Any) -> Model:
        """Load its model; ``options`` are those of :func:`cse.load`."""
        from cse.models import load

        return load(self.folder, **options)

    def evaluate(self, **options: Any) -> dict[str, Any]:
        """Score its model; ``options`` are those of :func:`cse.evaluate`."""
        from cse.models import evaluate

        return evaluate(self.folder, **options)

    def to_dict(self) -> dict[str, Any]:
        """Return the output of ``cse train --json``."""
        from cse_cli.training.running import outcome_json

        return outcome_json(self.outcome, self.folder, self)

    def __repr__(self) -> str:
        from cse_cli.training.running import beside_start

        done, by = self.outcome, ""
        if done.score is not None:
            by = f" by {done.chosen_by} = {done.score:.2f}{beside_start(done.score, done.start)}"
        return f"<cse.Run {self.folder}: {done.steps} steps, step {done.step} kept{by}>"


def train(
    recipe: File | Plan | None = None,
    *,
    out: File | None = None,
    force: bool = False,
    quiet: bool = False,
    resume: Literal["auto"] | None = None,
    **chosen: Unpack[Chosen],
) -> Run:
    """Train a sentence encoder: a recipe, parts of any papers, the default, or a plan.

    Args:
        recipe: As in :func:`cse.plan`; or a plan, which stands alone.
        out: Folder of the run; by default ``runs/`` and the recipe's name and the time.
        force: Whether a run that lies in ``out`` is replaced.
        quiet: Whether nothing is shown. By default a bar shows the progress in a terminal or a
            notebook, lines elsewhere.
        resume: ``"auto"`` begins the run of ``out``, goes on with it, or returns it finished.
        chosen: As in :func:`cse.plan`.

    Raises:
        CseError: If the run is refused; nothing is written then.
        KeyboardInterrupt: If it was interrupted; :func:`cse.resume` goes on with it.
    """
    from cse_cli.plugins.reporters import reporters_of

    check_launch()
    composition, _, plugins = compose(recipe, chosen, "cse.train")
    reporters_of(composition.train.report, plugins.registry)  # which refuses unknown ones
    folder = None if out is None else Path(out)
    begun = ""
    if resume is not None:
        if resume != "auto":
            hint = "resume='auto', or cse.resume(RUN)"
            raise CseError("is not a way to resume", where="resume", value=resume, hint=hint)
        check_auto(folder, force)
        begun = check_same(composition, folder, plugins.registry) if folder else ""
    if begun == "finished" and folder is not None:
        return _finished(folder, plugins)
    return _run(None if begun else composition, folder, plugins, quiet, force)


def open_run(run: File, *, plugins: Installed | None = None) -> StoredRun:
    """Open the folder of a run to read what it holds; nothing in it is changed.

    Args:
        run: The folder.
        plugins: The installed plugins; by default they are loaded.

    Raises:
        CseError: If it is not a run.
    """
    return StoredRun(run, plugins)


def resume(run: File, *, quiet: bool = False) -> Run:
    """Go on with a run that was stopped, from its last checkpoint.

    Raises:
        CseError: If it is not a run, has finished, or the data or the model has changed.
        KeyboardInterrupt: If it was interrupted again.
    """
    check_launch()
    return _run(None, Path(run), Installed(), quiet)


def _finished(folder: Path, plugins: Installed) -> Run:
    from cse_engine.run.trainer import Outcome

    return Run(folder, Outcome(**(StoredRun(folder, plugins).result or {})), (), ())


def _run(
    composition: Composition | None,
    folder: Path | None,
    plugins: Installed,
    quiet: bool,
    force: bool = False,
) -> Run:
    from cse_cli.training.running import run
    from cse_engine.run.signals import Stopped

    try:
        outcome, path, reporter = run(composition, folder, plugins, quiet=quiet, force=force)
    except Stopped as stopped:
        raise KeyboardInterrupt(
            f"{stopped}; resume with cse.resume({str(stopped.folder)!r})"
        ) from None
    return Run(path, outcome, tuple(reporter.messages), tuple(reporter.warnings))
