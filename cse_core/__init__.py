"""Contrastive sentence embeddings: a core that knows texts, views and a step, but no paper.

The files beside this one are the contract: what an author of a plugin imports. The folders are the
rooms behind it, each of which imports only earlier ones (docs/architecture.md).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

__version__ = "0.1.0"

_MOVED = {
    "anatomy": "encoders.architecture",
    "checkpoint": "training.checkpoint",
    "composer": "recipes.compose",
    "composition": "recipes.composition",
    "contrast": "functional",
    "encoding": "encoders.encoder",
    "evaluation.dev": "cse_evaluation.dev",
    "evaluation.geometry": "cse_evaluation.geometry",
    "evaluation.pairs": "cse_evaluation.pairs",
    "evaluation.vectors": "cse_evaluation.vectors",
    "inference": "models.saved_model",
    "protocols": "parts",
    "randomness": "runtime.seeds",
    "registry.discovery": "cse_cli.discovery",
    "registry.distributions": "cse_cli.distributions",
    "registry.manager": "cse_cli.manager",
    "reporting": "runtime.reporter",
    "rows": "tokenization.training_rows",
    "sampling": "functional",
    "similarity": "functional",
    "stack": "models.sentence_encoder",
    "tokens": "tokenization.tokenizer",
}
"""Modules that authors of plugins import under an earlier name; these go with 0.2."""
_RENAMED = {"encoding": ("RaggedEncoder", "PackedEncoder"), "stack": ("Stack", "SentenceEncoder")}
"""A name in such a module, and the one that it has now."""


class _MovedModules:
    """Finds and loads them; without importlib.abc, which takes longer than all of this."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, old = name.partition(".")
        known = package == __name__ and (old in _MOVED or old.partition(".")[0] == "testing")
        return ModuleSpec(name, self, is_package=old == "testing") if known else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__.partition(".")[2]
        new = old.replace("testing", "cse_testkit", 1)
        if old in _MOVED:
            new = _MOVED[old] if "cse_" in _MOVED[old] else f"{__name__}.{_MOVED[old]}"
        warnings.warn(
            f"{module.__name__} is now {new}: import that; the old name goes with 0.2",
            FutureWarning,
            stacklevel=2,
        )
        there = import_module(new)
        vars(module).update({k: v for k, v in vars(there).items() if not k.startswith("__")})
        if old in _RENAMED:
            name, now = _RENAMED[old]
            setattr(module, name, getattr(there, now))


sys.meta_path.append(_MovedModules())
