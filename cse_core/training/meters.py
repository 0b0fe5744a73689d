"""What is counted between two lines of metrics."""

from __future__ import annotations

import time
from typing import Any

import torch

from cse_core.engine.step import StepResult
from cse_core.runtime import distributed


class Meters:
    """Losses, rows, tokens and seconds since the last line of metrics, ``losses`` from before.

    Nothing waits for the device until :meth:`take`. ``seen`` names what any step's parts hold.
    """

    def __init__(self, losses: list[float], device: torch.device) -> None:
        self.losses = [torch.tensor(loss, device=device) for loss in losses]
        self.rows = 0
        self.tokens = 0
        self.seconds = 0.0
        self.seen: set[str] = set()
        self._began = time.perf_counter()

    def add(self, result: StepResult) -> None:
        """Count a step; one that was dropped has no loss."""
        if result.update is None or result.update.made:
            self.losses.append(result.loss.float())
        self.seen.update(result.parts)
        self.rows += result.rows
        self.tokens += result.tokens

    def stop(self) -> None:
        """Count no more seconds until :meth:`go_on`."""
        self.seconds += time.perf_counter() - self._began

    def go_on(self) -> None:
        """Count seconds again, after what does not belong to training."""
        self._began = time.perf_counter()

    def take(self) -> dict[str, Any]:
        """Return the mean loss and the speeds, and count from nothing; every process calls it."""
        seconds = max(self.seconds, 1e-9)
        tokens = distributed.all_reduce_sum(self.tokens)
        line = {"loss": float(torch.stack(self.losses).mean())} if self.losses else {}
        line |= {"sentences_per_second": self.rows / seconds, "tokens_per_second": tokens / seconds}
        self.losses, self.rows, self.tokens, self.seconds = [], 0, 0, 0.0
        return line
