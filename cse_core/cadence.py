"""When a round logs, scores and saves."""

from __future__ import annotations

from dataclasses import dataclass

from cse_core.settings import TrainOptions


@dataclass(frozen=True)
class Cadence:
    """After which steps a round logs, scores and saves."""

    log: int
    evaluate: int
    save: int

    @staticmethod
    def of(options: TrainOptions, total: int) -> Cadence:
        """Fill in the defaults for a round of ``total`` steps."""
        evaluate = options.eval_steps
        if evaluate is None:
            evaluate = 125 if total >= 1250 else max(1, total // 10)
        save = options.save_steps
        if save is None:
            save = evaluate or max(1, total // 10)
        return Cadence(options.log_steps or (10 if total >= 100 else 1), evaluate, save)

    def evaluates(self, step: int, last: bool) -> bool:
        """Return whether the step is followed by an evaluation; the last one is, unless never."""
        return bool(self.evaluate) and (last or step % self.evaluate == 0)

    def saves(self, step: int, last: bool) -> bool:
        """Return whether the step is followed by a checkpoint."""
        return last or (bool(self.save) and step % self.save == 0)
