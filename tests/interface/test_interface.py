"""A change of what plugins and programs rely on is seen."""

import difflib

from tests.interface.description import KEPT, described, written


def test_the_interface_is_the_one_that_is_kept() -> None:
    kept, now = KEPT.read_text(encoding="utf-8"), written(described())
    changed = [
        line
        for line in difflib.unified_diff(kept.splitlines(), now.splitlines(), n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    assert not changed, (
        "the interface changed: if that is meant, run python -m tests.interface\n"
        + "\n".join(changed)
    )
