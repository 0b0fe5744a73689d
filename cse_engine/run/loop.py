"""The steps of one round: batches through the engine, the optimiser after each, where it stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.files import atomic_write
from cse_engine.run import checkpoint as saved
from cse_engine.run.checkpoint import Checkpoint
from cse_engine.run.rounds import TrainingRound, round_options
from cse_engine.runtime.device import Precision
from cse_engine.runtime.distributed import rank_and_size
from cse_engine.runtime.memory import TRIM_STEPS, give_back
from cse_engine.runtime.seeds import StepPosition
from cse_engine.step.assembly import Assembly
from cse_engine.step.input_gradients import GradientField
from cse_engine.step.optimizer import Optimizer
from cse_engine.step.step import Engine, StepResult
from cse_engine.step.training_rows import Batches, TrainingRows

_DIVERGED = (
    "lower train.lr or use --set train.precision=fp32; --resume continues from the last checkpoint"
)


class TrainingLoop:
    """Steps of a round that all parts have begun; its driver decides when to log, score and stop.

    Args:
        scheduled: Steps of the learning rate's schedule that earlier rounds made, for a round that
            keeps it.

    Attributes:
        options: ``train.*`` of the round.
        batches: Which rows a step takes.
        done: Steps that were made; the next one has this number.
        resumed: Whether it goes on after steps of another process.
        arranged: Whether a sampler has arranged an epoch.
        before_update: Called when a step's gradients are there, before the weights move.
    """

    def __init__(
        self,
        assembly: Assembly,
        current: TrainingRound,
        rows: TrainingRows,
        precision: Precision,
        scheduled: int = 0,
    ) -> None:
        composition = assembly.composition
        self.assembly, self.current, self.rows = assembly, current, rows
        self.options = options = round_options(current, composition.train)
        self.total = options.steps(len(rows))
        self.batches = Batches(
            len(rows),
            min(options.batch_size, len(rows)),
            seed=options.seed,
            number=current.number,
            shuffle=composition.data.shuffle,
            arrange=self._arrange,
        )
        scaler = precision.scaler()
        self.engine = Engine(assembly, rows, precision, current.losses, options, scaler)
        run = composition.train.steps(len(rows.corpus)) if current.keep_schedule else self.total
        self.optimizer = Optimizer(assembly, options, run, scaler)
        self.scheduled = scheduled if current.keep_schedule else 0
        self.before_update: Callable[[], None] | None = None
        self.done = 0
        self.arranged = self.resumed = False

    @property
    def over(self) -> bool:
        """Whether every step of the round was made."""
        return self.done >= self.total

    def step(self, index: Tensor | None = None, *, count_negatives: bool = False) -> StepResult:
        """Make the next step, of ``[B]`` rows; by default the round's next ones."""
        if index is None:
            index = self.batches.at(self.done)
        epoch = self.batches.epoch(self.done)
        position = StepPosition(self.done, self.total, epoch, self.current.number)
        result = self.engine.step(index, position, self._update, count_negatives=count_negatives)
        self.done += 1
        if self.done % TRIM_STEPS == 0:
            give_back()
        return result

    def checkpoint(self) -> Checkpoint:
        """Return everything that the next step needs; refuse weights that are not finite."""
        weights = saved.weights(self.assembly)
        for name, value in weights.items():
            if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                what = f"{name} holds numbers that are not finite at step {self.done}"
                raise CseError(what, where="train", hint=_DIVERGED)
        tensors, values = saved.part_states(self.assembly)
        tensors.update(weights)
        tensors.update({f"optimizer.{n}": v for n, v in self.optimizer.state().items()})
        for (point, view), gradients in self.engine.previous.items():
            tensors[f"gradient.{point}.{view}.keys"] = gradients.keys
            tensors[f"gradient.{point}.{view}.values"] = gradients.values
        return Checkpoint(tensors, {"step": self.done, "parts": values})

    def refuse_not_finite(self, folder: Path) -> None:
        """Wait for the steps so far, and stop where one made a number that is not finite.

        The first process writes the texts of that step to a file in the run's folder.

        Raises:
            CseError: With the part, its method and the file.
        """
        if (bad := self.assembly.calls.first_bad()) is None:
            return
        step, path, method = bad
        index = self.batches.at(step)
        texts = {name: self.rows.of_rows(name, index) for name in self.rows.columns}
        file = folder / f"not-finite-step-{step + 1}.json"
        if rank_and_size()[0] == 0:
            about = {"round": self.current.number, "step": step + 1, "part": path, "method": method}
            atomic_write(file, json.dumps({**about, "texts": texts}, indent=1) + "\n")
        part = self.assembly.parts.get(path)
        who = path if part is None else f"{path} of {part.owner}"
        what = f"{who}: {method} made numbers that are not finite at step {step + 1}"
        raise CseError(f"{what}; its batch is in {file}", where="train", hint=_DIVERGED)

    def refuse_untrained(self) -> None:
        """Refuse a run whose first steps gave the encoder, a pooler or a loss no gradient.

        Losses that were not computed, or weigh nothing so far, may get theirs later.

        Raises:
            CseError: At the part that learns nothing.
        """
        acting = {
            loss.path
            for loss, weight in self.assembly.composition.weights()
            if loss.path in self.engine.objectives.acted
            and any(weight.at(step, self.total) for step in range(self.done))
        }
        untrained = self.optimizer.untrained() if acting else []
        if self.optimizer.scaler is not None and "encoder" in untrained:
            what = f"gradients overflowed in all of the first {self.done} steps"
            hint = "--train.precision bf16, or fp32"
            raise CseError(what, where="train.precision", value="fp16", hint=hint)
        for path in untrained:
            if path in ("encoder", *acting) or path.startswith("pool."):
                what = f"had no gradient in the first {self.done} steps, so it learns nothing"
                hint = "a part may return zeros, or every negative be masked: see cse inspect"
                raise CseError(what, where=path, hint=hint)

    def idle(self) -> Iterator[str]:
        """Yield the parts that did nothing in the steps so far: losses, views, stores, a sampler.

        Raises:
            CseError: If no loss was computed.
        """
        run, objectives = self.assembly.composition, self.engine.objectives
        steps, acted = f"in {self.done} steps", objectives.acted
        views = {view.made_by for view in run.views if view.name in self.engine.builder.came}
        losses = [*objectives.losses, *objectives.token_losses]
        for loss in losses:
            if loss.path not in acted:
                target = getattr(loss.options, "target", "token states")
                rows = "".join(f" of {name} {value!r}" for name, value in loss.only.items())
                what = f"was never computed {steps}: none had any {target!r}{rows}"
                if acted.isdisjoint(other.path for other in losses):
                    hint = "give it rows that have them, or another loss beside it"
                    raise CseError(what, where=loss.path, hint=hint)
                yield f"{loss.path} {what}"
        for view in run.views:
            if view.made_by is not None and view.name not in self.engine.builder.came:
                yield f"view {view.name} never came {steps}: {view.made_by} made none"
        for store in run.of("negatives"):
            if store.path not in acted | views and any(run.serves(store, loss) for loss in losses):
                yield f"{store.path} gave no loss a negative {steps}, and changed no weight of one"
        for sampler in run.of("sampler"):
            if not self.arranged:
                yield f"{sampler.path} arranged nothing: the rows leave it no choice"

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint, whose weights and parts ``restore_assembly`` has put back."""
        self.optimizer.restore(checkpoint.part("optimizer"))
        tensors = {n: v.to(self.assembly.device) for n, v in checkpoint.part("gradient").items()}
        self.engine.previous = {
            (point, view): GradientField(keys, tensors[f"{point}.{view}.values"])
            for (point, view, what), keys in ((n.split("."), v) for n, v in tensors.items())
            if what == "keys"
        }
        self.done = checkpoint.values["step"]
        self.resumed = self.done > 0

    def _arrange(self, size: int, draws: Callable[[str], torch.Generator]) -> Tensor | None:
        """Ask the sampler for the order of an epoch's rows ``[rows]``; None in a run without."""
        sampler = next(iter(self.assembly.of("sampler").values()), None)
        if sampler is None:
            return None
        given = self.rows, size, lambda name: draws(f"{sampler.path}.{name}")
        order: Tensor | None = self.assembly.calls(sampler, "order", *given)
        self.arranged |= order is not None
        return order

    def _update(self) -> Tensor | None:
        if self.before_update is not None:
            self.before_update()
        return self.optimizer.update(self.scheduled + self.done)
