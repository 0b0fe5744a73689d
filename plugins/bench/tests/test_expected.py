"""How long a run takes is told where it was measured, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cse_bench.expected import ExpectedTime, expected_time
from cse_bench.work import fingerprint, mean_lengths, work_of

from cse_core.data import Corpus
from cse_core.recipes.composition import Composition
from plugins.bench.tests.conftest import kept, measured
from tests.core.training.test_runs import ROUNDS
from tests.fixtures.tiny import composed, registry, sentences

CORPUS = Corpus.from_columns({"text": sentences(40)})


def planned(encoder: str, folder: Path, *sets: str, recipe: str = "") -> Composition:
    return composed(encoder, recipe, *sets, folder=folder, rows=40)


def work(encoder: str, folder: Path) -> float:
    composition = planned(encoder, folder)
    lengths = mean_lengths(composition, CORPUS, registry())
    assert lengths is not None
    return work_of(composition, lengths, composition.train.batch_size)


def expected(encoder: str, folder: Path, *sets: str, recipe: str = "") -> ExpectedTime | None:
    return expected_time(planned(encoder, folder, *sets, recipe=recipe), CORPUS, registry())


@pytest.fixture
def same(encoder: str, tmp_path: Path, cache: Path) -> float:
    """A measurement of the same work as a step of these tests; returns that work."""
    parts = fingerprint(planned(encoder, tmp_path))
    return float(kept(work=work(encoder, tmp_path), parts=parts).work or 0)


def test_nothing_is_told_without_a_measurement(encoder: str, tmp_path: Path, cache: Path) -> None:
    assert expected(encoder, tmp_path) is None


def test_steps_take_what_was_measured(encoder: str, tmp_path: Path, same: float) -> None:
    told = expected(encoder, tmp_path, "train.precision=fp32")
    assert told is not None
    assert (told.steps, told.precision, told.scaled) == (5, "fp32", 1.0)
    assert told.seconds == pytest.approx(5 * 0.2)
    assert told.sentences_per_second == pytest.approx(8 / 0.2)
    assert told.line() == (
        "about 1 s: 5 steps at 40 sentences/s in fp32, measured by cse bench on 2026-01-31; "
        "dev scores and checkpoints come on top"
    )
    assert told.as_dict()["seconds"] == told.seconds


def test_auto_is_the_faster_one(encoder: str, tmp_path: Path, same: float) -> None:
    told = expected(encoder, tmp_path, "train.precision=auto")
    assert told is not None and told.precision == "bf16"
    kept(gain=None, rule="fp32", seconds={"fp32": 0.2}, work=same, recipe="other")
    told = expected(encoder, tmp_path, "train.precision=auto")
    assert told is not None and told.precision == "bf16"


def test_other_parts_of_the_same_work_are_said_to_be_others(
    encoder: str, tmp_path: Path, same: float
) -> None:
    told = expected(encoder, tmp_path, "loss.infonce.temperature=0.1")
    assert told is not None and told.scaled == 1.0 and not told.same
    assert "reckoned from simcse in batches of 8" in told.line()
    kept(work=1.5 * same, parts=fingerprint(planned(encoder, tmp_path)), seconds={"fp32": 0.9})
    kept(work=same, recipe="other", seconds={"fp32": 0.7})
    told = expected(encoder, tmp_path, "train.precision=fp32")
    assert told is not None and told.measured.seconds != {"fp32": 0.7}


def test_fewer_rows_than_a_batch_are_a_smaller_step(
    encoder: str, tmp_path: Path, same: float
) -> None:
    few = Corpus.from_columns({"text": sentences(40)[:6]})
    composition = composed(encoder, "", "train.max_steps=3", folder=tmp_path, rows=6)
    told = expected_time(composition, few, registry())
    assert told is not None and 0.6 < told.scaled < 0.9


def test_auto_without_a_gain_is_the_rule(encoder: str, tmp_path: Path, cache: Path) -> None:
    kept(gain=None, rule="fp32", seconds={"fp32": 0.2}, work=work(encoder, tmp_path))
    told = expected(encoder, tmp_path, "train.precision=auto")
    assert told is not None and told.precision == "fp32"
    assert expected(encoder, tmp_path, "train.precision=bf16") is None


def test_more_work_takes_longer_as_far_as_that_is_like(
    encoder: str, tmp_path: Path, same: float
) -> None:
    told = expected(encoder, tmp_path, "train.batch_size=16", "train.max_steps=900")
    assert told is not None
    assert told.scaled == pytest.approx(2.0)
    assert told.seconds == pytest.approx(900 * 0.4)
    assert "reckoned from simcse in batches of 8" in told.line()
    assert "with 2.00 times its work a step" in told.line()
    assert told.line().startswith("about 6 min: 900 steps")
    assert expected(encoder, tmp_path, "train.batch_size=24") is None
    push = '[[aug]]\nuse = "push"\n'
    told = expected(encoder, tmp_path, recipe=push)
    assert told is not None and told.scaled == pytest.approx(5 / 3)


def test_the_nearest_measurement_is_taken(encoder: str, tmp_path: Path, same: float) -> None:
    kept(work=2 * same, batch_size=16, seconds={"fp32": 0.7})
    told = expected(encoder, tmp_path, "train.batch_size=16")
    assert told is not None
    assert told.seconds == pytest.approx(told.steps * 0.7)


@pytest.mark.parametrize(
    "changes",
    [{"hidden": 64}, {"layers": 3}, {"family": "roberta"}, {"attention": "padded"}, {"work": None},
     {"work": 1e6}, {"seconds": {"bf16": 0.1}, "gain": None},
     *({"place": replace(measured().place, **{name: "x"})}
       for name in ("processor", "device", "threads", "torch"))],
    ids=lambda changes: "-".join(changes) if isinstance(changes, dict) else None,
)  # fmt: skip
def test_what_differs_tells_nothing(
    encoder: str, tmp_path: Path, cache: Path, changes: dict[str, Any]
) -> None:
    kept(**{"work": work(encoder, tmp_path), **changes})
    assert expected(encoder, tmp_path, "train.precision=fp32") is None


def test_runs_whose_steps_nobody_knows(
    encoder: str, tmp_path: Path, same: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert expected(encoder, tmp_path, recipe=ROUNDS) is None
    assert expected(encoder, tmp_path, "train.threads=7") is None
    assert expected_time(planned(encoder, tmp_path), None, registry()) is None
    assert expected(encoder, tmp_path) is not None
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert expected(encoder, tmp_path) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (42.0, "42 s"), (90.0, "2 min"), (7140.0, "119 min"), (7260.0, "2 h 01 min"),
     (300_000.0, "3.5 days")],
)  # fmt: skip
def test_durations(cache: Path, seconds: float, words: str) -> None:
    told = ExpectedTime(seconds, 10, 3.21, "fp32", 1.0, True, measured())
    assert told.line().startswith(f"about {words}: 10 steps at 3.2 sentences/s")
