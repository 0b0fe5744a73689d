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
    from cse.tables import ARTICLE_COLUMNS, TABLE_SUFFIXES, article_text, read_table, table_name
    from cse_cli.models.encoding import TextEncoder
    from cse_cli.models.geometry import effective_rank, mean_cosine, singular_values, unit
    from cse_cli.training.stored_run import StoredRun
    from cse_core import __version__
    from cse_core.data.columns import lacks_word_spaces
    from cse_core.data.sources import hub_name, hub_rows
    from cse_core.errors import CseError, CseErrors

__all__ = [
    "ARTICLE_COLUMNS", "TABLE_SUFFIXES", "CseError", "CseErrors", "Model", "Plan", "Run",
    "StoredRun", "TextEncoder", "__version__", "article_text", "effective_rank", "evaluate",
    "hub_name", "hub_rows", "lacks_word_spaces", "load", "mean_cosine", "open_run", "plan",
    "read_table", "resume", "singular_values", "table_name", "train", "unit",
]  # fmt: skip

_PLACES = {
    name: module
    for module, names in (
        ("cse.models", ("Model", "evaluate", "load")),
        ("cse.plans", ("Plan", "plan")),
        ("cse.runs", ("Run", "open_run", "resume", "train")),
        ("cse.tables", ("ARTICLE_COLUMNS", "TABLE_SUFFIXES", "article_text", "read_table")),
        ("cse.tables", ("table_name",)),
        ("cse_cli.models.encoding", ("TextEncoder",)),
        ("cse_cli.models.geometry", ("effective_rank", "mean_cosine", "singular_values", "unit")),
        ("cse_cli.training.stored_run", ("StoredRun",)),
        ("cse_core", ("__version__",)),
        ("cse_core.data.columns", ("lacks_word_spaces",)),
        ("cse_core.data.sources", ("hub_name", "hub_rows")),
        ("cse_core.errors", ("CseError", "CseErrors")),
    )
    for name in names
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
