"""Dev scores of short runs in bf16 beside those in fp32, over seeds.

Number formats take other kernels, which draw other dropout masks, so that their scores differ as
those of seeds do: the means must lie within a deviation of the seeds.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from tests.gpu.runs import simcse
from tests.gpu.setting import Setting, exact

SEEDS = (1, 2, 3, 4, 5)


def run(setting: Setting) -> None:
    """Train with both number formats and compare the chosen scores."""
    exact()
    steps, batch, seeds = (2, 8, SEEDS[:2]) if setting.small else (60, 64, SEEDS)
    found: dict[str, list[float]] = {"fp32": [], "bf16": []}
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            for precision, scores in found.items():
                out = Path(folder) / f"{precision}-{seed}"
                outcome = simcse(
                    setting, out, f"train.precision={precision}", f"train.seed={seed}",
                    f"train.max_steps={steps}", f"train.batch_size={batch}", "train.lr=1e-4",
                    f"train.eval_steps={steps}", "train.save_steps=0",
                )  # fmt: skip
                name = outcome.chosen_by or next(iter(outcome.scores))
                scores.append(outcome.scores[name])
                setting.keep(
                    "run", None, format=precision, seed=seed, score=scores[-1], of=name,
                    seconds=round(outcome.seconds, 2),
                )  # fmt: skip
    means = {precision: statistics.mean(scores) for precision, scores in found.items()}
    deviation = max(statistics.stdev(scores) for scores in found.values())
    difference = means["bf16"] - means["fp32"]
    facts = {"difference": difference, "deviation": deviation, **means}
    setting.keep("scores", abs(difference) <= max(deviation, 0.1), **facts)
