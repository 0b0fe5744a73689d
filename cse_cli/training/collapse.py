"""Collapse: all sentences get one vector, or vectors along one line.

Noticed at each evaluation, on the dev sets, and where there is none on the batch in training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from cse_cli.models.geometry import effective_rank, mean_cosine, singular_values, unit
from cse_core.records import LossSpec
from cse_core.reporter import Reporter
from cse_core.schedule import Schedule
from cse_engine.compose.composition import Composition

if TYPE_CHECKING:
    from torch import Tensor

BATCH = "batch"
"""Prefix of the numbers about the anchors of a batch."""
COLLAPSED_COSINE = 0.99
"""Mean cosine of different sentences from which a model counts as collapsed."""
COLLAPSED_RANK = 2.0
"""Effective rank below which it does: fewer directions than that are in use."""
FEW = 16
"""With fewer sentences a low rank says nothing."""
FALLEN = 0.5
"""Share of its best score below which a model counts as fallen."""
LITTLE = 10.0
"""Best score (x100) below which a fall says nothing: it may be chance."""
WEAK_DECAY = 0.5
"""Decay below which a branch hardly differs from the encoder in training."""
_MOST_ROWS = 128


class CollapseDetector(Reporter):
    """Warns when a set of sentences looks collapsed, once for each set."""

    def __init__(self, composition: Composition) -> None:
        self._advice = advice(composition)
        self._warned: set[str] = set()
        self._best: dict[str, float] = {}

    def measure(self, anchors: Tensor) -> dict[str, float]:
        """Compute mean cosine and effective rank of a batch's first 128 vectors ``[A, D]``.

        It waits for the device.
        """
        vectors = unit(anchors[:_MOST_ROWS].float().cpu().numpy())
        cosine = mean_cosine(vectors)
        if cosine is None:
            return {}
        rank = effective_rank(singular_values(vectors))
        return {f"{BATCH}.mean_cosine": cosine, f"{BATCH}.effective_rank": rank}

    def check(self, line: Mapping[str, float], sizes: Mapping[str, int]) -> list[str]:
        """Warn of each set that looks collapsed for the first time.

        ``line`` holds ``{name}.mean_cosine`` and the like.
        """
        texts = []
        for name, sentences in sizes.items():
            cosine = line.get(f"{name}.mean_cosine", 0.0)
            rank = line.get(f"{name}.effective_rank", COLLAPSED_RANK)
            score = line.get(f"{name}.spearman")
            best = max(self._best.get(name, 0.0), score or 0.0)
            self._best[name] = best
            if cosine > COLLAPSED_COSINE:
                sign = "the model gives all sentences nearly the same vector"
            elif rank < COLLAPSED_RANK and sentences >= FEW:
                sign = "all sentence vectors lie along one line"
            elif score is not None and best >= LITTLE and score < FALLEN * best:
                sign = f"the score fell below half of its best, {best:.2f}"
            else:
                continue
            if name in self._warned:
                continue
            self._warned.add(name)
            numbers = [f"mean cosine {cosine:.3f}", f"effective rank {rank:.1f}"]
            if score is not None:
                numbers.append(f"spearman {score:.2f}")
            texts.append(f"{name}: {sign} (collapse): {', '.join(numbers)}; {self._advice}")
        return texts


def advice(composition: Composition) -> str:
    """Say what is likely to help a run that collapses."""
    hints = []
    for part in composition.of("branch"):
        decay = getattr(part.options, "decay", None)
        if isinstance(decay, Schedule) and decay.bounds[0] < WEAK_DECAY:
            hints.append(f"raise {part.path}.decay")
    if all(
        options.negatives == "none" or not cast(LossSpec, loss.spec).contrastive
        for loss, options in composition.losses()
    ):
        hints.append("add a loss with negatives (--loss +infonce)")
    hints.append(f"lower train.lr ({composition.train.lr:g})")
    return "what may help: " + ", or ".join(hints)
