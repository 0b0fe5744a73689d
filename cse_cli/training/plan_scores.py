"""What a plan says of a run beside its composition: its folder, dev sets and checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse_cli.texts.lengths import Lengths
    from cse_core.evaluation.suites import DevSet
    from cse_core.recipes.composition import Composition
    from cse_core.training.intervals import Intervals


@dataclass(frozen=True)
class PlannedRun:
    """Where a run will lie, and what it is evaluated on.

    Attributes:
        folder: The folder; of a default one the time is not known yet.
        default: Whether nobody named it.
        sets: Its dev sets, by name.
        lengths: How many texts are cut, where that is known.
        adapted: With an adapter, how many weights of the encoder train and how many there are.
    """

    folder: str
    default: bool
    sets: Mapping[str, DevSet]
    lengths: Lengths | None = None
    adapted: tuple[int, int] | None = None

    def lines(self, composition: Composition) -> list[str]:
        """Return lines for people: when it is evaluated, what chooses the checkpoint, where."""
        chosen = self._chosen(composition)
        how_long = composition.train.patience
        lines = [self.lengths.line()] if self.lengths is not None else []
        if self.adapted is not None:
            trained, every = self.adapted
            lines.append(f"adapter: {trained:,} of {every:,} parameters of the encoder train")
        lines += [f"evaluation: {self._when(composition)}"]
        if chosen is None:
            why = "train.eval_steps is 0" if self.sets else "no dev set; add one with --dev FILE"
            lines.append(f"checkpoint: the last step is kept: {why}")
        else:
            lines.append(f"checkpoint: the step with the best {chosen} is kept")
            if how_long is not None:
                count = how_long if isinstance(how_long, str) else f"{how_long} evaluations"
                lines[-1] += f"; training stops after {count} without a better one"
        other = " (--out DIR names another)" if self.default else ""
        return [*lines, f"folder: {self.folder}{other}"]

    def as_dict(self, composition: Composition) -> dict[str, Any]:
        """Return the same for machines."""
        intervals = self._intervals(composition) if self.sets else None
        return {
            "evaluation": {
                "sets": {name: {"texts": each.size} for name, each in self.sets.items()},
                "every_steps": intervals and (intervals.evaluate or None),
                "times": self._times(composition, intervals),
                "chosen_by": self._chosen(composition),
                "patience": composition.train.patience,
            },
            "adapter": self.adapted and dict(zip(("trained", "all"), self.adapted, strict=True)),
            "length": self.lengths and self.lengths.as_dict(),
            "folder": {"path": self.folder, "default": self.default},
        }

    def _chosen(self, composition: Composition) -> str | None:
        from cse_core.evaluation.dev_sets import choosing_score

        if composition.train.eval_steps == 0:
            return None
        return choosing_score(self.sets, composition.train.select)

    def _intervals(self, composition: Composition) -> Intervals | None:
        """Return the intervals of the run; None where only the run can tell its steps."""
        from cse_core.training.intervals import Intervals

        train, steps = composition.train, composition.facts.steps
        if composition.round_miners:
            steps = train.max_steps
        if steps is None:
            return None if train.eval_steps is None else Intervals.of(train, 1)
        return Intervals.of(train, steps)

    def _times(self, composition: Composition, intervals: Intervals | None) -> int | None:
        steps = composition.facts.steps
        if not self.sets or (intervals is not None and not intervals.evaluate):
            return 0
        if intervals is None or steps is None or composition.round_miners:
            return None
        return -(-steps // intervals.evaluate)

    def _when(self, composition: Composition) -> str:
        intervals = self._intervals(composition)
        times = self._times(composition, intervals)
        if times == 0:
            return "none"
        on = ", ".join(f"{name} ({each.size:,} texts)" for name, each in self.sets.items())
        if intervals is None:
            return f"on {on} every 125 steps, or after each tenth of fewer than 1,250 steps"
        every = f"every {intervals.evaluate:,} steps" if intervals.evaluate > 1 else "every step"
        if times is None:
            return f"on {on} {every} and at the end of each round"
        return f"on {on} {every} and at the end: {times:,} time{'s' * (times != 1)}"
