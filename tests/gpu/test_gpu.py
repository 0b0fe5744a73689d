"""``make gpu``: its sections, on a GPU and in a small form on the processor; results; the page."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gpu import __main__ as whole
from tests.gpu.setting import Section, Setting

NO_GPU = whole.no_gpu()
SECTIONS = {section.name: section for section in whole.SECTIONS}
LINE = {"check": "values", "ok": True}


@pytest.fixture
def one_thread() -> Iterator[None]:
    torch.set_num_threads(1)
    yield
    torch.use_deterministic_algorithms(False)  # which a section sets


@pytest.mark.gpu
@pytest.mark.skipif(NO_GPU is not None, reason=str(NO_GPU))
@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_a_section_holds_on_a_gpu(section: Section) -> None:
    found = whole.measure(section, "cuda", section.seconds)
    assert whole.failures({"sections": {section.name: found}}) == []


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "resume")) for n in SECTIONS]
)
def test_a_section_runs_in_a_small_form(name: str, one_thread: None) -> None:
    setting = Setting("cpu")
    SECTIONS[name].run(setting)
    assert setting.found
    assert [line for line in setting.found if line["ok"] is False] == []


def test_what_a_section_cut_short_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "python"
    monkeypatch.setattr(whole.sys, "executable", str(script))
    results: dict[str, Any] = {}
    ends = {"cut": "printf '{\"check'; exec sleep 60", "broken": "echo 'bad access' >&2; exit 1"}
    for name, end in ends.items():
        script.write_text(f"#!/bin/sh\necho noise\necho '{json.dumps(LINE)}'\n{end}\n")
        script.chmod(0o755)
        results[name] = whole.measure(SECTIONS["kernels"], "cpu", 2.0)
        assert results[name]["found"] == [LINE]
        assert results[name]["cut"] == (name == "cut")
    assert results["cut"]["failed"] is None
    (failure,) = whole.failures({"sections": results})
    assert "bad access" in failure["failed"] and failure["section"] == "broken"


def test_an_error_and_full_memory_end_no_section() -> None:
    setting = Setting("cpu")
    with setting.trying("one"):
        raise ValueError("broken")
    with setting.trying("two"):
        raise torch.OutOfMemoryError("full")
    assert [line["ok"] for line in setting.found] == [False, None]
    found = {"seconds": 1, "cut": False, "failed": None, "code": "c", "found": setting.found}
    assert [line["check"] for line in whole.failures({"sections": {"parts": found}})] == ["one"]
    text = whole.page({"about": {"date": "d"}, "sections": {"parts": found}})
    assert "0 of 1 checks hold" in text and "ValueError: broken" in text


def test_the_page_is_what_its_results_say_and_ten_minutes_hold_all_sections() -> None:
    text = (whole.ROOT / "docs/gpu.md").read_text(encoding="utf-8")
    assert all(f"## {section.title}\n" in text for section in SECTIONS.values())
    assert sum(section.seconds for section in SECTIONS.values()) <= 600
