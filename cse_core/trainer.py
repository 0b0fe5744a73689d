"""A training run: rounds, steps, scores, checkpoints, and the model at the end."""

from __future__ import annotations

import math
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cse_core import checkpoint as saved
from cse_core import distributed
from cse_core.assembly import Assembly
from cse_core.cadence import Cadence
from cse_core.checkpoint import Checkpoint
from cse_core.data import Corpus
from cse_core.engine import Engine, StepResult
from cse_core.errors import CseError
from cse_core.export import inference_choices, save_model
from cse_core.optimizer import Optimizer
from cse_core.passes import Moment
from cse_core.precision import Precision
from cse_core.randomness import generator
from cse_core.reporting import Reporter
from cse_core.rounds import Rounds, TrainingRound
from cse_core.rows import TrainingRows
from cse_core.run import METRICS, MetricsFile, RunFolder
from cse_core.scoring import Best, Scorer
from cse_core.settings import TrainOptions
from cse_core.stack import Stack


class Stopped(Exception):
    """A signal asked the run to stop; a checkpoint was written."""

    def __init__(self, step: int) -> None:
        super().__init__(f"stopped after step {step}")
        self.step = step


@dataclass
class Tally:
    """Losses and rows since the last line of metrics."""

    losses: list[Tensor] = field(default_factory=list)
    rows: int = 0
    tokens: int = 0
    seconds: float = 0.0


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


