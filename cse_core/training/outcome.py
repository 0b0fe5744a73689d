"""The end of a run: the chosen weights, the saved model, and what it came to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cse_core.engine.assembly import Assembly
from cse_core.runtime import distributed
from cse_core.runtime.reporter import Reporter
from cse_core.training import checkpoint as saved
from cse_core.training.checkpoint import Checkpoint
from cse_core.training.export import save_model
from cse_core.training.run_folder import RunFolder
from cse_core.training.selection import Best, Scorer


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        step: Step of the chosen weights.
        chosen_by: Name of the score that chose them; None where the last were kept.
        score: Its value.
        scores: All dev scores of the chosen weights.
    """

    model: Path
    steps: int
    step: int
    round: int
    chosen_by: str | None
    score: float | None
    scores: dict[str, float]
    seconds: float


def finish(
    assembly: Assembly,
    folder: RunFolder,
    scorer: Scorer,
    reporter: Reporter,
    *,
    steps: int,
    rounds: int,
    seconds: float,
    about: dict[str, Any],
) -> Outcome:
    """Put the chosen weights back and save the model.

    Args:
        assembly: The run's parts.
        folder: The run's folder.
        scorer: Knows what is best.
        reporter: Who hears of it.
        steps: Steps of all rounds.
        rounds: Number of the last round.
        seconds: How long the run took.
        about: Facts for the model's README.
    """
    best, select = scorer.of_run, scorer.select
    chosen = best.score is not None
    distributed.wait()
    if chosen:
        kept = Checkpoint.read(folder.best(best.round))
        saved.restore_weights(assembly, kept)
        best = _of(kept, best, select)
    else:
        reporter.message("no dev set chose a checkpoint: the last weights are kept")
    step = best.step if chosen else steps
    about = {
        **about,
        "chosen": f"step {step} by {select} = {best.score:.2f}"
        if best.score is not None
        else f"step {step}, the last",
    }
    outcome = Outcome(
        model=folder.model,
        steps=steps,
        step=step,
        round=best.round if chosen else rounds,
        chosen_by=select if chosen else None,
        score=best.score,
        scores=best.scores,
        seconds=seconds,
    )
    if distributed.world()[0] == 0:
        save_model(assembly, folder.model, about=about)
        folder.write_result({**asdict(outcome), "model": "model", "seconds": round(seconds, 1)})
        folder.link_latest()
    return outcome


def _of(kept: Checkpoint, best: Best, select: str | None) -> Best:
    """Return what the saved weights reached.

    A run that was killed may have saved better ones after the checkpoint that it went on from, and
    come no higher the second time.
    """
    if kept.values["step"] == best.step:
        return best
    scores = {name: value for name, value in kept.values.items() if name != "step"}
    return replace(
        best, step=kept.values["step"], scores=scores, score=scores.get(select or "", best.score)
    )
