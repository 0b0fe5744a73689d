"""How a training is shown while it runs: a bar on a terminal, lines elsewhere, or nothing."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cse_cli.terminal.console import cleaned, console, echo_err, in_notebook, warn
from cse_core.reporter import Reporter

if TYPE_CHECKING:
    from rich.progress import Progress

_SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def reporter_for(
    *, quiet: bool, opening: Callable[[], None] = lambda: None
) -> Iterator[SilentReporter]:
    """Give the reporter that suits the terminal, or a quiet one, and clear up after it.

    ``opening`` prints what stands above the rest. It is called at the first message, when
    everything was read without a mistake, so that an error stands alone.
    """
    reporter: SilentReporter
    if quiet:
        reporter = SilentReporter()
    elif sys.stderr.isatty() or in_notebook():
        reporter = BarReporter(opening)
    else:
        reporter = LineReporter(opening)
    try:
        yield reporter
    finally:
        reporter.end()


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """Draw a spinner on a terminal as long as a block takes; elsewhere nothing."""
    if not (sys.stderr.isatty() or in_notebook()):
        yield
        return
    with console(err=True).status(cleaned(text)):
        yield


def silence() -> None:
    """Keep the libraries' own bars and hints off stderr, where ours are."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


@contextmanager
def libraries_quiet() -> Iterator[None]:
    """Do so for a while, in a process that is not ours alone."""
    from transformers.utils import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    silence()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


class SilentReporter(Reporter):
    """Shows nothing and keeps what it heard for the JSON at the end."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.warnings: list[str] = []

    def message(self, text: str) -> None:
        """Keep a line."""
        self.messages.append(text)

    def warning(self, text: str) -> None:
        """Keep a warning."""
        self.warnings.append(text)

    def loading(self) -> None:
        """Show that something is going on, until there is something to show."""


class LineReporter(SilentReporter):
    """Prints lines on stderr: every message, every evaluation, metrics every few seconds."""

    def __init__(self, opening: Callable[[], None]) -> None:
        super().__init__()
        self._opening: Callable[[], None] | None = opening
        self._began = 0.0
        self._told = 0.0
        self._total = 0
        self._done = 0

    def message(self, text: str) -> None:
        """Print a line."""
        super().message(text)
        self._open_first()
        echo_err(text)

    def warning(self, text: str) -> None:
        """Print a warning."""
        super().warning(text)
        self._open_first()
        warn(text)

    def _open_first(self) -> None:
        if self._opening is not None:
            opening, self._opening = self._opening, None
            opening()

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Print that a round begins."""
        self._began, self._told = time.monotonic(), 0.0
        self._total, self._done = steps, done
        which = f"round {round_number}: " if round_number else ""
        echo_err(f"{which}{steps:,} steps" + (f", {done:,} of them done" if done else ""))

    def line(self, line: Mapping[str, float]) -> None:
        """Print a line of metrics, the last of every few seconds."""
        now = time.monotonic()
        if now - self._told < _SECONDS_BETWEEN_LINES and line["step"] != self._total:
            return
        self._told = now
        step = int(line["step"])
        per_step = (now - self._began) / max(1, step - self._done)
        left = clock(per_step * (self._total - step))
        echo_err(
            f"step {step:,} of {self._total:,}: {', '.join(_losses(line))}, lr {line['lr']:.2e}, "
            f"{line['sentences_per_second']:,.0f} sentences/s, {left} left"
        )

    def scores(self, step: int, scores: Mapping[str, float], best: bool) -> None:
        """Print the scores of an evaluation."""
        if scores:
            echo_err(f"step {step:,}: {dev_in_short(scores)}{', the best so far' if best else ''}")

    def progress(self, done: int, total: int, what: str) -> None:
        """Print how far a part is, the last of every few seconds."""
        now = time.monotonic()
        if done == total or now - self._told >= _SECONDS_BETWEEN_LINES:
            self._told = now
            echo_err(f"{what}: {done:,} of {total:,}")


class BarReporter(LineReporter):
    """Draws a progress bar on the terminal, with the last metrics behind it and lines above."""

    def __init__(self, opening: Callable[[], None]) -> None:
        super().__init__(opening)
        self._bar: Progress | None = None
        self._task: Any = None
        self._what = self._metrics = self._dev = ""

    def loading(self) -> None:
        """Draw a bar without an end: torch and the encoder take seconds."""
        self._open("loading the model and the texts", None, 0)

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Draw the bar of a round."""
        self._open(f"round {round_number}" if round_number else "step", steps, done)

    def step(self, step: int) -> None:
        """Move the bar."""
        self._update(completed=step)

    def line(self, line: Mapping[str, float]) -> None:
        """Show the metrics behind the bar."""
        self._metrics = (  # which leaves room for the bar in 80 columns
            f"{' '.join(_losses(line, 3, 2))} {line['sentences_per_second']:,.0f} texts/s"
        )
        self._update(said=f"{self._metrics}{self._dev}")

    def scoring(self, names: Sequence[str]) -> None:
        """Say behind the bar what is scored."""
        if names:
            self._update(said=f"scoring {cleaned(', '.join(names))}")

    def scores(self, step: int, scores: Mapping[str, float], best: bool) -> None:
        """Print the scores of an evaluation above the bar."""
        super().scores(step, scores, best)
        self._dev = next((f" dev {v:.2f}" for k, v in scores.items() if "spearman" in k), "")
        self._update(said=f"{self._metrics}{self._dev}")

    def progress(self, done: int, total: int, what: str) -> None:
        """Draw how far a part is."""
        if self._bar is None or self._what != what:
            self._open(what, total, done)
        self._update(completed=done)
        if done >= total:
            self.end()

    def end(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            self._metrics = self._dev = ""

    def _update(self, **fields: Any) -> None:
        if self._bar is not None:
            self._bar.update(self._task, **fields)

    def _open(self, what: str, total: int | None, done: int) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self.end()
        self._what = what
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=10),
            *((MofNCompleteColumn(), TimeRemainingColumn(compact=True)) if total else ()),
            TextColumn("{task.fields[said]}", markup=False),
            console=console(err=True),
            transient=True,
        )
        self._task = self._bar.add_task(cleaned(what), total=total, completed=done, said="")
        self._bar.start()


def _losses(line: Mapping[str, float], digits: int = 4, places: int = 3) -> Iterator[str]:
    """Yield the loss, and how much nearer than the nearest negative the positive is.

    The margin still moves where a strong encoder's loss is nearly zero.
    """
    yield f"loss {line.get('loss', math.nan):.{digits}g}"
    margins = [value for name, value in line.items() if name.endswith(".positive_margin")]
    if margins:
        yield f"margin {margins[0]:.{places}f}"


def dev_in_short(scores: Mapping[str, float]) -> str:
    """Return the Spearman scores of an evaluation, or all where there are none."""
    chosen = {name: value for name, value in scores.items() if name.endswith(".spearman")}
    return ", ".join(f"{name} {value:.2f}" for name, value in (chosen or scores).items())


def clock(seconds: float) -> str:
    """Return a duration as ``m:ss`` or ``h:mm:ss``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
