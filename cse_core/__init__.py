"""Contrastive sentence embeddings: a core that knows texts, views and a step, but no paper.

The files beside this one are the contract: what an author of a plugin imports. The folders are the
rooms behind it, each of which imports only earlier ones (docs/architecture.md).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

__version__ = "0.1.0"


@cache
def _moved() -> dict[str, dict[str, Any]]:
    """Return the modules that have moved, and the names in them that have changed."""
    import tomllib

    return tomllib.loads(Path(__file__).with_name("moved.toml").read_text(encoding="utf-8"))


class _MovedModules:
    """Finds and loads them; without importlib.abc, which takes longer than all of this."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, old = name.partition(".")
        moved = old.split(".")[0] == "testing" or old in _moved()["modules"]
        known = package == __name__ and moved
        return ModuleSpec(name, self, is_package=old == "testing") if known else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__.partition(".")[2]
        new = old.replace("testing", "cse_testkit", 1)
        if old in _moved()["modules"]:
            new = _moved()["modules"][old]
        warnings.warn(
            f"{module.__name__} is now {new}: import that; the old name goes with 0.2",
            FutureWarning,
            stacklevel=2,
        )
        there = import_module(new)
        vars(module).update({k: v for k, v in vars(there).items() if not k.startswith("__")})
        for name, now in _moved()["names"].get(old, {}).items():
            setattr(module, name, getattr(there, now))


sys.meta_path.append(_MovedModules())
