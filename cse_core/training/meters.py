"""What is counted between two lines of metrics, and who looks at the vectors beside them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from cse_core.engine.step import StepResult
from cse_core.runtime import distributed


class Meters:
    """Losses, rows, tokens and seconds since the last line of metrics, ``losses`` from before.

    Nothing waits for the device until :meth:`flush`. ``seen`` names what any step's parts hold.
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

    def pause(self) -> None:
        """Count no more seconds until :meth:`resume`."""
        self.seconds += time.perf_counter() - self._began

    def resume(self) -> None:
        """Count seconds again, after what does not belong to training."""
        self._began = time.perf_counter()

    def flush(self) -> dict[str, Any]:
        """Return the mean loss and the speeds, and count from nothing; every process calls it."""
        seconds = max(self.seconds, 1e-9)
        tokens = distributed.all_reduce_sum(self.tokens)
        line = {"loss": float(torch.stack(self.losses).mean())} if self.losses else {}
        line |= {"sentences_per_second": self.rows / seconds, "tokens_per_second": tokens / seconds}
        self.losses, self.rows, self.tokens, self.seconds = [], 0, 0, 0.0
        return line


class Callback:
    """Looks at a run; this one sees nothing. The command line looks for a collapse."""

    def numbers(self, anchors: Tensor) -> dict[str, float]:
        """Return what metrics.jsonl is to say of a batch's vectors ``[A, D]`` in training."""
        return {}

    def warnings(self, scores: Mapping[str, float], sizes: Mapping[str, int]) -> Iterator[str]:
        """Yield what to look at in these numbers and dev scores.

        ``sizes`` has the sentences of each dev set; of the ``batch`` where there is none.
        """
        yield from ()
