"""What parts read and see: columns with a type, both directions of a loss, where a column is of."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cse_core.training.loop import TrainingLoop
from cse_core.training.rounds import TrainingRound
from tests.fixtures.tiny import Bench, sentences

POOL = '[[pool]]\nuse = "cls"\n'
GRADED = POOL + '[[branch]]\nuse = "frozen"\n[[loss]]\nuse = "graded"\n'
COLUMNS = {
    "text": sentences(24),
    "positive": sentences(24)[::-1],
    "score": [f"{i / 24:.2f}" for i in range(24)],
    "topic": ["sport", "music", "art"] * 8,
}


def test_numbers_and_labels_of_the_batch(encoder: str, folder: Path) -> None:
    bench = Bench(encoder, folder, GRADED, columns=COLUMNS)
    rows = [3, 17, 4, 0, 21, 9, 8, 1]
    numbers = {"art": 0, "music": 1, "sport": 2}
    wanted = sum(numbers[COLUMNS["topic"][row]] for row in rows)
    assert float(bench.step(0, rows).parts["graded.topic"]) == wanted
    bench = Bench(encoder, folder, GRADED, "model.dropout=0", columns=COLUMNS)
    value = float(bench.step(0, rows).loss)
    online = Bench(encoder, folder, GRADED, "model.dropout=0", columns=COLUMNS).assembly.online
    anchors, others = (
        online.encode([COLUMNS[name][row] for row in rows], torch.device("cpu"))
        for name in ("text", "positive")
    )
    grades = torch.tensor([float(COLUMNS["score"][row]) for row in rows])
    cosines = torch.cosine_similarity(anchors, others)
    assert value == pytest.approx(float((cosines - grades).square().mean()), rel=1e-4)


def test_both_directions_are_weighed_and_columns_say_where_they_are_of(
    encoder: str, folder: Path
) -> None:
    recipe = POOL + '[[negatives]]\nuse = "watching"\n[[loss]]\nuse = "infonce"\n'
    sets = ("loss.infonce.in_batch=both", "loss.infonce.directions=both")
    bench = Bench(encoder, folder, recipe, *sets)
    bench.step(0)
    (view, forward), (turned, backward) = bench.part("negatives.watching").seen
    assert (view, turned) == ("anchor", "positive")
    assert dict(forward.views) == {"in-batch": "positive", "anchors": "anchor"}
    assert dict(backward.views) == {"in-batch": "anchor", "anchors": "positive"}
    for negatives in (forward, backward):
        assert negatives.slot.tolist() == [0] * 16 and negatives.row.tolist() == [*range(8)] * 2


def test_a_round_may_go_on_with_the_learning_rate(encoder: str, folder: Path) -> None:
    bench = Bench(encoder, folder, POOL + '[[loss]]\nuse = "infonce"\n')
    rows, precision = bench.loop.rows, bench.engine.setup.precision
    rates = []
    for kept, scheduled in ((True, 0), (True, 2), (False, 2)):
        current = TrainingRound(keep_schedule=kept, train={"max_steps": 2})
        loop = TrainingLoop(bench.assembly, current, rows, precision, scheduled=scheduled)
        loop.step()
        rates.append(loop.optimizer.adamw.param_groups[0]["lr"] / loop.options.lr)
    assert rates == pytest.approx([1, 1 - 2 / 3, 1]), "24 rows are three steps of the run"
