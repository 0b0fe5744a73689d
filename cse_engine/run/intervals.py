"""When a round logs, scores and saves."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cse_core.options import PATIENCE_FORM
from cse_engine.compose.settings import TrainOptions


@dataclass(frozen=True)
class Intervals:
    """After which steps a round logs, scores and saves."""

    log: int
    evaluate: int
    save: int

    @staticmethod
    def of(options: TrainOptions, total: int) -> Intervals:
        """Fill in the defaults for a round of ``total`` steps."""
        evaluate = options.eval_steps
        if evaluate is None:
            evaluate = 125 if total >= 1250 else max(1, total // 10)
        save = options.save_steps
        if save is None:
            save = evaluate or max(1, total // 10)
        return Intervals(options.log_steps or (10 if total >= 100 else 1), evaluate, save)

    def evaluations(self, patience: int | str | None, per_epoch: int) -> int | None:
        """Return after how many evaluations without a better score a round ends, at least 1.

        ``patience`` is 3, ``"3 evaluations"``, ``"20000 steps"``, ``"2 epochs"``; None is never.
        """
        if not isinstance(patience, str):
            return patience
        found = PATIENCE_FORM.fullmatch(patience)
        if found is None:
            raise ValueError(f"no patience: {patience!r}")
        count, unit = int(found[1]), found[2][0:4]
        if unit == "eval" or not self.evaluate:
            return count
        steps = count * (per_epoch if unit == "epoc" else 1)
        return max(math.ceil(steps / self.evaluate), 1)
