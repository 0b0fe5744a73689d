"""The interface is the one that its version names; what breaks plugins is seen."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from cse_core.specs import CSE_API_VERSION
from tests.interface.changes import breaks
from tests.interface.description import KEPT, described, written


@pytest.fixture(scope="module")
def now() -> dict[str, Any]:
    return json.loads(written(described()))  # type: ignore[no-any-return]


def test_the_interface_breaks_no_plugin_of_its_version(now: dict[str, Any]) -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert breaks(kept, now) == [], "keep the old form too, or raise CSE_API_VERSION"
    assert now == kept, "additions: python -m tests.interface records them"


def test_every_version_before_is_kept() -> None:
    kept = {path.name for path in KEPT.parent.glob("interface-*.json")}
    assert kept == {f"interface-{number}.json" for number in range(1, CSE_API_VERSION + 1)}


SPEC = ("names", "cse_core.records", "LossSpec")
PART = ("names", "cse_core.parts", "Loss")
PLUGINS = ("json", "list-plugins --json")
CHANGES: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "hook": (("hooks", "cse_losses"), None, "hook cse_losses returned LossSpec, now it is gone"),
    "record": (SPEC, None, "cse_core.records.LossSpec is gone"),
    "field": ((*SPEC, "fields", "contrastive"), None, "LossSpec.contrastive is gone"),
    "field-type": ((*SPEC, "fields", "contrastive", "type"), "str", "was bool, now str"),
    "field-required": ((*SPEC, "fields", "paper", "required"), True, "paper must be set now"),
    "new-field": (
        (*SPEC, "fields", "year"), {"type": "int", "required": True}, "year is new and must be set"
    ),
    "base": ((*SPEC, "bases"), [], "LossSpec is a ComponentSpec no more"),
    "method": ((*SPEC, "methods", "provided"), None, "LossSpec.provided is gone"),
    "abstract": (
        (*PART, "methods", "begin"), {"parameters": [], "abstract": True},
        "Loss.begin must be written now",
    ),
    "overridden": (
        (*PART, "methods", "__call__", "parameters"), [["self", "positional_or_keyword", True]],
        "Loss.__call__ was called with (self, batch, targets, negatives, ctx), now with (self)",
    ),
    "function": (
        ("names", "cse_core.functional", "unit", "parameters"),
        [["rows", "positional_or_keyword", True]], "functional.unit asks for 'rows' now",
    ),
    "word": (("names", "cse_core.capabilities", "WORDS", "value"), [], "WORDS has 'pairs' no more"),
    "setting": (("settings", "train", "lr"), None, "train.lr is gone"),
    "json": ((*PLUGINS, ".plugins[].key"), None, "list-plugins --json: .plugins[].key is gone"),
    "json-type": ((*PLUGINS, ".plugins[].key"), "int", ".plugins[].key was str, now int"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_that_breaks_is_named(case: str, now: dict[str, Any]) -> None:
    path, value, said = CHANGES[case]
    changed = copy.deepcopy(now)
    table = changed
    for key in path[:-1]:
        table = table[key]
    if value is None:
        del table[path[-1]]
    else:
        table[path[-1]] = value
    found = breaks(now, changed)
    assert any(said in line for line in found), found


def test_additions_break_nothing(now: dict[str, Any]) -> None:
    changed = copy.deepcopy(now)
    changed["hooks"]["cse_new"] = "NewSpec"
    spec = changed["names"]["cse_core.records"]["LossSpec"]
    spec["fields"]["year"] = {"type": "int", "required": False}
    spec["methods"]["new"] = {"parameters": [["self", "positional_or_keyword", True]]}
    unit = changed["names"]["cse_core.functional"]["unit"]
    unit["parameters"].append(["eps", "keyword_only", False])
    assert breaks(now, changed) == []
