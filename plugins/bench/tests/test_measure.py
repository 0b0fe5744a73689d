"""A measurement makes real steps in turn, and leaves nothing behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cse_bench.cli_report import advice_of
from cse_bench.measure import check_precisions, measure
from cse_bench.report import BenchReport, Spread

from cse_core.data import Corpus
from cse_core.errors import CseError
from cse_core.runtime.device import resolve_precision
from cse_core.runtime.reporter import Reporter
from tests.core.training.test_runs import EVERYTHING, ROUNDS
from tests.fixtures.tiny import CPU, composed, registry, sentences


class Progress(Reporter):
    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def progress(self, done: int, total: int, what: str) -> None:
        self.seen.append((done, total))


def measured(
    encoder: str,
    folder: Path,
    recipe: str = "",
    *sets: str,
    precisions: tuple[str, ...] = ("fp32",),
    rounds: int = 1,
) -> tuple[BenchReport, Progress]:
    folder.mkdir(exist_ok=True)
    progress = Progress()
    composition = composed(encoder, recipe, *sets, folder=folder, rows=40)
    report = measure(
        composition, registry(), precisions=precisions, steps=rounds, rounds=rounds,
        reporter=progress, corpus=Corpus.from_columns({"text": sentences(40)}),
    )  # fmt: skip
    return report, progress


def test_two_number_formats_in_turn(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    report, progress = measured(encoder, tmp_path / "run", precisions=("fp32", "bf16"), rounds=2)
    assert [each.name for each in report.precisions] == ["fp32", "bf16"]
    for each in report.precisions:
        assert 0 < each.seconds.low <= each.seconds.median <= each.seconds.high
        assert each.sentences.high == pytest.approx(8 / each.seconds.low)
        assert each.tokens.median > each.sentences.median
        assert each.share is not None and each.floor is not None and each.own_share is not None
        assert each.own_share.low > 0
        assert each.floor.median < each.share.high * each.seconds.high * 1.0001
        assert sum(each.where.values()) == pytest.approx(1.0)
        assert each.peak.bytes is not None and each.peak.bytes > 10 * 2**20
    assert 0 < report.padding_avoided < 1 and report.packed
    assert report.gain is not None and report.gain.low <= report.gain.high
    assert progress.seen == [(done, 8) for done in range(9)]
    assert {path.name for path in tmp_path.rglob("*")} == {"temporary", "run", "recipe.toml"}
    assert report.auto == resolve_precision("auto", CPU).name


@pytest.mark.parametrize(
    ("gain", "auto", "printed"),
    [(2.07, "fp32", "2.07 times as fast as fp32 here: add --train.precision bf16, auto takes fp32"),
     (1.09, "bf16", "1.09 times as fast as fp32 here: add --train.precision fp32, auto takes bf16"),
     (1.1, "bf16", "1.10 times as fast as fp32 here: train.precision = auto takes bf16"),
     (0.3, "fp32", "0.30 times as fast as fp32 here: train.precision = auto takes fp32")],
)  # fmt: skip
def test_the_advice_names_the_faster_format_and_what_to_type(
    encoder: str, tmp_path: Path, gain: float, auto: str, printed: str
) -> None:
    report, _ = measured(encoder, tmp_path / "run")
    assert advice_of(report) is None
    assert advice_of(replace(report, gain=Spread.of([gain]), auto=auto)) == f"bf16 was {printed}"


@pytest.mark.parametrize(
    ("recipe", "sets"),
    [(EVERYTHING, ()), (EVERYTHING, ("train.chunk_size=3",)), (ROUNDS, ())],
    ids=["whole", "chunks", "rounds"],
)
def test_any_composition_is_measured(
    encoder: str, tmp_path: Path, recipe: str, sets: tuple[str, ...]
) -> None:
    report, _ = measured(encoder, tmp_path / "run", recipe, *sets)
    assert report.gain is None
    assert [path.name for path in (tmp_path / "run").rglob("*")] == ["recipe.toml"]


def test_a_padded_encoder_avoids_no_padding(encoder: str, tmp_path: Path) -> None:
    report, _ = measured(encoder, tmp_path, "", "model.attention=padded")
    (found,) = report.precisions
    assert (report.packed, report.padding_avoided) == (False, 0.0)
    assert found.share is not None and found.own_share is None


def test_a_batch_larger_than_the_data_takes_it_all(encoder: str, tmp_path: Path) -> None:
    report, _ = measured(encoder, tmp_path, "", "train.batch_size=100")
    assert report.batch_size == 40


@pytest.mark.parametrize(
    ("name", "device", "words"),
    [("fp16", "cpu", "100 times slower"), ("auto", "cpu", "not a number format to measure"),
     ("fp8", "cpu", "fp32"), ("fp32", "rocket", "unknown device")],
)  # fmt: skip
def test_what_cannot_be_measured(name: str, device: str, words: str) -> None:
    with pytest.raises(CseError, match=words):
        check_precisions([name], device)


def test_a_spread_is_median_and_range() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
