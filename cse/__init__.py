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
    from cse import questions as questions
    from cse.bootstrap import LEVEL as LEVEL
    from cse.bootstrap import Comparison as Comparison
    from cse.bootstrap import Difference as Difference
    from cse.bootstrap import compared as compared
    from cse.bootstrap import corrected as corrected
    from cse.bootstrap import draws_of as draws_of
    from cse.bootstrap import holm as holm
    from cse.models import Model as Model
    from cse.models import evaluate as evaluate
    from cse.models import load as load
    from cse.plans import Plan as Plan
    from cse.plans import plan as plan
    from cse.runs import Run as Run
    from cse.runs import open_run as open_run
    from cse.runs import resume as resume
    from cse.runs import train as train
    from cse.session import Session as Session
    from cse.tables import ARTICLE_COLUMNS as ARTICLE_COLUMNS
    from cse.tables import TABLE_SUFFIXES as TABLE_SUFFIXES
    from cse.tables import article_text as article_text
    from cse.tables import read_lines as read_lines
    from cse.tables import read_table as read_table
    from cse.tables import table_name as table_name
    from cse_cli.models.encoding import TextEncoder as TextEncoder
    from cse_cli.models.encoding import maxsim as maxsim
    from cse_cli.models.encoding import similarities as similarities
    from cse_cli.models.geometry import effective_rank as effective_rank
    from cse_cli.models.geometry import mean_cosine as mean_cosine
    from cse_cli.models.geometry import singular_values as singular_values
    from cse_cli.models.geometry import unit as unit
    from cse_cli.training.stored_run import StoredRun as StoredRun
    from cse_core import __version__ as __version__
    from cse_core.errors import CseError as CseError
    from cse_core.errors import CseErrors as CseErrors
    from cse_core.files import open_bytes as open_bytes
    from cse_core.words import lacks_word_spaces as lacks_word_spaces
    from cse_defaults.texts.hub import hub_name as hub_name
    from cse_defaults.texts.hub import hub_rows as hub_rows
    from cse_defaults.words.bm25 import Bm25 as Bm25
    from cse_defaults.words.bm25 import Units as Units
    from cse_defaults.words.bm25 import fuse as fuse
    from cse_defaults.words.bm25 import stem_languages as stem_languages
    from cse_defaults.words.bm25 import units_of as units_of
    from cse_engine.compose.composition import Composition as Composition
    from cse_engine.run.recipe_file import as_recipe as as_recipe
    from cse_engine.runtime.device import resolve_device as resolve_device
    from cse_engine.runtime.device import resolve_precision as resolve_precision
    from cse_engine.step.step import StepResult as StepResult
    from cse_engine.step.views import PreparedView as PreparedView

_NAMES = {
    "cse.bootstrap": (
        *("LEVEL", "Comparison", "Difference", "compared", "corrected", "draws_of", "holm"),
    ),
    "cse.models": ("Model", "evaluate", "load"),
    "cse.plans": ("Plan", "plan"),
    "cse.runs": ("Run", "open_run", "resume", "train"),
    "cse.session": ("Session",),
    "cse.tables": (
        *("ARTICLE_COLUMNS", "TABLE_SUFFIXES", "article_text"),
        *("read_lines", "read_table", "table_name"),
    ),
    "cse_cli.models.encoding": ("TextEncoder", "maxsim", "similarities"),
    "cse_cli.models.geometry": ("effective_rank", "mean_cosine", "singular_values", "unit"),
    "cse_defaults.words.bm25": ("Bm25", "Units", "fuse", "stem_languages", "units_of"),
    "cse_cli.training.stored_run": ("StoredRun",),
    "cse_core": ("__version__",),
    "cse_core.words": ("lacks_word_spaces",),
    "cse_core.files": ("open_bytes",),
    "cse_defaults.texts.hub": ("hub_name", "hub_rows"),
    "cse_engine.step.step": ("StepResult",),
    "cse_engine.step.views": ("PreparedView",),
    "cse_core.errors": ("CseError", "CseErrors"),
    "cse_engine.compose.composition": ("Composition",),
    "cse_engine.runtime.device": ("resolve_device", "resolve_precision"),
    "cse_engine.run.recipe_file": ("as_recipe",),
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = ("questions",)
"""Modules whose names are public in them."""
__all__ = sorted((*_PLACES, *_MODULES))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
