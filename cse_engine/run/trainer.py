"""A training run: rounds, steps, scores, checkpoints, and the model at the end."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from cse_core.files import METRICS, RESULT, RUN_FILE
from cse_core.suites import Role
from cse_engine.run import checkpoint as saved
from cse_engine.run.checkpoint import RESTORE, Checkpoint
from cse_engine.run.export import inference_encoder, save_model
from cse_engine.run.intervals import Intervals
from cse_engine.run.loop import TrainingLoop
from cse_engine.run.prepare import Prepared
from cse_engine.run.rounds import Rounds, RoundState, TrainingRound
from cse_engine.run.run_folder import RunFolder, place_of
from cse_engine.run.selection import BESTS, Best, choose
from cse_engine.run.signals import Stopped, StopSignals
from cse_engine.runtime import distributed
from cse_engine.step.step import StepResult
from cse_engine.step.views import MAX_WATCHED_CALLS

FIRST_STEPS = 10
"""Steps in which every encoder, pooler and loss has had a gradient."""


class Meters:
    """Losses, rows, tokens and seconds since the last line of metrics, ``losses`` from before.

    Nothing waits for the device until :meth:`flush`.
    """

    def __init__(self, losses: Sequence[float], device: torch.device) -> None:
        self.losses = [torch.tensor(loss, device=device) for loss in losses]
        self.rows = self.tokens = 0
        self.seconds = 0.0
        self._began = time.perf_counter()

    def add(self, result: StepResult) -> None:
        """Count a step."""
        self.losses.append(result.loss.float())
        self.rows += result.rows
        self.tokens += result.tokens

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count no seconds meanwhile: what happens does not belong to training."""
        self.seconds += time.perf_counter() - self._began
        yield
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
    """The outcome of a run.

    Attributes:
        steps: Of all rounds; ``step`` and ``round`` are those of the chosen weights.
        chosen_by: Name of the score that chose them; None where the last were kept.
        score: Its value; ``start`` is that before the first step, None where it was not scored.
        scores: All dev scores of the chosen weights.
        verdicts: A sentence for each dev set that compares the chosen weights with the start.
    """

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
        self.rounds = Rounds(prepared, folder, self.encode, self.encode_in_training)
        self._main = distributed.rank_and_size()[0] == 0
        self._signals = StopSignals(partial(self.reporter.message, "stopping after this step"))
        self._metrics: list[str] = []
        self._moments: dict[str, Tensor] = {}
        self._needed: set[tuple[int, ...]] = {(0, 0)}

    def run(self, resume: Checkpoint | None = None) -> Outcome:
        """Train all rounds, from a checkpoint on where one is given, and save the model.

        Raises:
            Stopped: If the process was asked to stop.
            CseError: If the loss is not finite any more.
        """
        began = time.monotonic()
        if resume is not None:
            self.restore(resume)
            for name, values in resume.values["scores"].items():
                setattr(self.scorer, name, Best(**values))
            for best in self._candidates():
                self._weights(best)
            self._needed = self._places(resume.values["round"], resume.values["step"])
            self._metrics = [resume.files.get(METRICS, b"").decode()]
        if self._main:
            self.folder.write(METRICS, "".join(self._metrics).encode())
        with self._signals:
            for current in self.rounds.run(resume is not None):
                done = self._round(current, resume)
                self.rounds.state.steps += done
                self.rounds.state.scheduled += done
                resume = None
        return self._finish(time.monotonic() - began)

    def restore(self, resume: Checkpoint) -> None:
        """Put weights and parts back, and go on with the rounds from there."""
        saved.restore_assembly(self.assembly, resume)
        self.rounds.state = RoundState(**resume.values["rounds"])

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
        if resume is None:
            self.scorer.of_round = Best()
            if current.keep_optimizer:
                loop.optimizer.restore(self._moments)
            if current.number:
                # What was mined is never mined again, and the miner's own state goes with it.
                self._save(loop)
        loop.engine.builder.tokenise(self.reporter)
        self.reporter.begin(current.number, loop.total, loop.done)
        self._steps(loop, resume.values["losses"] if resume else ())
        if not loop.over:
            count = self.scorer.of_round.evals_since_best
            self.reporter.message(f"no better {self.scorer.select} in {count} evaluations: stopped")
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
            save_model(self.assembly, folder, chosen=why)

    def _steps(self, loop: TrainingLoop, losses: Sequence[float]) -> None:
        """Make the steps of a round; after them come lines, scores and checkpoints.

        ``losses`` are those since the last line of metrics.
        """
        intervals = Intervals.of(loop.options, loop.total)
        patience = intervals.evaluations(loop.options.patience, loop.batches.per_epoch)
        scored = bool(self.scorer.dev)
        begins = not (loop.over or loop.done or self.rounds.state.steps)
        if scored and intervals.evaluate and begins:
            self._evaluate(loop)
            if loop.options.select_start:
                self._save(loop)
        meters = Meters(losses, self.assembly.device)
        while not (loop.over or self._enough(patience)):
            logged = intervals.due(loop.done + 1, scored=scored).log
            result = loop.step(count_negatives=logged)
            meters.add(result)
            self.reporter.step(loop.done)
            if loop.done == min(FIRST_STEPS, loop.total):
                loop.refuse_untrained()
                for path, count in loop.engine.builder.unchanged.items():
                    if count > 0:
                        what = f"{path} changed nothing in {count} calls: is its rate too low?"
                        self.reporter.warning(what)
            if loop.done == min(MAX_WATCHED_CALLS, loop.total) and not loop.resumed:
                for warning in loop.idle():
                    self.reporter.warning(warning)
            due = intervals.due(loop.done, scored=scored)
            stopping = distributed.all_reduce_sum(int(self._signals.asked)) > 0
            if not (due.log or due.save or stopping):
                continue
            loop.refuse_not_finite(self.folder.path)
            with meters.paused():
                scores, better = self._evaluate(loop) if due.score else ({}, False)
                if due.log:
                    line = self._log(loop, result, meters, scores)
                    sizes = {name: dev_set.size for name, dev_set in self.scorer.dev.items()}
                    if not sizes and loop.done >= intervals.evaluate:
                        sizes = {"batch": len(result.anchors)}
                    for warning in self.reporter.check(line, sizes):
                        self.reporter.warning(warning)
                if due.save or stopping or better or self._enough(patience):
                    self._save(loop, meters.losses)
            if stopping:
                # A launcher that sees one process end stops the one that writes.
                distributed.barrier()
                raise Stopped(loop.done)

    def encode(self, texts: Sequence[str], role: Role | None = None) -> Tensor:
        """Encode texts by the current model as the saved one would: ``[N, D]``."""
        with self.prepared.precision.autocast():
            online = inference_encoder(self.assembly, role)
            return online.encode(texts, self.assembly.device, shared=True)

    def encode_in_training(self, texts: Sequence[str], branch: str = "online") -> Tensor:
        """Encode texts by a branch as in training, without dropout: ``[N, D]``.

        Raises:
            KeyError: If the run has no such branch.
        """
        encoder = self.assembly.encoders[branch]
        if not encoder.finished:
            encoder = replace(encoder, normalize=False, truncate_dim=None)
        with self.prepared.precision.autocast():
            return encoder.encode(texts, self.assembly.device, shared=True)

    def _evaluate(self, loop: TrainingLoop) -> tuple[dict[str, float], bool]:
        """Score the dev sets; the scores, and whether they are the round's best."""
        step = loop.done
        self.reporter.scoring(list(self.scorer.dev))
        scores, better = self.scorer.score(
            self.encode, step, loop.current.number, self.assembly.of("metric")
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
        self._metrics.append(json.dumps(line, allow_nan=False) + "\n")
        if self._main:
            self.folder.append(self._metrics[-1])
        self.reporter.line(line)
        return line

    def checkpoint(self, loop: TrainingLoop, losses: Sequence[Tensor] = ()) -> Checkpoint:
        """Collect what a run goes on from, with the losses since the last line of metrics."""
        checkpoint = loop.checkpoint()
        checkpoint.values.update(
            round=loop.current.number,
            scores={name: asdict(getattr(self.scorer, name)) for name in BESTS},
            rounds=asdict(self.rounds.state),
            losses=[float(loss) for loss in losses],
        )
        checkpoint.files[RUN_FILE] = self.settings
        return checkpoint

    def _save(self, loop: TrainingLoop, losses: Sequence[Tensor] = ()) -> None:
        """Write a checkpoint, and remove those that neither a resume nor the end needs any more.

        The last two stay, with the best weights that each rests on, and that of the beginning.
        """
        checkpoint, last = self.checkpoint(loop, losses), (loop.current.number, loop.done)
        if not self._main:
            return
        checkpoint.files[METRICS] = "".join(self._metrics).encode()
        checkpoint.write(self.folder.checkpoint(*last))
        before, self._needed = self._needed, self._places(*last)
        for path in self.folder.checkpoints():
            if place_of(path) <= last and place_of(path) not in before | self._needed:
                shutil.rmtree(path, ignore_errors=True)

    def _places(self, *last: int) -> set[tuple[int, ...]]:
        """Collect rounds and steps of what a checkpoint rests on: itself and the best so far."""
        return {last, *(best.place for best in self._candidates())}

    def _weights(self, best: Best) -> Checkpoint:
        """Read the best weights so far, also before the first step: damaged ones are refused."""
        return Checkpoint.read(self.folder.checkpoint(*best.place), RESTORE, weights=True)

    def _candidates(self) -> list[Best]:
        """List what the end may choose from: the best so far, and the start where it counts."""
        start = [self.scorer.start] if self.options.select_start else []
        bests = [self.scorer.of_round, self.scorer.of_run, *start]
        return [best for best in bests if best.score is not None]

    def _reject(self, why: str) -> None:
        """Save weights that the verdict rejects beside the model."""
        folder = self.folder.path / "rejected" / self.folder.model.name
        self.reporter.message(f"the rejected weights are in {folder}")
        save_model(self.assembly, folder, chosen=why)

    def _finish(self, seconds: float) -> Outcome:
        """Choose the weights, save the model, and mark the run as finished."""
        distributed.barrier()
        scorer, steps = self.scorer, self.rounds.state.steps
        if scorer.of_run.score is not None:
            best, why, verdicts = choose(
                scorer,
                self.options,
                read=self._weights,
                restore=partial(saved.restore_weights, self.assembly),
                reject=self._reject,
                encode=self.encode,
                metrics=self.assembly.of("metric"),
            )
        else:
            self.reporter.message("no dev set chose a checkpoint: the last weights are kept")
            best = replace(scorer.of_run, step=steps, round=self.rounds.state.number)
            why, verdicts = f"step {steps}, the last", ()
        outcome = Outcome(
            steps=steps,
            step=best.step,
            round=best.round,
            chosen_by=None if best.score is None else scorer.select,
            score=best.score,
            scores=best.scores,
            seconds=seconds,
            start=scorer.start.score,
            verdicts=verdicts,
        )
        why_not = save_model(self.assembly, self.folder.model, chosen=why)
        if why_not is not None:
            self.reporter.warning(f"sentence-transformers needs cse to read the model: {why_not}")
        if self._main:
            if not self.options.keep_checkpoints:
                saved.forget(self.folder, self.settings)
            result = {**asdict(outcome), "seconds": round(seconds, 1)}
            self.reporter.finish(self.folder.path, result)
            self.folder.write(RESULT, (json.dumps(result, indent=2) + "\n").encode())
        return outcome
