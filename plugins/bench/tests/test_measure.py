"""A measurement makes real steps in turn, and leaves nothing behind."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_bench import where
from cse_bench.measure import measure
from cse_bench.report import BenchReport, Spread
from cse_bench.where import CATEGORIES, shares

from cse_cli.plugins.installed import Installed
from cse_core.reporter import Reporter
from cse_engine.runtime.device import resolve_precision
from tests.engine.run.test_runs import EVERYTHING, ROUNDS
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
) -> tuple[BenchReport, Progress]:
    folder.mkdir(exist_ok=True)
    progress = Progress()
    texts = folder / "texts.txt"
    texts.write_text("\n".join(sentences(40)), encoding="utf-8")
    sets = (*sets, f"data.path=[{texts}]")
    composition = replace(composed(encoder, recipe, *sets, folder=folder, rows=40), read=None)
    rounds, plugins = len(precisions), Installed()
    vars(plugins)["registry"] = registry()
    report = measure(
        composition, plugins, precisions=precisions, steps=rounds, rounds=rounds, reporter=progress
    )
    return report, progress


def test_two_precisions_in_turn(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    report, progress = measured(encoder, tmp_path / "run", precisions=("fp32", "bf16"))
    assert [each.name for each in report.precisions] == ["fp32", "bf16"]
    for each in report.precisions:
        seconds = each.seconds_per_step
        assert 0 < seconds.low <= seconds.median <= seconds.high
        assert each.sentences_per_second.high == pytest.approx(8 / seconds.low)
        assert each.tokens_per_second.median > each.sentences_per_second.median
        assert tuple(each.where) == CATEGORIES
        assert sum(each.where.values()) == pytest.approx(1.0)
        assert each.where[where.IDLE] == 0 < each.where[where.PRODUCTS] < 1
        assert each.where["dropout"] > 0
        assert each.peak_memory is not None and each.peak_memory > 10 * 2**20
    assert report.gain is not None and report.gain.low <= report.gain.high
    assert progress.seen == [(done, 8) for done in range(9)]
    assert {path.name for path in tmp_path.rglob("*")} == {
        *("temporary", "run", "recipe.toml", "texts.txt")
    }
    assert report.auto == resolve_precision("auto", CPU).name

    for gain, auto, printed in (
        (2.07, "fp32", "2.07 times as fast as fp32 here: add --train.precision bf16, auto takes "),
        (1.09, "bf16", "1.09 times as fast as fp32 here: add --train.precision fp32, auto takes "),
        (1.1, "bf16", "1.10 times as fast as fp32 here: train.precision = auto takes "),
        (0.3, "fp32", "0.30 times as fast as fp32 here: train.precision = auto takes "),
    ):
        advice = replace(report, gain=Spread.of([gain]), auto=auto, asked="auto").advice()
        assert advice == f"bf16 was {printed}{auto}"
    assert replace(report, gain=None).advice() is None
    held = replace(report, gain=Spread.of([2.0]), asked="fp32").advice()
    assert held is not None and held.endswith("; the recipe or one of its parts asks for fp32")
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)


def test_any_composition_is_measured(encoder: str, tmp_path: Path) -> None:
    for number, (recipe, sets) in enumerate(
        (
            (EVERYTHING, ("train.batch_size=4", "train.chunk_size=3")),
            (ROUNDS, ("model.attention=padded", "train.batch_size=100", "model.dropout=0")),
        )
    ):
        folder = tmp_path / str(number)
        report, _ = measured(encoder, folder, recipe, *sets)
        assert report.gain is None
        assert {path.name for path in folder.rglob("*")} == {"texts.txt", "recipe.toml"}
    assert report.batch_size == 40, "a batch larger than the data takes it all"
    assert report.precisions[0].where["dropout"] == 0


@dataclass
class Event:
    name: str
    self_cpu_time_total: float = 0.0
    self_device_time_total: float = 0.0
    cpu_parent: Any = None
    is_async: bool = False
    device_type: Any = torch._C._autograd.DeviceType.CPU


def test_the_outermost_operator_decides_where_time_goes() -> None:
    step = Event("cse.step", 1.0)
    update = Event("cse.update", 2.0, cpu_parent=step)
    backward = Event("autograd::engine::evaluate_function: MmBackward0", 0.5, cpu_parent=step)
    product = Event("aten::mm", 3.0, cpu_parent=backward)
    events = [
        step, update, Event("aten::mm", 4.0, cpu_parent=update), backward, product,
        Event("aten::copy_", 1.5, cpu_parent=product),
        Event("aten::_scaled_dot_product_flash_attention", 2.0, cpu_parent=step),
        Event("FlashAttnVarlenFuncBackward", 1.0, cpu_parent=step),
        Event("aten::mm", 50.0), replace(product, is_async=True),
    ]  # fmt: skip
    found = shares(events)
    total = 15.0
    assert found["optimiser"] == pytest.approx(6 / total)
    assert found[where.PRODUCTS] == pytest.approx(4.5 / total)
    assert found[where.ATTENTION] == pytest.approx(3 / total)
    assert found[where.OTHER] == pytest.approx(1.5 / total)
    # A GPU waits for the rest of the time.
    found = shares([Event("aten::mm", 9.0, 2e6), Event("aten::copy_", 9.0, 1e6)], wall=4.0)
    shown = found[where.PRODUCTS], found["copies and casts"], found[where.IDLE]
    assert shown == (0.5, 0.25, 0.25)
