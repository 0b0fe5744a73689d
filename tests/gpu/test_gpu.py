"""``make gpu``: its sections, on a GPU and in a small form on the processor; results; the page."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gpu import __main__ as whole
from tests.gpu import wheels
from tests.gpu.buckets import batch, filled
from tests.gpu.page import page
from tests.gpu.parts import DrawnHere
from tests.gpu.sections import SECTIONS
from tests.gpu.setting import Setting

NO_GPU = whole.no_gpu()
LONG = ("buckets", "resume", "scores")
"""Sections whose small form takes longer than a moment."""
NAMES = [section.name for section in SECTIONS]


@pytest.fixture
def one_thread() -> Iterator[None]:
    """What a section changes in the process, put back."""
    threads, exact = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(exact)


@pytest.mark.gpu
@pytest.mark.skipif(NO_GPU is not None, reason=str(NO_GPU))
@pytest.mark.parametrize("section", SECTIONS, ids=NAMES)
def test_a_section_holds_on_a_gpu(section: Any, tmp_path: Path) -> None:
    found = whole.measure(section, "cuda", section.seconds, tmp_path)
    assert whole.failures({"sections": {section.name: found}}) == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in NAMES]
)
def test_a_section_runs_in_a_small_form(name: str, tmp_path: Path, one_thread: None) -> None:
    """So that no minute of a GPU is lost to a typing error."""
    setting = Setting("cpu", out=tmp_path / "found.jsonl")
    importlib.import_module(f"tests.gpu.{name}").run(setting)
    assert setting.found
    assert [line for line in setting.found if line["ok"] is False] == []
    written = (tmp_path / "found.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in written] == setting.found


def test_every_section_has_a_module_and_ten_minutes_hold_them_all() -> None:
    assert sum(section.seconds for section in SECTIONS) <= 600
    for name in NAMES:
        assert callable(importlib.import_module(f"tests.gpu.{name}").run)


# -- results ----------------------------------------------------------------------------------


def section_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, seconds: float) -> Any:
    """Run a section whose process does something else."""
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\nout={tmp_path}/kernels.jsonl\n{code}\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setattr(whole.sys, "executable", str(script))
    return whole.measure(SECTIONS[0], "cpu", seconds, tmp_path)


LINE = json.dumps({"check": "values", "ok": True})


def test_a_section_that_is_cut_keeps_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"echo '{LINE}' > $out\nprintf '{{\"check' >> $out\nexec sleep 60"
    found = section_of(tmp_path, monkeypatch, code, 2.0)
    assert found["cut"] and found["failed"] is None
    assert found["found"] == [json.loads(LINE)]


def test_a_section_that_breaks_says_how_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"echo '{LINE}' > $out\necho 'an illegal memory access' >&2\nexit 1"
    found = section_of(tmp_path, monkeypatch, code, 30.0)
    assert not found["cut"] and "an illegal memory access" in found["failed"]
    (failure,) = whole.failures({"sections": {"kernels": found}})
    assert "an illegal memory access" in failure["failed"]


def test_a_check_that_fails_counts_unless_nobody_takes_the_kernel() -> None:
    lines = [
        {"check": "values", "ok": True},
        {"check": "values", "ok": False, "chosen": False},
        {"check": "values", "ok": False, "chosen": True},
        {"check": "time", "ok": None},
    ]
    results = {
        "sections": {
            "kernels": {"seconds": 1, "cut": False, "failed": None, "code": "c", "found": lines}
        }
    }
    assert len(whole.failures(results)) == 1
    text = page({**results, "about": {"machine": {}, "code": "c", "date": "d"}})
    assert "1 of 3 checks hold" in text


def test_an_error_and_full_memory_end_no_section() -> None:
    setting = Setting("cpu")
    with setting.trying("one"):
        raise ValueError("broken")
    with setting.trying("two"):
        raise torch.OutOfMemoryError("full")
    assert [line["ok"] for line in setting.found] == [False, None]
    assert setting.found[1]["left_out"] == "out of memory"


def test_there_is_no_gpu_and_the_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(whole, "no_gpu", lambda: "torch finds no GPU here")
    assert whole.main(["--device", "cuda", "--out", str(tmp_path)]) == 2
    assert "torch finds no GPU here" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_page_is_what_its_results_say() -> None:
    """Until there are any, that nothing was measured."""
    text = (whole.ROOT / "docs/gpu.md").read_text(encoding="utf-8")
    if "Nothing has been measured yet" in text:
        assert text == page({}), "write it with python -m tests.gpu --render"
    else:
        assert "| capability |" in text
    for section in SECTIONS:
        assert f"## {section.title}\n" in text


# -- what the sections are made of ------------------------------------------------------------


def test_what_is_drawn_for_a_device_is_drawn_on_the_cpu() -> None:
    def draw() -> torch.Generator:
        return torch.Generator().manual_seed(3)

    plain = torch.rand(5, generator=draw())
    with DrawnHere():
        assert torch.equal(torch.rand(5, generator=draw()), plain)
        assert torch.rand(5, generator=draw(), device="meta").device.type == "meta"
        there = torch.empty(5, device="meta").normal_(generator=draw())
        assert there.device.type == "meta"
        here = torch.empty(5).uniform_(generator=draw())
    assert torch.equal(here, torch.empty(5).uniform_(generator=draw()))


def test_a_bucket_has_as_many_rows_and_tokens_for_every_batch() -> None:
    for lengths in ([3, 5, 8], [8, 8, 8], [1, 1, 2]):
        given = batch(lengths, 50, "cpu")
        full = filled(given, 8, 32)
        assert len(full.ids) == len(full.positions) == 32
        assert len(full.starts) == len(lengths) + 1 + 4
        assert int(full.starts[-1]) == 32
        assert int(full.starts.diff().max()) <= 8 == full.longest
        assert torch.equal(full.ids[: given.tokens], given.ids)
        assert int(full.positions.max()) < 8


def test_wheels_are_what_the_project_needs_but_for_what_is_there() -> None:
    wanted = wheels.needed()
    assert {"pydantic", "pluggy", "typer", "pyarrow", "pytest"} <= wanted.keys()
    assert not {"torch", "transformers", "sentence-transformers", "cse-toolkit"} & wanted.keys()
    assert not any(name.startswith("nvidia") for name in wanted)
    assert "cse-toolkit" in wheels.own() and "cse-simcse" in wheels.own()


def test_what_a_machine_has_is_left_out_with_what_only_that_needs() -> None:
    whole_list, rest = wheels.needed(), wheels.needed(has={"Pydantic": "", "datasets": "99.0"})
    assert {"pydantic", "pydantic-core", "datasets", "dill"} <= whole_list.keys()
    assert not {"pydantic", "pydantic-core", "datasets", "dill"} & rest.keys()
    assert rest.items() <= whole_list.items()
    assert "pydantic" in wheels.needed(has={"pydantic": "1.10"})


def test_markers_choose_by_extra_and_python() -> None:
    lines = ["a; extra == 'x'", "b; python_version < '3.10'", "c>=1", "d; extra == 'y'"]
    environment = {"python_version": "3.12"}
    assert list(wheels.of_extras(lines, ["x"], environment)) == ["a", "c>=1"]
