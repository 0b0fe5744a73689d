"""A training run: rounds, steps, scores, checkpoints, and the model at the end."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from io import FileIO
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cse_core.errors import CseError, PartError
from cse_core.files import METRICS, RUN_FILE, atomic_write, disk_errors
from cse_core.protocols import Corpus
from cse_core.reporter import Reporter
from cse_core.suites import Role
from cse_engine.run import checkpoint as saved
from cse_engine.run.checkpoint import Checkpoint, check_best, not_finite
from cse_engine.run.choice import Choice, choose
from cse_engine.run.export import inference_encoder, save_model
from cse_engine.run.intervals import Intervals
from cse_engine.run.loop import TrainingLoop
from cse_engine.run.rounds import ROUND_STATE, Rounds, TrainingRound
from cse_engine.run.run_folder import RunFolder, place_of
from cse_engine.run.selection import Best, Scorer
from cse_engine.run.signals import Stopped, StopSignals
from cse_engine.runtime import distributed
from cse_engine.runtime.device import Precision
from cse_engine.step.assembly import Assembly
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


@dataclass
class Trainer:
    """Runs a composition.

    Attributes:
        about: Facts for the model's README.
        settings: What ``run.toml`` holds; every checkpoint keeps a copy.
        describe: Called with the run's folder and result when the model is saved, before the run
            counts as finished.
        callback: Looks at vectors and scores whenever metrics are written.
    """

    assembly: Assembly
    corpus: Corpus
    scorer: Scorer
    folder: RunFolder
    precision: Precision
    reporter: Reporter
    about: dict[str, Any]
    settings: bytes = b""
    describe: Callable[[Path, Mapping[str, Any]], None] = lambda folder, result: None
    callback: Callback = field(default_factory=Callback)

    def __post_init__(self) -> None:
        """Begin with nothing trained."""
        self.composition = self.assembly.composition
        self.main = distributed.rank_and_size()[0] == 0
        self.rounds = Rounds(self.assembly, self.corpus, self.folder, self.encode, self.reporter)
        self._signals = StopSignals(partial(self.reporter.message, "stopping after this step"))
        self._metrics: FileIO | None = None
        self.steps_before = 0
        self._moments: dict[str, Tensor] = {}
        self._kept: list[set[tuple[int, ...]]] = [{(0, 0)}]

    def prepare(self) -> None:
        """Try what would stop the first step, and let every part see the corpus; writes nothing.

        Once, and before the run's folder is begun, so that a mistake leaves none: a prompt that
        leaves no place for a text, a corpus that a part cannot use.
        """
        encoders = [(self.assembly.encoders[v.branch], v.name) for v in self.composition.views]
        for sentence_encoder, view in [*encoders, (inference_encoder(self.assembly), "anchor")]:
            sentence_encoder.rows(sentence_encoder.tokenizer.content([""]), view)
        row, heads, slicer = self.composition.inference_parts
        encode = {planned.path for planned in (row, *heads, slicer) if planned is not None}
        for path, part in self.assembly.parts.items():
            before = dict(vars(part))
            part.prepare(self.corpus)
            for name, value in vars(part).items() if path in encode else ():
                new = before.get(name) is not value
                if new and isinstance(value, Tensor | np.ndarray | nn.Module):
                    what = f"sets {name}, which no saved model holds: make it a buffer of a module"
                    raise PartError(part, "prepare", what)
        saved.part_states(self.assembly)  # one that cannot be saved is found before any work

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
            self._kept = [self._places(resume.values["round"], resume.values["step"])]
        with ExitStack() as stack:
            if self.main:
                lines = resume.files.get(METRICS, b"") if resume is not None else b""
                self._metrics = stack.enter_context(self.folder.open_metrics(lines))
            stack.enter_context(self._signals)
            for current in self.rounds.each(resume is not None):
                done = self._round(current, resume)
                self.steps_before += done
                self.rounds.scheduled += done
                resume = None
        return self._finish(time.monotonic() - began)

    def restore(self, resume: Checkpoint) -> None:
        """Put weights and parts back, and go on with the rounds from there."""
        saved.restore_assembly(self.assembly, resume)
        vars(self.rounds).update(resume.values["rounds"])
        self.steps_before = resume.values["steps_before"]

    def begin(self, current: TrainingRound, resume: Checkpoint | None) -> TrainingLoop:
        """Show the parts a round, and return its steps, from a checkpoint on where one is given."""
        rows = self.rounds.begin(current)
        if not current.keep_schedule:
            self.rounds.scheduled = 0
        scheduled = self.rounds.scheduled
        loop = TrainingLoop(self.assembly, current, rows, self.precision, scheduled)
        if resume is not None:
            loop.restore(resume)
        return loop

    def _round(self, current: TrainingRound, resume: Checkpoint | None) -> int:
        """Train a round and put its best weights back; returns how many steps it made."""
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
        best = self.scorer.of_round
        if current.number:
            self._moments = loop.optimizer.state()
            distributed.barrier()
            if best.score is not None:
                saved.restore_weights(
                    self.assembly, Checkpoint.read(self.folder.checkpoint(*best.place))
                )
            self.rounds.scores.append(best.score)
            if loop.options.save_rounds:
                why = f"round {current.number}, step {best.step or loop.done}"
                save_model(
                    self.assembly,
                    self.folder.round(current.number) / self.folder.model.name,
                    about={**self.about, "chosen": why},
                )
        return loop.done

    def _steps(self, loop: TrainingLoop, meters: Meters) -> None:
        """Make the steps of a round; log, score and save after those that call for it."""
        intervals = Intervals.of(loop.options, loop.total)
        patience = intervals.evaluations(loop.options.patience, loop.batches.per_epoch)
        evaluates = bool(self.scorer.dev and intervals.evaluate)
        if evaluates and not (loop.over or loop.done or self.steps_before):
            self._evaluate(loop)
            if loop.options.select_start:
                self.scorer.of_round = replace(self.scorer.start)
                self._save(loop, meters)
        meters.resume()
        while not (loop.over or self._enough(patience)):
            result = loop.step(count_negatives=(loop.done + 1) % intervals.log == 0)
            meters.add(result)
            step = loop.done
            self.reporter.step(step)
            if step == min(10, loop.total):
                self._refuse_untrained(loop, meters.seen)
                for path, count in loop.engine.builder.unchanged().items():
                    self.reporter.warning(
                        f"{path} changed nothing in {count} calls: is its rate too low?"
                    )
            scoring = evaluates and (loop.over or step % intervals.evaluate == 0)
            logging = step % intervals.log == 0 or loop.over or scoring
            stopping = distributed.all_reduce_sum(int(self._signals.asked)) > 0
            saving = loop.over or stopping or bool(intervals.save and step % intervals.save == 0)
            if not (logging or saving):
                continue
            self._refuse_not_finite(loop)
            meters.pause()
            scores, better = self._evaluate(loop) if scoring else ({}, False)
            if logging:
                scores = {**scores, **self.callback.numbers(result.anchors)}
                self._log(loop, result, meters, scores)
                sizes = {name: dev_set.size for name, dev_set in self.scorer.dev.items()}
                if not sizes and step >= intervals.evaluate:
                    sizes = {"batch": len(result.anchors)}
                for warning in self.callback.warnings(scores, sizes):
                    self.reporter.warning(warning)
            if saving or better or self._enough(patience):
                self._save(loop, meters)
            if stopping:
                # A launcher that sees one process end stops the one that writes.
                distributed.barrier()
                raise Stopped(step)
            meters.resume()

    def encode(self, texts: Sequence[str], role: Role | None = None) -> Tensor:
        """Return ``[N, D]`` vectors of the current model as the saved one would encode."""
        with self.precision.autocast():
            online = inference_encoder(self.assembly, role)
            return online.encode(texts, self.assembly.device, shared=True)

    def _evaluate(self, loop: TrainingLoop) -> tuple[dict[str, float], bool]:
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
    ) -> None:
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
        line.update(scores)
        line = {name: value for name, value in line.items() if isfinite(value)}
        if self._metrics is not None:
            rest = (json.dumps(line, allow_nan=False) + "\n").encode()
            with disk_errors(self.folder.metrics):
                while rest:
                    rest = rest[self._metrics.write(rest) :]
        self.reporter.line(line)

    def _refuse_untrained(self, loop: TrainingLoop, seen: Container[str]) -> None:
        """Refuse a run whose first steps gave the encoder, a pooler or a loss no gradient."""
        # Losses that were not computed or weigh nothing so far may get theirs later.
        acting = {
            loss.path
            for loss, weight in self.composition.weights()
            if f"{loss.name}.loss" in seen
            and any(weight.at(step, loop.total) for step in range(loop.done))
        }
        for path in loop.optimizer.untrained() if acting else ():
            if path in ("encoder", *acting) or path.startswith("pool."):
                what = f"had no gradient in the first {loop.done} steps, so it learns nothing"
                hint = "a part may return zeros, or every negative be masked: see cse inspect"
                raise CseError(what, where=path, hint=hint)

    def _refuse_not_finite(self, loop: TrainingLoop) -> None:
        """Wait for the steps so far, and stop where one made a number that is not finite."""
        bad = self.assembly.calls.first_bad()
        if bad is None:
            return
        step, path, method = bad
        index = loop.batches.at(step)
        texts = {name: loop.rows.texts(name, index) for name in loop.rows.columns}
        file = self.folder.path / f"not-finite-step-{step + 1}.json"
        if self.main:
            about = {"round": loop.current.number, "step": step + 1, "part": path, "method": method}
            atomic_write(file, json.dumps({**about, "texts": texts}, indent=1) + "\n")
        part = self.assembly.parts.get(path)
        who = path if part is None else f"{path} of {part.owner}"
        raise not_finite(f"{who}: {method} made numbers that are not finite", step + 1, file)

    def checkpoint(self, loop: TrainingLoop, losses: Sequence[Tensor] = ()) -> Checkpoint:
        """Return what a run goes on from, with the losses since the last line of metrics."""
        checkpoint = loop.checkpoint()
        checkpoint.values.update(
            round=loop.current.number,
            steps_before=self.steps_before,
            scores={name: asdict(best) for name, best in self.scorer.bests.items()},
            rounds={name: vars(self.rounds)[name] for name in ROUND_STATE},
            losses=[float(loss) for loss in losses],
        )
        checkpoint.files[RUN_FILE] = self.settings
        return checkpoint

    def _save(self, loop: TrainingLoop, meters: Meters) -> None:
        checkpoint, number = self.checkpoint(loop, meters.losses), loop.current.number
        if not self.main:
            return
        if self._metrics is not None:
            self._metrics.seek(0)
            checkpoint.files[METRICS] = self._metrics.read()
        checkpoint.write(self.folder.checkpoint(number, loop.done))
        self._kept = [self._kept[-1], self._places(number, loop.done)]
        for path in self.folder.checkpoints():
            if place_of(path) <= (number, loop.done) and not any(
                place_of(path) in places for places in self._kept
            ):
                shutil.rmtree(path, ignore_errors=True)

    def _places(self, number: int, step: int) -> set[tuple[int, ...]]:
        """Return rounds and steps of what a checkpoint rests on: itself and the best so far."""
        return {(number, step), *(best.place for best in self._candidates())}

    def _candidates(self) -> list[Best]:
        """Return what the end may choose from: the best so far, and the start where it counts."""
        start = [self.scorer.start] if self.composition.train.select_start else []
        bests = [self.scorer.of_round, self.scorer.of_run, *start]
        return [best for best in bests if best.score is not None]

    def _finish(self, seconds: float) -> Outcome:
        distributed.barrier()
        scorer, steps = self.scorer, self.steps_before
        if scorer.of_run.score is not None:
            choice = choose(
                scorer,
                self.composition.train,
                read=lambda best: Checkpoint.read(self.folder.checkpoint(*best.place)),
                restore=partial(saved.restore_weights, self.assembly),
                encode=self.encode,
                metrics=self.assembly.of("metric"),
            )
        else:
            self.reporter.message("no dev set chose a checkpoint: the last weights are kept")
            last = replace(scorer.of_run, step=steps, round=self.rounds.number)
            choice = Choice(last, f"step {steps}, the last")
        best = choice.best
        by = None if best.score is None else scorer.select
        reached = best.step, best.round, by, best.score, best.scores
        about = seconds, scorer.start.score, choice.verdicts
        outcome = Outcome(self.folder.model, steps, *reached, *about)
        save_model(self.assembly, self.folder.model, about={**self.about, "chosen": choice.why})
        if self.main:
            result = {**asdict(outcome), "model": "model", "seconds": round(seconds, 1)}
            self.describe(self.folder.path, result)
            self.folder.finish(result)
        return outcome
