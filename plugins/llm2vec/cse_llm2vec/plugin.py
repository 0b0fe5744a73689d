"""The records of LLM2Vec: recipes of parts that others bring; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import Paper, RecipeSpec, StudySpec

PAPER = Paper("BehnamGhader et al.: LLM2Vec, COLM 2024", "cse_llm2vec:paper.bib")


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipes of both steps."""
    return records_of_files(RecipeSpec, "cse_llm2vec:recipes", paper=PAPER)


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return both steps after one another."""
    return records_of_files(StudySpec, "cse_llm2vec:studies", prefix="llm2vec/", paper=PAPER)
