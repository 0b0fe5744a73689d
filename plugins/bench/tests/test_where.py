"""The time of a step is sorted into categories that are together all of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_bench import where
from cse_bench.steps import Steps
from cse_bench.where import CATEGORIES, shares, where_the_time_goes

from cse_core.data import Corpus
from cse_core.runtime.device import resolve_precision
from cse_core.runtime.reporter import Reporter
from cse_core.training.run import Prepared
from tests.fixtures.tiny import CPU, composed, registry, sentences

QUEUE = '[[negatives]]\nuse = "queue"\nbranch = "ema"\n[[branch]]\nuse = "ema"\n'


def steps(encoder: str, folder: Path, recipe: str = "", *sets: str) -> Steps:
    texts = {"text": sentences(40)}
    composition = composed(encoder, recipe, *sets, folder=folder, rows=40)
    prepared = Prepared(composition, registry(), Reporter(), Corpus.from_columns(texts))
    return Steps(prepared, [resolve_precision("fp32", CPU)], folder, 20)


def test_shares_of_a_step_are_together_all_of_it(encoder: str, tmp_path: Path) -> None:
    work = steps(encoder, tmp_path, QUEUE)
    work.step("fp32")
    found = where_the_time_goes(work, "fp32")
    assert tuple(found) == CATEGORIES
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-9)
    for name in CATEGORIES:
        assert found[name] > 0 or name == where.IDLE, name
    assert found[where.IDLE] == 0


def test_without_dropout_none_is_found(encoder: str, tmp_path: Path) -> None:
    work = steps(encoder, tmp_path, "", "model.dropout=0")
    work.step("fp32")
    assert where_the_time_goes(work, "fp32")[where.DROPOUT] == 0


@dataclass
class Event:
    name: str
    self_cpu_time_total: float = 0.0
    self_device_time_total: float = 0.0
    cpu_parent: Any = None
    is_async: bool = False
    device_type: Any = torch._C._autograd.DeviceType.CPU


def test_the_outermost_operator_decides() -> None:
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
    assert found[where.OPTIMISER] == pytest.approx(6 / total)
    assert found[where.PRODUCTS] == pytest.approx(4.5 / total)
    assert found[where.ATTENTION] == pytest.approx(3 / total)
    assert found[where.OTHER] == pytest.approx(1.5 / total)


def test_a_gpu_waits_for_the_rest_of_the_time() -> None:
    events = [Event("aten::mm", 9.0, 2e6), Event("aten::copy_", 9.0, 1e6)]
    found = shares(events, wall=4.0)
    assert found[where.PRODUCTS] == 0.5
    assert found[where.COPIES] == 0.25
    assert found[where.IDLE] == 0.25
