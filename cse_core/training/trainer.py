"""A training run: rounds, steps, scores, checkpoints, and the model at the end."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from cse_core.data import Corpus
from cse_core.engine.assembly import Assembly
from cse_core.engine.optimizer import Optimizer
from cse_core.engine.step import Engine, StepResult
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.runtime import distributed
from cse_core.runtime.device import Precision
from cse_core.runtime.reporter import Reporter
from cse_core.runtime.seeds import StepPosition
from cse_core.tokenization.training_rows import Batches, TrainingRows
from cse_core.training import checkpoint as saved
from cse_core.training.checkpoint import Checkpoint
from cse_core.training.collapse import BATCH, CollapseWatch, spread
from cse_core.training.export import inference_choices
from cse_core.training.intervals import Intervals
from cse_core.training.meters import Meters
from cse_core.training.outcome import Outcome, finish
from cse_core.training.rounds import Rounds, TrainingRound
from cse_core.training.run_folder import METRICS, MetricsFile, RunFolder
from cse_core.training.selection import Best, Scorer
from cse_core.training.signals import Stopped, StopSignals

__all__ = ["Outcome", "Stopped", "Trainer"]


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
        self._signals = StopSignals()
        self._collapse = CollapseWatch(self.composition)
        self._metrics: MetricsFile | None = None
        self._prepared = False
        self._steps_before = 0
        self._moments: dict[str, Tensor] = {}

    # -- the run ----------------------------------------------------------------------------

    def prepare(self) -> None:
        """Try what would stop the first step, and let every part see the corpus; writes nothing.

        Before the run's folder is begun, so that a mistake leaves none; else ``run`` does it.

        Raises:
            CseError: If a prompt leaves no place for a text, or a part cannot use the corpus.
        """
        if self._prepared:
            return
        for view in self.composition.views:
            sentence_encoder = self.assembly.encoders[view.branch]
            sentence_encoder.rows(sentence_encoder.tokenizer.content([""]), view.role)
        saved_model = self._inference_stack()
        saved_model.rows(saved_model.tokenizer.content([""]), "anchor")
        for part in self.assembly.parts.values():
            part.prepare(self.corpus)
        self._prepared = True

    def run(self, resume: Checkpoint | None = None) -> Outcome:
        """Train all rounds and save the model.

        Args:
            resume: The checkpoint to go on from.

        Raises:
            Stopped: If the process was asked to stop.
            CseError: If the loss is no number any more.
        """
        began = time.monotonic()
        self.prepare()
        until = None
        if resume is not None:
            saved.restore_weights(self.assembly, resume)
            saved.restore_parts(self.assembly, resume)
            self.scorer.restore(resume.values["scores"])
            self.rounds.restore(resume.values["rounds"])
            until = resume.values["round"], resume.values["step"]
            self._steps_before = resume.values["steps_before"]
        if self.main:
            self._metrics = MetricsFile(self.folder.path / METRICS, until)
        try:
            with self._signals:
                while (current := self.rounds.next(resume is not None)) is not None:
                    self._steps_before += self._round(current, resume)
                    resume = None
        finally:
            if self._metrics is not None:
                self._metrics.close()
        return finish(
            self.assembly,
            self.folder,
            self.scorer,
            self.reporter,
            steps=self._steps_before,
            rounds=self.rounds.number,
            seconds=time.monotonic() - began,
            about=self.about,
        )

    def rows_of(self, current: TrainingRound) -> TrainingRows:
        """Return the rows of a round: the corpus, or the pairs that it brings."""
        if current.pairs is None:
            return self.base
        return TrainingRows(self.corpus, self._longest(), current.pairs, self.base, current.number)

    def _round(self, current: TrainingRound, resume: Checkpoint | None) -> int:
        options = current.options(self.train)
        rows = self.rows_of(current)
        batches = Batches(
            len(rows),
            options.batch_size,
            seed=options.seed,
            number=current.number,
            shuffle=self.composition.data.shuffle,
        )
        total = options.steps(len(rows))
        intervals = Intervals.of(options, total)
        self.rounds.begin(current.number, rows)
        engine = Engine(self.assembly, rows, self.precision, current.losses, options)
        optimizer = Optimizer(self.assembly, options, total)
        meters = Meters(resume.values["losses"] if resume else [], self.assembly.device)
        step = 0
        if resume is not None:
            step = resume.values["step"]
            optimizer.restore(resume.part("optimizer"))
            engine.previous = saved.unpack_fields(resume, self.assembly.device)
        else:
            self.scorer.of_round = Best()
            if current.keep_optimizer:
                optimizer.restore(self._moments)
            if current.number:
                # What was mined is never mined again, and the miner's own state goes with it.
                self._save(0, current.number, optimizer, engine, meters)
        engine.builder.tokenise(self.reporter)
        self.reporter.begin(current.number, total, step)
        if len(rows) < options.batch_size:
            self.reporter.warning(
                f"train.batch_size is {options.batch_size} but there are {len(rows)} rows: "
                "each step takes them all"
            )
        patience = current.patience(options, intervals.evaluate, batches.per_epoch)
        meters.go_on()
        with closing(engine):
            while step < total and not self._enough(patience):
                index = batches.at(step)
                then = batches.at(step + 1) if step + 1 < total else None
                count_negatives = (step + 1) % intervals.log == 0
                position = StepPosition(step, total, batches.epoch(step), current.number)
                update = partial(optimizer.update, step)
                result = engine.step(
                    index, position, update, count_negatives=count_negatives, then=then
                )
                meters.add(result, len(index))
                step += 1
                self.reporter.step(step)
                if step == min(10, total):
                    self._warn_unchanged(engine)
                last = step == total
                scoring = bool(self.scorer.dev) and intervals.evaluates(step, last)
                logging = step % intervals.log == 0 or last or scoring
                stopping = distributed.any_of(self._signals.asked)
                saving = intervals.saves(step, last) or stopping
                if not (logging or saving):
                    continue
                meters.settle(step)
                scores = self._evaluate(step, current) if scoring else {}
                if logging:
                    scores = {**scores, **spread(result.anchors)}
                    self._log(step, current.number, result, optimizer, meters, scores)
                    self._warn_collapse(scores, len(result.anchors), step >= intervals.evaluate)
                if saving or self._enough(patience):
                    self._save(step, current.number, optimizer, engine, meters)
                if stopping:
                    # A launcher that sees one process end stops the one that writes.
                    distributed.wait()
                    raise Stopped(step)
                meters.go_on()
        if step < total:
            self.reporter.message(
                f"no better {current.score or self.scorer.select} in "
                f"{self.scorer.of_round.waited} evaluations: stopped"
            )
        self.reporter.end()
        self.scorer.end_round()
        best = self.scorer.of_round
        if current.number:
            self._moments = optimizer.state()
            distributed.wait()
            if best.score is not None:
                saved.restore_weights(
                    self.assembly, Checkpoint.read(self.folder.best(current.number))
                )
            self.rounds.finished(best.score)
        return step

    # -- scores -----------------------------------------------------------------------------

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Return ``[N, D]`` vectors of the current model as the saved one would encode."""
        with self.precision.autocast():
            return self._inference_stack().encode(texts, self.assembly.device)

    def _inference_stack(self) -> SentenceEncoder:
        _, heads, slicer = inference_choices(self.composition)
        kept = {choice.name for choice in heads}
        sentence_encoder = self.assembly.online
        return replace(
            sentence_encoder,
            pooler=self.assembly.inference_pool or sentence_encoder.pooler,
            heads={name: head for name, head in sentence_encoder.heads.items() if name in kept},
            slicer=sentence_encoder.slicer if slicer is not None else None,
        )

    def _evaluate(self, step: int, current: TrainingRound) -> dict[str, float]:
        scores, better = self.scorer.score(
            self.encode, step, current.number, current.score, self.assembly.metrics
        )
        if better and self.main:
            Checkpoint(saved.weights(self.assembly), {"step": step, **scores}).write(
                self.folder.best(current.number)
            )
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
        meters: Meters,
        scores: dict[str, float],
    ) -> None:
        line: dict[str, Any] = {
            "step": step,
            "round": number,
            "lr": optimizer.learning_rate(step - 1),
            **meters.line(),
        }
        if result.norm is not None:
            line["gradient_norm"] = float(result.norm)
        for source in (result.parts, result.logged):
            line.update({name: float(value) for name, value in source.items()})
        line.update(scores)
        if self._metrics is not None:
            self._metrics.write(line)
        self.reporter.line(line)
        meters.begin()

    def _save(
        self, step: int, number: int, optimizer: Optimizer, engine: Engine, meters: Meters
    ) -> None:
        if not self.main:
            return
        weights = saved.weights(self.assembly)
        saved.check_finite(weights, step)
        tensors, values = saved.part_states(self.assembly)
        tensors.update(weights)
        tensors.update({f"optimizer.{n}": v for n, v in optimizer.state().items()})
        tensors.update(saved.pack_fields(engine.previous))
        Checkpoint(
            tensors,
            {
                "step": step,
                "round": number,
                "steps_before": self._steps_before,
                "scores": self.scorer.state(),
                "rounds": self.rounds.state(),
                "parts": values,
                "losses": [float(loss) for loss in meters.losses],
            },
        ).write(self.folder.checkpoint(number, step))
        for old in self.folder.checkpoints()[:-2]:
            shutil.rmtree(old, ignore_errors=True)

    # -- what is noticed ----------------------------------------------------------------------

    def _warn_unchanged(self, engine: Engine) -> None:
        for path, count in engine.builder.unchanged().items():
            self.reporter.warning(f"{path} changed nothing in {count} calls: is its rate too low?")

    def _warn_collapse(self, scores: dict[str, float], anchors: int, evaluated: bool) -> None:
        """Warn of a collapse on the dev sets, or on the batch where there are none."""
        sets = {each.name: each.size for each in self.scorer.dev}
        if not sets and evaluated:
            sets = {BATCH: anchors}
        for name, sentences in sets.items():
            if warning := self._collapse.look(name, scores, sentences):
                self.reporter.warning(warning)

    def _longest(self) -> int:
        return self.composition.model.max_length
