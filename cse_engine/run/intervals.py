"""When a round logs, scores and saves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from cse_core.options import PATIENCE_FORM
from cse_engine.compose.settings import TrainOptions


class Due(NamedTuple):
    """What follows a step: a line of metrics, an evaluation, a checkpoint."""

    log: bool
    score: bool
    save: bool


@dataclass(frozen=True)
class Intervals:
    """After how many steps a round of ``total`` steps logs, scores and saves; 0 is never."""

    log: int
    evaluate: int
    save: int
    total: int

    @staticmethod
    def of(options: TrainOptions, total: int) -> Intervals:
        """Fill in the defaults for a round of ``total`` steps."""
        evaluate = options.eval_steps
        if evaluate is None:
            evaluate = 125 if total >= 1250 else max(1, total // 10)
        save = options.save_steps
        if save is None:
            save = evaluate or max(1, total // 10)
        return Intervals(options.log_steps or (10 if total >= 100 else 1), evaluate, save, total)

    def due(self, step: int, *, scored: bool) -> Due:
        """Return the tasks due after a step: all after the last, a log line with each evaluation.

        Nothing is scored unless ``scored``: without a dev set.
        """
        last = step >= self.total

        def at(interval: int) -> bool:
            return bool(interval) and (last or step % interval == 0)

        score = scored and at(self.evaluate)
        return Due(log=score or last or at(self.log), score=score, save=last or at(self.save))

    def evaluations(self, patience: int | str | None, per_epoch: int) -> int | None:
        """Count the evaluations without a better score that end a round, at least 1.

        ``patience`` is 3, ``"3 evaluations"``, ``"20000 steps"``, ``"2 epochs"``; None is never.
        """
        if not isinstance(patience, str):
            return patience
        ((count, unit),) = PATIENCE_FORM.findall(patience)
        if not unit.startswith(("step", "epoch")) or not self.evaluate:
            return int(count)
        steps = int(count) * (per_epoch if unit.startswith("epoch") else 1)
        return max(math.ceil(steps / self.evaluate), 1)
