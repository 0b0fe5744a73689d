"""A training run: rounds, steps, scores, checkpoints, and the model at the end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from io import FileIO
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cse_core.files import METRICS, RUN_FILE, disk_errors
from cse_core.suites import Role
from cse_engine.run import checkpoint as saved
from cse_engine.run.checkpoint import Checkpoint, Retention, check_best
from cse_engine.run.choice import Choice, choose
from cse_engine.run.export import inference_encoder, save_model
from cse_engine.run.guard import FIRST_STEPS, refuse_not_finite, refuse_untrained
from cse_engine.run.intervals import Intervals
from cse_engine.run.loop import TrainingLoop
from cse_engine.run.prepare import Prepared
from cse_engine.run.rounds import Rounds, RoundState, TrainingRound
from cse_engine.run.run_folder import RunFolder
from cse_engine.run.selection import Best
from cse_engine.run.signals import Stopped, StopSignals
from cse_engine.runtime import distributed
from cse_engine.step.step import StepResult


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
        """Count a step."""
        self.losses.append(result.loss.float())
        self.seen.update(result.parts)
        self.rows += result.rows
        self.tokens += result.tokens

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count no seconds meanwhile: what happens does not belong to training."""
        self.seconds += time.perf_counter() - self._began
        yield
        self.start()

    def start(self) -> None:
        """Count seconds from here."""
        self._began = time.perf_counter()

    def flush(self) -> dict[str, Any]:
        """Return the mean loss and the speeds, and count from nothing; every process calls it."""
        seconds = max(self.seconds, 1e-9)
        tokens = distributed.all_reduce_sum(self.tokens)
        line = {"loss": float(torch.stack(self.losses).mean())} if self.losses else {}
        line |= {"sentences_per_second": self.rows / seconds, "tokens_per_second": tokens / seconds}
        self.losses, self.rows, self.tokens, self.seconds = [], 0, 0, 0.0
        return line


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        steps: Of all rounds; ``step`` and ``round`` are those of the chosen weights.
        chosen_by: Name of the score that chose them; None where the last were kept.
        score: Its value; ``start`` is that before the first step, None where it was not scored.
        scores: All dev scores of the chosen weights.
        verdicts: What the dev sets say of the chosen weights beside the start's, a sentence each.
    """

    model: Path
    steps: int
    step: int
    round: int
    chosen_by: str | None
    score: float | None
    scores: dict[str, float]
    seconds: float
    start: float | None = None
    verdicts: tuple[str, ...] = ()


class Trainer:
    """Trains what was prepared, into a run's folder.

    Args:
        prepared: The model, the data and the parts, which have seen it.
        folder: Of the run, begun.
        settings: What ``run.toml`` holds; every checkpoint keeps a copy.
    """

    def __init__(self, prepared: Prepared, folder: RunFolder, settings: bytes = b"") -> None:
        self.prepared, self.folder, self.settings = prepared, folder, settings
        self.reporter = prepared.reporter
        self.assembly, self.scorer = prepared.assembly, prepared.scorer
        self.options = prepared.composition.train
        self.rounds = Rounds(prepared, folder, self.encode)
        self.steps_before = 0
        self._main = distributed.rank_and_size()[0] == 0
        self._signals = StopSignals(partial(self.reporter.message, "stopping after this step"))
        self._metrics: FileIO | None = None
        self._moments: dict[str, Tensor] = {}
        self._retention = Retention(folder, (0, 0), ())

    def run(self, resume: Checkpoint | None = None) -> Outcome:
        """Train all rounds, from a checkpoint on where one is given, and save the model.

        Raises:
            Stopped: If the process was asked to stop.
            CseError: If the loss is not finite any more.
        """
        began = time.monotonic()
        if resume is not None:
            self.restore(resume)
            self.scorer.bests = {n: Best(**best) for n, best in resume.values["scores"].items()}
            check_best(self.folder, self._candidates())
            last = resume.values["round"], resume.values["step"]
            self._retention = Retention(self.folder, last, self._candidates())
        with ExitStack() as stack:
            if self._main:
                lines = resume.files.get(METRICS, b"") if resume is not None else b""
                self._metrics = stack.enter_context(self.folder.open_metrics(lines))
            stack.enter_context(self._signals)
            for current in self.rounds.run(resume is not None):
                done = self._round(current, resume)
                self.steps_before += done
                self.rounds.state.scheduled += done
                resume = None
        return self._finish(time.monotonic() - began)

    def restore(self, resume: Checkpoint) -> None:
        """Put weights and parts back, and go on with the rounds from there."""
        saved.restore_assembly(self.assembly, resume)
        self.rounds.state = RoundState(**resume.values["rounds"])
        self.steps_before = resume.values["steps_before"]

    def begin(self, current: TrainingRound, resume: Checkpoint | None) -> TrainingLoop:
        """Show the parts a round, and make its loop, from a checkpoint on where one is given."""
        rows, state = self.rounds.begin(current), self.rounds.state
        if not current.keep_schedule:
            state.scheduled = 0
        precision = self.prepared.precision
        loop = TrainingLoop(self.assembly, current, rows, precision, state.scheduled)
        if resume is not None:
            loop.restore(resume)
        return loop

    def _round(self, current: TrainingRound, resume: Checkpoint | None) -> int:
        """Train a round, put its best weights back, and return the number of its steps."""
        loop = self.begin(current, resume)
        meters = Meters(resume.values["losses"] if resume else [], self.assembly.device)
        if resume is None:
            self.scorer.of_round = Best()
            if current.keep_optimizer:
                loop.optimizer.restore(self._moments)
            if current.number:
                # What was mined is never mined again, and the miner's own state goes with it.
                self._save(loop, meters)
        loop.engine.builder.tokenise(self.reporter)
        self.reporter.begin(current.number, loop.total, loop.done)
        if len(loop.rows) < loop.options.batch_size:
            self.reporter.warning(
                f"train.batch_size is {loop.options.batch_size} but there are {len(loop.rows)} "
                "rows: each step takes them all"
            )
        self._steps(loop, meters)
        for line in loop.idle(meters.seen) if meters.seen else ():
            self.reporter.warning(line)
        if not loop.over:
            self.reporter.message(
                f"no better {current.score or self.scorer.select} in "
                f"{self.scorer.of_round.evals_since_best} evaluations: stopped"
            )
        self.reporter.end()
        self.scorer.end_round()
        if current.number:
            self._end_round(loop)
        return loop.done

    def _end_round(self, loop: TrainingLoop) -> None:
        """Put the best weights of a mined round back, and save its model."""
        best, number = self.scorer.of_round, loop.current.number
        self._moments = loop.optimizer.state()
        distributed.barrier()
        if best.score is not None:
            saved.restore_weights(self.assembly, self._weights(best))
        self.rounds.state.scores.append(best.score)
        if loop.options.save_rounds:
            why = f"round {number}, step {best.step or loop.done}"
            folder = self.folder.round(number) / self.folder.model.name
            save_model(self.assembly, folder, about={**self.prepared.about, "chosen": why})

    def _steps(self, loop: TrainingLoop, meters: Meters) -> None:
        """Make the steps of a round; after them come lines, scores and checkpoints."""
        intervals = Intervals.of(loop.options, loop.total)
        patience = intervals.evaluations(loop.options.patience, loop.batches.per_epoch)
        scored = bool(self.scorer.dev)
        if scored and intervals.evaluate and not (loop.over or loop.done or self.steps_before):
            self._evaluate(loop)
            if loop.options.select_start:
                self.scorer.of_round = replace(self.scorer.start)
                self._save(loop, meters)
        meters.start()
        while not (loop.over or self._enough(patience)):
            result = loop.step(count_negatives=(loop.done + 1) % intervals.log == 0)
            meters.add(result)
            self.reporter.step(loop.done)
            if loop.done == min(FIRST_STEPS, loop.total):
                self._check_first_steps(loop, meters)
            due = intervals.due(loop.done, scored=scored)
            stopping = distributed.all_reduce_sum(int(self._signals.asked)) > 0
            if not (due.log or due.save or stopping):
                continue
            refuse_not_finite(loop, self.folder.path)
            with meters.paused():
                scores, better = self._evaluate(loop) if due.score else ({}, False)
                if due.log:
                    line = self._log(loop, result, meters, scores)
                    self._warn(line, result, loop.done >= intervals.evaluate)
                if due.save or stopping or better or self._enough(patience):
                    self._save(loop, meters)
            if stopping:
                # A launcher that sees one process end stops the one that writes.
                distributed.barrier()
                raise Stopped(loop.done)

    def encode(self, texts: Sequence[str], role: Role | None = None) -> Tensor:
        """Encode texts by the current model as the saved one would: ``[N, D]``."""
        with self.prepared.precision.autocast():
            online = inference_encoder(self.assembly, role)
            return online.encode(texts, self.assembly.device, shared=True)

    def _evaluate(self, loop: TrainingLoop) -> tuple[dict[str, float], bool]:
        """Score the dev sets; the scores, and whether they are the round's best."""
        current, step = loop.current, loop.done
        self.reporter.scoring(list(self.scorer.dev))
        scores, better = self.scorer.score(
            self.encode, step, current.number, current.score, self.assembly.of("metric")
        )
        self.reporter.scores(step, scores, better)
        for name in set(self.scorer.names) - scores.keys():
            self.reporter.message(f"{name} is not defined at step {step}, so it chooses nothing")
        return scores, better

    def _enough(self, patience: int | None) -> bool:
        return patience is not None and self.scorer.of_round.evals_since_best >= patience

    def _log(
        self, loop: TrainingLoop, result: StepResult, meters: Meters, scores: dict[str, float]
    ) -> dict[str, float]:
        """Write a line of metrics, and return it; every process calls it."""
        line: dict[str, Any] = {
            "step": loop.done,
            "round": loop.current.number,
            "lr": loop.options.lr * loop.optimizer.rate(loop.scheduled + loop.done - 1),
            **meters.flush(),
        }
        if result.norm is not None:
            line["gradient_norm"] = float(result.norm)
        for source in (result.parts, result.logged):
            line.update({name: float(value) for name, value in source.items()})
        line |= {**scores, **self.reporter.measure(result.anchors)}
        line = {name: value for name, value in line.items() if isfinite(value)}
        if self._metrics is not None:
            rest = (json.dumps(line, allow_nan=False) + "\n").encode()
            with disk_errors(self.folder.metrics):
                while rest:
                    rest = rest[self._metrics.write(rest) :]
        self.reporter.line(line)
        return line

    def _warn(self, line: dict[str, float], result: StepResult, evaluated: bool) -> None:
        """Warn of what a reporter sees in a line: of the dev sets, or without any of the batch."""
        sizes = {name: dev_set.size for name, dev_set in self.scorer.dev.items()}
        if not sizes and evaluated:
            sizes = {"batch": len(result.anchors)}
        for warning in self.reporter.check(line, sizes):
            self.reporter.warning(warning)

    def _check_first_steps(self, loop: TrainingLoop, meters: Meters) -> None:
        """Refuse what learned nothing so far, and name parts that changed nothing."""
        refuse_untrained(loop, meters.seen)
        for path, count in loop.engine.builder.unchanged().items():
            self.reporter.warning(f"{path} changed nothing in {count} calls: is its rate too low?")

    def checkpoint(self, loop: TrainingLoop, losses: Sequence[Tensor] = ()) -> Checkpoint:
        """Collect what a run goes on from, with the losses since the last line of metrics."""
        checkpoint = loop.checkpoint()
        checkpoint.values.update(
            round=loop.current.number,
            steps_before=self.steps_before,
            scores={name: asdict(best) for name, best in self.scorer.bests.items()},
            rounds=asdict(self.rounds.state),
            losses=[float(loss) for loss in losses],
        )
        checkpoint.files[RUN_FILE] = self.settings
        return checkpoint

    def _save(self, loop: TrainingLoop, meters: Meters) -> None:
        checkpoint, place = self.checkpoint(loop, meters.losses), (loop.current.number, loop.done)
        if not self._main:
            return
        if self._metrics is not None:
            self._metrics.seek(0)
            checkpoint.files[METRICS] = self._metrics.read()
        checkpoint.write(self.folder.checkpoint(*place))
        self._retention.saved(place, self._candidates())

    def _weights(self, best: Best) -> Checkpoint:
        return Checkpoint.read(self.folder.checkpoint(*best.place))

    def _candidates(self) -> list[Best]:
        """List what the end may choose from: the best so far, and the start where it counts."""
        start = [self.scorer.start] if self.options.select_start else []
        bests = [self.scorer.of_round, self.scorer.of_run, *start]
        return [best for best in bests if best.score is not None]

    def _finish(self, seconds: float) -> Outcome:
        """Choose the weights, save the model, and mark the run as finished."""
        distributed.barrier()
        scorer, steps = self.scorer, self.steps_before
        if scorer.of_run.score is not None:
            choice = choose(
                scorer,
                self.options,
                read=self._weights,
                restore=partial(saved.restore_weights, self.assembly),
                encode=self.encode,
                metrics=self.assembly.of("metric"),
            )
        else:
            self.reporter.message("no dev set chose a checkpoint: the last weights are kept")
            last = replace(scorer.of_run, step=steps, round=self.rounds.state.number)
            choice = Choice(last, f"step {steps}, the last")
        best = choice.best
        outcome = Outcome(
            model=self.folder.model,
            steps=steps,
            step=best.step,
            round=best.round,
            chosen_by=None if best.score is None else scorer.select,
            score=best.score,
            scores=best.scores,
            seconds=seconds,
            start=scorer.start.score,
            verdicts=choice.verdicts,
        )
        about = {**self.prepared.about, "chosen": choice.why}
        save_model(self.assembly, self.folder.model, about=about)
        if self._main:
            result = {**asdict(outcome), "model": "model", "seconds": round(seconds, 1)}
            self.reporter.finish(self.folder.path, result)
            self.folder.finish(result)
        return outcome
