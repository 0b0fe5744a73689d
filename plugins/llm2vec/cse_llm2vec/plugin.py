"""The records of LLM2Vec: recipes of parts that others bring; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.records import Paper, RecipeSpec, StudySpec

PAPER = Paper(
    "BehnamGhader et al.: LLM2Vec, COLM 2024",
    bibtex=r"""@inproceedings{behnamghader-etal-2024-llm2vec,
    title = "{LLM2Vec}: Large Language Models Are Secretly Powerful Text Encoders",
    author = "BehnamGhader, Parishad and Adlakha, Vaibhav and Mosbach, Marius and
        Bahdanau, Dzmitry and Chapados, Nicolas and Reddy, Siva",
    booktitle = "First Conference on Language Modeling",
    year = "2024",
    url = "https://openreview.net/forum?id=IW1PR7vEBf",
}""",
)


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipes of both steps."""
    return [
        RecipeSpec(
            name="llm2vec-mntp",
            summary="a decoder learns to read in both directions by masked next-token prediction",
            path="cse_llm2vec:recipes/llm2vec-mntp.toml",
            paper=PAPER,
        ),
        RecipeSpec(
            name="llm2vec",
            summary="dropout views of what llm2vec-mntp trained, read in both directions",
            path="cse_llm2vec:recipes/llm2vec.toml",
            paper=PAPER,
        ),
    ]


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return both steps after one another."""
    return [
        StudySpec(
            name="llm2vec/steps",
            summary="the decoder, after masked next-token prediction, and after SimCSE",
            path="cse_llm2vec:studies/steps.toml",
            paper=PAPER,
        )
    ]
