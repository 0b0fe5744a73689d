"""The records of LLM2Vec, PromptEOL and Echo embeddings; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import Paper, RecipeSpec, RowPoolerSpec, StudySpec

PAPER = Paper(
    "BehnamGhader et al.: LLM2Vec, COLM 2024",
    "cse_llm2vec:papers/behnamghader-etal-2024-llm2vec.bib",
)
PROMPTEOL = Paper(
    "Jiang et al.: Scaling Sentence Embeddings with Large Language Models, Findings of EMNLP 2024",
    "cse_llm2vec:papers/jiang-etal-2024-scaling.bib",
)
ECHO = Paper(
    "Springer et al.: Repetition Improves Language Model Embeddings, ICLR 2025",
    "cse_llm2vec:papers/springer-etal-2025-repetition.bib",
)


@hookimpl
def cse_poolers() -> list[RowPoolerSpec]:
    """Return the poolers of decoders that read from left to right."""
    return [
        RowPoolerSpec(
            name="one-word",
            summary="the last state of a template that asks for the text in one word",
            factory="cse_llm2vec.one_word:OneWord",
            options="cse_llm2vec.options:OneWordOptions",
            prompts=True,
            paper=PROMPTEOL,
        ),
        RowPoolerSpec(
            name="echo",
            summary="the mean of a text's second reading",
            factory="cse_llm2vec.echo:Echo",
            options="cse_llm2vec.options:EchoOptions",
            prompts=True,
            requires=lambda given: ("end-token",) if given.end else (),
            paper=ECHO,
        ),
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipes of both steps of LLM2Vec, of PromptEOL and of Echo embeddings."""
    folder = "cse_llm2vec:recipes"
    return [
        *records_of_files(RecipeSpec, folder, "llm2vec-mntp", paper=PAPER),
        *records_of_files(RecipeSpec, folder, "llm2vec", paper=PAPER),
        *records_of_files(RecipeSpec, folder, "prompteol", paper=PROMPTEOL),
        *records_of_files(RecipeSpec, folder, "echo", paper=ECHO),
    ]


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return both steps after one another, and readings without training."""
    folder = "cse_llm2vec:studies"
    return [
        *records_of_files(StudySpec, folder, "steps", prefix="llm2vec/", paper=PAPER),
        *records_of_files(StudySpec, folder, "readings", prefix="llm2vec/", paper=PROMPTEOL),
    ]
