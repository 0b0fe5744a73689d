"""A collapse that is made on purpose is measured, logged and reported, and a sound run is not."""

from pathlib import Path
from typing import Any

import pytest
import torch

from cse_cli.plugins.reporters import Reporters
from cse_cli.training.collapse import BATCH, CollapseDetector, advice
from cse_defaults.texts import Corpus
from cse_engine.run.selection import Scorer
from tests.fixtures.tiny import composed, dev_scorer, metrics, sentences, trainer

PULL = '[[pool]]\nuse = "mean"\n[[loss]]\nuse = "pull"\n'
BYOL = (
    f'{PULL}[[branch]]\nuse = "ema"\nname = "target"\ndecay = 0.0\n'
    '[views.positive]\nbranch = "target"\n'
)


def run(
    encoder: str, folder: Path, recipe: str, *sets: str, scorer: Scorer | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    composition = composed(encoder, recipe, *sets, folder=folder, rows=240)
    corpus = Corpus.from_columns({"text": sentences(240)})
    made, notes = trainer(composition, corpus, folder / "run", scorer=scorer)
    detector = CollapseDetector(composition)
    made.reporter = Reporters(notes, {"collapse": lambda: detector})
    made.reporter.start(folder / "run", {})
    made.run()
    return metrics(folder / "run"), [text for text in notes.warnings if "collapse" in text]


@pytest.mark.parametrize("dev", [True, False])
def test_a_branch_and_a_loss_that_pull_all_together(encoder: str, folder: Path, dev: bool) -> None:
    """An EMA branch without decay and predictor, seen on a dev set or on the batches alone."""
    lines, warnings = run(
        encoder, folder, BYOL, "train.lr=4e-3", "train.max_steps=24", "train.eval_steps=1",
        scorer=dev_scorer(sentences(10, seed=5)) if dev else None,
    )  # fmt: skip
    name = "dev" if dev else BATCH
    seen = [line for line in lines if f"{name}.mean_cosine" in line]
    assert len(seen) == 24
    assert seen[0][f"{name}.mean_cosine"] < 0.97 and seen[-1][f"{name}.mean_cosine"] > 0.99
    rank = f"{name}.effective_rank"
    assert seen[-1][rank] < 0.7 * seen[0][rank]
    (warning,) = warnings
    assert warning.startswith(f"{name}: the model gives all sentences nearly the same vector")
    assert ("spearman" in warning) == dev
    assert warning.endswith(
        "what may help: raise branch.target.decay, or add a loss with negatives (--loss +infonce), "
        "or lower train.lr (0.004)"
    )


def test_a_sound_run_is_not_warned_of(encoder: str, folder: Path) -> None:
    recipe = '[[pool]]\nuse = "mean"\n[[loss]]\nuse = "infonce"\n'
    lines, warnings = run(encoder, folder, recipe, "train.max_steps=20", "train.lr=1e-3")
    assert warnings == [] and all(line["batch.effective_rank"] > 2 for line in lines)


def test_what_the_watch_says(encoder: str, folder: Path) -> None:
    recipe = '[[pool]]\nuse = "mean"\n[[loss]]\nuse = "infonce"\n'
    composition = composed(encoder, recipe, folder=folder, rows=240)
    assert advice(composition) == "what may help: lower train.lr (3e-05)"
    rising = composed(encoder, BYOL, "branch.target.decay=linear(0,1)", folder=folder, rows=240)
    assert "raise branch.target.decay, or" in advice(rising)
    watch = CollapseDetector(composition)

    def look(cosine: float, rank: float, score: float, name: str, count: int = 99) -> str | None:
        numbers = {"mean_cosine": cosine, "effective_rank": rank, "spearman": score}
        scores = {f"{name}.{key}": value for key, value in numbers.items()}
        return next(iter(watch.check(scores, {name: count})), None)

    assert look(0.5, 30.0, 60.0, "a") is None
    assert look(0.2, 1.5, 50.0, "a", 9) is None
    assert look(0.2, 1.5, 50.0, "a") == (
        "a: all sentence vectors lie along one line (collapse): mean cosine 0.200, "
        "effective rank 1.5, spearman 50.00; what may help: lower train.lr (3e-05)"
    )
    assert look(0.995, 1.5, 50.0, "a") is None  # reported already
    assert look(0.5, 30.0, 60.0, "b") is look(0.5, 30.0, 31.0, "b") is None
    assert look(0.5, 30.0, 6.0, "c") is look(0.5, 30.0, 1.0, "c") is None  # may be chance
    printed = look(0.5, 30.0, 20.0, "b")
    assert printed and "the score fell below half of its best, 60.00 (collapse)" in printed
    spread = watch.measure
    assert spread(torch.ones(1, 4)) == {}
    same = spread(torch.ones(200, 4))
    assert same[f"{BATCH}.mean_cosine"] == pytest.approx(1)
    assert same[f"{BATCH}.effective_rank"] == pytest.approx(1)
    assert spread(3 * torch.eye(4))[f"{BATCH}.effective_rank"] == pytest.approx(4)
    assert spread(torch.eye(4))[f"{BATCH}.mean_cosine"] == pytest.approx(0)
