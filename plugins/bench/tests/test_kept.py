"""Measurements are kept for this machine alone, and what is damaged does no harm."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from cse_bench import machine
from cse_bench.kept import cache_file, keep, measured_gain, measurements, of_encoder
from cse_bench.machine import expected_place, place_of

from cse_core.errors import CseError
from cse_core.recipes.compose import resolve
from cse_core.recipes.composition import Composition
from cse_core.records import Facts
from cse_core.runtime.device import faster
from plugins.bench.tests.conftest import kept, measured
from tests.fixtures.parts import made_up_registry


def planned(batch: int = 8, **known: object) -> Composition:
    """Return a composition of an encoder of which this is known."""
    facts = Facts(model="tiny", **{"family": "bert", "hidden": 32, "layers": 2, **known})  # type: ignore[arg-type]
    return resolve(made_up_registry(), sets=[f"train.batch_size={batch}"], facts=facts)


def test_what_is_kept_is_found_again(cache: Path) -> None:
    made = kept()
    assert measurements() == [made]
    assert cache_file() == cache / "bench.json"
    assert of_encoder(made.place, planned()) == [made]
    assert measured_gain(made.place, planned()) == 2.0


@pytest.mark.parametrize("change", ["processor", "device", "threads", "torch"])
def test_another_machine_device_threads_or_torch_knows_nothing(cache: Path, change: str) -> None:
    made = kept()
    assert measured_gain(replace(made.place, **{change: "another"}), planned()) is None


@pytest.mark.parametrize(
    "known", [{"hidden": 64}, {"layers": 3}, {"family": "roberta"}, {"hidden": None}]
)
def test_another_encoder_knows_nothing(cache: Path, known: dict[str, object]) -> None:
    assert measured_gain(kept().place, planned(**known)) is None


def test_padded_rows_say_nothing_of_packed_ones(cache: Path) -> None:
    assert measured_gain(kept(attention="padded").place, planned()) is None


def test_the_nearest_batch_counts_and_the_newest_of_equals(cache: Path) -> None:
    place = kept(batch_size=4, gain=0.9).place
    kept(batch_size=64, gain=1.5)
    assert measured_gain(place, planned(512)) == 1.5
    assert measured_gain(place, planned(4)) == measured_gain(place, planned(8)) == 0.9
    kept(batch_size=64, recipe="other", gain=1.8)
    assert measured_gain(place, planned(512)) == 1.8


def test_the_newest_takes_the_place_of_the_same_work(cache: Path) -> None:
    place = kept(gain=3.0).place
    kept(gain=2.0, date="2026-02-01")
    assert [each.gain for each in measurements()] == [2.0]
    kept(batch_size=16, work=200.0, gain=1.5)
    assert [each.gain for each in measurements()] == [2.0, 1.5]
    kept(seconds={"fp32": 0.3}, gain=None)
    assert measured_gain(place, planned()) == 2.0
    assert len(measurements()) == 3


def test_measurements_of_several_processes_are_all_kept(cache: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda size: kept(batch_size=size), range(1, 25)))
    assert {each.batch_size for each in measurements()} == set(range(1, 25))
    assert [path.name for path in cache.glob("*.part")] == []


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "[" * 100_000, '{"form": 3, "measurements": []}',
     '{"form": 2, "measurements": {"a": 1}}', '{"form": 2, "measurements": [1, {}, null]}'],
)  # fmt: skip
def test_a_damaged_file_is_as_none_and_is_replaced(cache: Path, text: str) -> None:
    cache.mkdir()
    (cache / "bench.json").write_text(text)
    assert measurements() == []
    made = kept()
    assert measurements() == [made]


def test_binary_rubbish_is_as_none(cache: Path) -> None:
    cache.mkdir()
    (cache / "bench.json").write_bytes(b"\xff\xfe\x00")
    assert measurements() == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("gain", -1), ("gain", float("nan")), ("seconds", {"fp32": 0}), ("hidden", "wide"),
     ("place", "here"), ("batch_size", 0), ("surplus", 1)],
)  # fmt: skip
def test_a_damaged_entry_is_left_out(cache: Path, field: str, value: object) -> None:
    made = kept()
    file = cache / "bench.json"
    content = json.loads(file.read_text())
    content["measurements"].append({**content["measurements"][0], field: value})
    file.write_text(json.dumps(content))
    assert measurements() == [made]


@pytest.mark.parametrize("name", ["", "off", "OFF"])
def test_off_keeps_nothing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("CSE_CACHE", name)
    assert keep(measured()) is None
    assert measurements() == []


def test_a_folder_that_cannot_be_written_is_told(cache: Path) -> None:
    cache.write_text("a file")
    with pytest.raises(CseError, match="cannot be kept") as raised:
        keep(measured())
    assert raised.value.where == "CSE_CACHE"


def test_a_tenth_faster_is_enough_for_bf16() -> None:
    assert [faster(gain) for gain in (0.1, 1.09, 1.1, 3.0)] == ["fp32", "fp32", "bf16", "bf16"]


def test_a_plan_and_a_run_name_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for threads in (None, 1):
        assert expected_place("cpu", threads) == place_of(torch.device("cpu"), threads)
    monkeypatch.setattr(machine, "gpu_names", lambda: [])
    assert expected_place("auto", None) == place_of(torch.device("cpu"), None)
    assert place_of(torch.device("cpu"), 1) != place_of(torch.device("cpu"), 2)


def test_threads_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert "OMP_NUM_THREADS=3" in machine.thread_rule(None)
    assert machine.thread_rule(5) == "5"


def test_gpus_are_known_by_the_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for number in (0, 1):
        folder = tmp_path / f"0000:0{number}"
        folder.mkdir()
        (folder / "information").write_text("Model: \t\t NVIDIA X9\nIRQ:   1\n")
    monkeypatch.setattr(machine, "_GPUS", tmp_path)
    monkeypatch.setattr(machine, "torch_version", lambda: "2.13.0+cu126")
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert machine.gpu_names() == ["NVIDIA X9"] * 2
    for name, device in (("auto", "NVIDIA X9"), ("cuda:1", "NVIDIA X9"), ("cpu", "cpu")):
        place = expected_place(name, None)
        assert place is not None and place.device == device
    (tmp_path / "0000:01/information").write_text("Model: another\n")
    assert expected_place("auto", None) is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert machine.gpu_names() == []
    assert expected_place("cuda", None) is None
    monkeypatch.setattr(machine, "torch_version", lambda: "2.13.0+cpu")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert machine.gpu_names() == []


def test_a_processor_is_told_by_more_than_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(
        "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: Some CPU\n"
        "stepping\t: 1\nflags\t\t: fpu avx2 avx512_bf16\n\nprocessor\t: 1\nmodel name\t: Other\n"
    )
    monkeypatch.setattr(machine, "_CPU", file)
    assert machine.processor.__wrapped__() == "Some CPU (25/17/1), avx2, avx512_bf16"
    monkeypatch.setattr(machine, "_CPU", tmp_path / "nothing")
    assert machine.processor.__wrapped__()
