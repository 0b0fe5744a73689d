"""Every part of this repository over two processes, in one start of two."""

from __future__ import annotations

from cse_testkit import installed_registry
from cse_testkit.processes import difference


def test_two_processes_train_every_part_as_one() -> None:
    parts = [(part.spec.kind, part.name) for part in installed_registry().parts()]
    assert len(parts) > 50
    assert difference([part for part in parts if part[0] != "metric"], {}) == ""
