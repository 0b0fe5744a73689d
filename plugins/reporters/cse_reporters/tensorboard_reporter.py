"""The reporter ``tensorboard``: the lines of ``metrics.jsonl`` as events."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_core.errors import CseError
from cse_core.runtime.reporter import Reporter
from cse_reporters.options import TensorboardOptions

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorboardReporter(Reporter):
    """Writes a scalar for each key of a line, by the line's step.

    Steps of a round count from 1, so each round of a run with rounds has a folder of its own,
    ``round-2``, which TensorBoard shows as a run.

    Raises:
        CseError: If tensorboard is not installed.
    """

    def __init__(self, options: TensorboardOptions) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise CseError(
                f"the reporter tensorboard needs tensorboard: {error}",
                where="train.report",
                hint="pip install 'tensorboard>=2.20'",
            ) from error
        self._make = SummaryWriter
        self._name = options.folder
        self._folder = Path()
        self._writer: SummaryWriter | None = None

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Note the folder."""
        self._folder = folder / self._name

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Open the round's events; those after the checkpoint of a run that goes on are hidden."""
        folder = self._folder / f"round-{round_number}" if round_number else self._folder
        self._writer = self._make(str(folder), purge_step=done + 1 if done else None)

    def line(self, line: Mapping[str, float]) -> None:
        """Write a scalar for each key, under the names of ``metrics.jsonl``."""
        assert self._writer is not None
        for name, value in line.items():
            if name not in ("step", "round"):
                self._writer.add_scalar(name, value, int(line["step"]))
        self._writer.flush()

    def end(self) -> None:
        """Close the round's events."""
        if self._writer is not None:
            self._writer.close()