class Trainer:
    """Runs a composition.

    Args:
        assembly: The run's parts.
        corpus: The training rows.
        scorer: Scores the model at each evaluation.
        folder: The run's folder.
        precision: Number format of the encoder.
        reporter: Who hears of it.
        about: Facts for the model's README.
    """

    def __init__(
        self,
        assembly: Assembly,
        corpus: Corpus,
        scorer: Scorer,
        folder: RunFolder,
        precision: Precision,
        reporter: Reporter,
        about: dict[str, Any],
    ) -> None:
        self.assembly = assembly
        self.composition = assembly.composition
        self.corpus = corpus
        self.folder = folder
        self.precision = precision
        self.reporter = reporter
        self.about = about
        self.train = self.composition.train
        self.main = distributed.world()[0] == 0
        self.base = TrainingRows(corpus, self._longest())
        self.scorer = scorer
        self.rounds = Rounds(assembly, corpus, folder, self.encode, reporter)
        self._stop = False
        self._metrics: MetricsFile | None = None
        self._order: tuple[object, Tensor] = (None, torch.empty(0))

    # -- the run ----------------------------------------------------------------------------

    def run(self, resume: Checkpoint | None = None) -> Outcome:
        """Train all rounds and save the model.

        Args:
            resume: The checkpoint to go on from.

        Raises:
            Stopped: If the process was asked to stop.
            CseError: If the loss is no number any more.
        """
        began = time.monotonic()
        for part in self.assembly.parts.values():
            part.prepare(self.corpus)
        until = None
        if resume is not None:
            saved.restore_weights(self.assembly, resume)
            saved.restore_parts(self.assembly, resume)
            self.scorer.restore(resume.values["scores"])
            self.rounds.restore(resume.values["rounds"])
            until = resume.values["round"], resume.values["step"]
        if self.main:
            self._metrics = MetricsFile(self.folder.path / METRICS, until)
        steps = 0
        try:
            with self._signals():
                while (current := self.rounds.next(resume is not None)) is not None:
                    steps += self._round(current, resume)
                    resume = None
        finally:
            if self._metrics is not None:
                self._metrics.close()
        return self._finish(steps, time.monotonic() - began)

    def _round(self, current: TrainingRound, resume: Checkpoint | None) -> int:
        options = current.options(self.train)
        rows = (
            self.base
            if current.pairs is None
            else TrainingRows(self.corpus, self._longest(), current.pairs, self.base)
        )
        per_epoch = math.ceil(len(rows) / options.batch_size)
        total = options.max_steps or max(1, math.ceil(per_epoch * options.epochs))
        cadence = Cadence.of(options, total)
        engine = Engine(self.assembly, rows, self.precision, current.losses)
        optimizer = Optimizer(self.assembly, options, total)
        tally = Tally()
        step = 0
        if resume is not None:
            step = resume.values["step"]
            optimizer.restore(resume.part("optimizer"))
            engine.previous = saved.unpack_fields(resume, self.assembly.device)
            tally.losses = [torch.tensor(loss) for loss in resume.values["losses"]]
        else:
            self.scorer.of_round = Best()
        self.reporter.begin(current.number, total, step)
        if len(rows) < options.batch_size:
            self.reporter.warning(
                f"train.batch_size is {options.batch_size} but there are {len(rows)} rows: "
                "each step takes them all"
            )
        while step < total:
            epoch, place = divmod(step, per_epoch)
            index = self._batch(options, rows, current.number, epoch, place)
            ledger = (step + 1) % cadence.log == 0
            began = time.perf_counter()
            now = step
            result = engine.step(
                index,
                Moment(step, total, epoch, current.number),
                lambda now=now: optimizer.update(now),  # type: ignore[misc]
                ledger=ledger,
            )
            tally.seconds += time.perf_counter() - began
            tally.losses.append(result.loss)
            tally.rows += len(index)
            tally.tokens += result.tokens
            step += 1
            self.reporter.step(step)
            last = step == total
            scores = self._evaluate(step, current) if cadence.evaluates(step, last) else None
            if step % cadence.log == 0 or last or scores is not None:
                self._log(step, current.number, result, optimizer, tally, scores)
            if step == 10:
                self._warn_unchanged(engine)
            stopping = self._stop or self._enough(current.patience(options))
            if cadence.saves(step, last) or self._stop or stopping:
                self._save(step, current.number, optimizer, engine, tally)
            if self._stop:
                raise Stopped(step)
            if stopping:
                self.reporter.message(
                    f"no better {self.scorer.select} in {self.scorer.of_round.waited} "
                    "evaluations: stopped"
                )
                break
        self.reporter.end()
        best = self.scorer.of_round
        if current.number:
            if best.score is not None:
                saved.restore_weights(
                    self.assembly, Checkpoint.read(self.folder.best(current.number))
                )
            self.rounds.finished(best.score)
        return step

    def _batch(
        self, options: TrainOptions, rows: TrainingRows, number: int, epoch: int, place: int
    ) -> Tensor:
        start = place * options.batch_size
        stop = min(start + options.batch_size, len(rows))
        key = (rows, number, epoch)
        if self._order[0] != key:
            draws = generator(torch.device("cpu"), options.seed, number, "order", epoch)
            order = torch.arange(len(rows))
            if self.composition.data.shuffle:
                order = torch.randperm(len(rows), generator=draws)
            self._order = key, order
        return self._order[1][start:stop]

    # -- scores -----------------------------------------------------------------------------

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Return ``[N, D]`` vectors of the current model as the saved one would encode."""
        with self.precision.autocast():
            return self._inference_stack().encode(texts, self.assembly.device)

    def _inference_stack(self) -> Stack:
        _, heads, slicer = inference_choices(self.composition)
        kept = {choice.name for choice in heads}
        stack = self.assembly.stack
        return replace(
            stack,
            pooler=self.assembly.inference_pool or stack.pooler,
            heads={name: head for name, head in stack.heads.items() if name in kept},
            slicer=stack.slicer if slicer is not None else None,
        )

    def _evaluate(self, step: int, current: TrainingRound) -> dict[str, float]:
        scores, better = self.scorer.score(self.encode, step, current.number, current.score)
        if better and self.main:
            Checkpoint(saved.weights(self.assembly), {"step": step, **scores}).write(
                self.folder.best(current.number)
            )
        for warning in self.scorer.collapsed(scores):
            self.reporter.warning(warning)
        self.reporter.scores(step, scores, better)
        return scores

    def _enough(self, patience: int | None) -> bool:
        return patience is not None and self.scorer.of_round.waited >= patience

    # -- what is written ----------------------------------------------------------------------

    def _log(
        self,
        step: int,
        number: int,
        result: StepResult,
        optimizer: Optimizer,
        tally: Tally,
        scores: dict[str, float] | None,
    ) -> None:
        losses = torch.stack([loss.float().cpu() for loss in tally.losses])
        line: dict[str, Any] = {
            "step": step,
            "round": number,
            "loss": float(losses.mean()),
            "lr": optimizer.learning_rate(step - 1),
            "sentences_per_second": tally.rows / max(tally.seconds, 1e-9),
            "tokens_per_second": tally.tokens / max(tally.seconds, 1e-9),
        }
        if result.norm is not None:
            line["gradient_norm"] = float(result.norm)
        for source in (result.parts, result.logged):
            line.update({name: float(value) for name, value in source.items()})
        line.update(scores or {})
        if self._metrics is not None:
            self._metrics.write(line)
        self.reporter.line(line)
        tally.losses, tally.rows, tally.tokens, tally.seconds = [], 0, 0, 0.0
        if not bool(torch.isfinite(losses).all()):
            raise CseError(
                f"the loss is no finite number any more (before step {step})",
                where="train",
                value=line["loss"],
                hint="lower train.lr, or use --set train.precision=fp32; resuming goes on from "
                "the last checkpoint",
            )

    def _save(
        self, step: int, number: int, optimizer: Optimizer, engine: Engine, tally: Tally
    ) -> None:
        if not self.main:
            return
        tensors, values = saved.part_states(self.assembly)
        tensors.update(saved.weights(self.assembly))
        tensors.update({f"optimizer.{n}": v for n, v in optimizer.state().items()})
        tensors.update(saved.pack_fields(engine.previous))
        Checkpoint(
            tensors,
            {
                "step": step,
                "round": number,
                "scores": self.scorer.state(),
                "rounds": self.rounds.state(),
                "parts": values,
                "losses": [float(loss) for loss in tally.losses],
            },
        ).write(self.folder.checkpoint(number, step))
        for old in self.folder.checkpoints()[:-2]:
            shutil.rmtree(old, ignore_errors=True)

    def _finish(self, steps: int, seconds: float) -> Outcome:
        best, select = self.scorer.of_run, self.scorer.select
        chosen = best.score is not None
        if chosen:
            saved.restore_weights(self.assembly, Checkpoint.read(self.folder.best(best.round)))
        else:
            self.reporter.message("no dev set chose a checkpoint: the last weights are kept")
        step = best.step if chosen else steps
        about = {
            **self.about,
            "chosen": f"step {step} by {select} = {best.score:.2f}"
            if best.score is not None
            else f"step {step}, the last",
        }
        outcome = Outcome(
            model=self.folder.model,
            steps=steps,
            step=step,
            round=best.round,
            chosen_by=select if chosen else None,
            score=best.score,
            scores=best.scores,
            seconds=seconds,
        )
        if self.main:
            save_model(self.assembly, self.folder.model, about=about)
            self.folder.write_result(
                {**asdict(outcome), "model": "model", "seconds": round(seconds, 1)}
            )
            self.folder.link_latest()
        return outcome

    # -- what is noticed ----------------------------------------------------------------------

    def _warn_unchanged(self, engine: Engine) -> None:
        for path, count in engine.builder.unchanged().items():
            self.reporter.warning(f"{path} changed nothing in {count} calls: is its rate too low?")

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Finish the step and write a checkpoint when asked to stop."""

        def stop(number: int, frame: object) -> None:
            if self._stop:
                raise KeyboardInterrupt
            self._stop = True

        before: dict[signal.Signals, Any] = {}
        try:
            for wanted in (signal.SIGINT, signal.SIGTERM):
                before[wanted] = signal.signal(wanted, stop)
        except ValueError:
            pass
        try:
            yield
        finally:
            for wanted, handler in before.items():
                signal.signal(wanted, handler)

    def _longest(self) -> int:
        return self.composition.model.max_length
