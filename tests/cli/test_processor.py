"""The processor is known by more than its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from cse_cli.machine import processor


def test_a_processor_is_known_by_more_than_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(
        "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: Some CPU\n"
        "stepping\t: 1\nflags\t\t: fpu avx2 avx512_bf16\n\nprocessor\t: 1\nmodel name\t: Other\n"
    )
    monkeypatch.setattr(processor, "_CPU", file)
    assert processor.processor.__wrapped__() == "Some CPU (25/17/1), avx2, avx512_bf16"
    monkeypatch.setattr(processor, "_CPU", tmp_path / "nothing")
    assert processor.processor.__wrapped__()
