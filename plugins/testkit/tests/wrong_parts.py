"""Wrong parts: each is a sound one with a line changed, and breaks one promise.

What the core looks at in every run is in ``tests/reliability/test_culprits.py``.
"""

import inspect
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from cse_core.options import LossOptions
from cse_core.records import Record
from cse_core.registry.plugin_info import PluginInfo
from cse_core.registry.registry import Registry
from cse_core.run_info import RunInfo
from cse_defaults.basics import plugin as basics
from cse_defaults.texts import plugin as texts
from cse_defaults.transformers import plugin as transformers
from plugins.testkit.tests import sound_parts as sound

TRAINS = "trains_with_finite_numbers_and_its_parameters_move"

INFO = PluginInfo(
    key="cse-wrong:it", name="it", distribution="cse-wrong", version="0.1.0", summary="wrong",
    module="plugins.testkit.tests.wrong_parts",
)  # fmt: skip


class SilentOptions(LossOptions):
    rate: float = 0.1


class WrongDefault(LossOptions):
    mode: Literal["a", "b"] = "c"  # type: ignore[assignment]
    """Which."""


def knows_one(options: LossOptions, facts: RunInfo) -> LossOptions:
    """Look up what only the tiny encoder's size has."""
    return {32: options}[facts.hidden or 0]


@dataclass(frozen=True)
class Wrong:
    """A wrong part.

    Attributes:
        name: Of its record.
        part: The class of ``sound_parts`` that it is made of.
        old: What its source has once, or "".
        new: What stands there instead.
        promise: The first that it breaks.
        found: A part of what the kit says of it.
        fields: Of its record, where they are others.
    """

    name: str
    part: str
    promise: str
    found: str
    old: str = ""
    new: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def record(self) -> Any:
        """Its record; the class is in a module of its own."""
        made = _source(self.part)
        assert not self.old or made.count(self.old) == 1, f"{self.name}: {self.old}"
        path = Path(sound.__file__)
        source = path.read_text(encoding="utf-8").replace(made, made.replace(self.old, self.new))
        module = ModuleType(f"wrong_{self.name.replace('-', '_')}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module
        exec(compile(source, path, "exec"), vars(module))
        fields = {"provides": (f"branch:{self.name}",)} if self.part == "Copy" else {}
        return replace(module.RECORDS[self.part], name=self.name, **fields, **self.fields)


@cache
def _source(part: str) -> str:
    return inspect.getsource(getattr(sound, part))


_FIELDS: dict[str, dict[str, Any]] = {
    "no-capability": {"requires": lambda options: ("views:x",)},
    "knows-one": {"resolve_options": knows_one},
}
WRONG = [
    Wrong(**{"fields": _FIELDS.get(entry["name"], {}), **entry})
    for entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["wrong"]
]


@cache
def made_registry() -> Registry:
    """Return the built-in parts, the wrong ones and the sound ones."""
    own: list[Record] = [
        *basics.cse_poolers(), *basics.cse_losses(), *basics.cse_branches(),
        *basics.cse_samplers(), *texts.cse_sources(), *transformers.cse_models(),
    ]  # fmt: skip
    brought = {
        "cse-toolkit": own,
        "cse-wrong": [each.record for each in WRONG],
        "cse-sound": [*sound.RECORDS.values()],
    }
    return Registry.from_plugins(
        replace(INFO, key=f"{name}:it", distribution=name, parts=tuple(records))
        for name, records in brought.items()
    )
