"""The public Python API: plan, train, load and evaluate as the command line does.

    import cse

    run = cse.train(recipe="simcse", data="texts.txt", dev="pairs.tsv", out="runs/mine")
    vectors = cse.load("runs/mine").encode(["a sentence"])

Options, defaults, results and errors are those of the command ``cse``. A mistake raises
:class:`CseError`, whose text is the line that the command line prints. Importing this package
imports no torch; the functions import what they need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse.models import Model, evaluate, load
    from cse.plans import Plan, plan
    from cse.runs import Run, open_run, resume, train
    from cse_cli.training.stored_run import StoredRun
    from cse_core import __version__
    from cse_core.errors import CseError, CseErrors

__all__ = [
    "CseError",
    "CseErrors",
    "Model",
    "Plan",
    "Run",
    "StoredRun",
    "__version__",
    "evaluate",
    "load",
    "open_run",
    "plan",
    "resume",
    "train",
]

_PLACES = {
    "CseError": "cse_core.errors",
    "CseErrors": "cse_core.errors",
    "Model": "cse.models",
    "Plan": "cse.plans",
    "Run": "cse.runs",
    "StoredRun": "cse_cli.training.stored_run",
    "__version__": "cse_core",
    "evaluate": "cse.models",
    "load": "cse.models",
    "open_run": "cse.runs",
    "plan": "cse.plans",
    "resume": "cse.runs",
    "train": "cse.runs",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
