"""Records of what is not a part: recipes, studies, encoders, data sets, suites and the like.

Plugins import them from ``cse_core.records``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from cse_core.options import Options

DataKind = Literal["recipe", "encoder", "dataset", "suite", "reporter", "study"]


class Paper(str):
    """A citation in a few words, as listings show it, and its BibTeX for model cards."""

    bibtex: str
    """One entry or several."""

    def __new__(cls, text: str, *, bibtex: str) -> Paper:
        """Return the text with its BibTeX."""
        made = super().__new__(cls, text)
        made.bibtex = bibtex
        return made


@dataclass(frozen=True, kw_only=True)
class NamedSpec:
    """What every record has.

    Attributes:
        name: Lower-case words joined by hyphens, without the paper's name. Two plugins may have one
            name: ``distribution/name`` then says which.
        summary: One line for listings.
    """

    name: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class RecipeSpec(NamedSpec):
    """A named composition with a paper's settings: a TOML file in package data.

    Attributes:
        path: ``"package:folder/file.toml"``.
        paper: Citation, a :class:`Paper` where model cards should cite it.
    """

    kind: ClassVar[DataKind] = "recipe"

    path: str
    paper: str = ""


@dataclass(frozen=True, kw_only=True)
class StudySpec(NamedSpec):
    """Runs that are compared, as in a table of a paper: what ``cse study`` runs.

    Attributes:
        path: ``"package:studies/file.toml"``.
        paper: As that of a recipe.
    """

    kind: ClassVar[DataKind] = "study"

    path: str
    paper: str = ""


@dataclass(frozen=True, kw_only=True)
class EncoderSpec(NamedSpec):
    """An encoder that comes with a plugin: a Hugging Face folder in package data.

    Attributes:
        path: ``"package:folder"``.
        synthetic: Whether it was trained on made-up texts.
        licence: What its weights and the texts behind them may be used for, for model cards.
    """

    kind: ClassVar[DataKind] = "encoder"

    path: str
    synthetic: bool = False
    licence: str = ""


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(NamedSpec):
    """Texts and graded pairs that come with a plugin.

    Attributes:
        factory: ``"module:Class"``; ``Class()`` has ``rows() -> Iterator[dict[str, str]]`` and
            ``pairs(split) -> list[dict]`` (sentence1, sentence2, score, subset).
        synthetic: Whether the texts are made up; said wherever a number from them is shown.
        licence: The licence of the texts, for model cards.
    """

    kind: ClassVar[DataKind] = "dataset"

    factory: str
    synthetic: bool = False
    licence: str = ""


@dataclass(frozen=True, kw_only=True)
class CommandSpec(NamedSpec):
    """A command of ``cse``: what an entry point of group ``cse.commands`` names.

    Attributes:
        name: What a user types after ``cse``: ``"eval"``, ``"data fetch"``. The entry point
            has the same name, with dots for spaces.
        factory: ``"package.module:function"``, a function as ``typer.Typer.command`` takes it, or
            a ``typer.Typer`` with commands below this one; imported when the command is run.
        takes_choice: Whether it chooses a composition as ``cse train`` does: every option of the
            chosen parts is then a flag of it.
        function: ``"package.module:function"`` that does the same from Python: called with the
            installed plugins, then as ``cse.evaluate`` and the like are.
    """

    factory: str
    takes_choice: bool = False
    function: str | None = None


@dataclass(frozen=True, kw_only=True)
class SuiteSpec(NamedSpec):
    """A suite that ``cse eval --suite NAME`` scores encoders on.

    Attributes:
        factory: ``"module:Class"``; ``Class()`` is a ``cse_core.evaluation.suites.Suite``.
        dev: Whether training may be scored on its files too: ``cse train --dev FILE``; ``"pairs"``
            where these are graded pairs, and those of a data set too. It is asked last.
        sources: ``"package:folder/NAME.toml"``, from where `cse data fetch NAME` takes its files.
    """

    kind: ClassVar[DataKind] = "suite"

    factory: str
    dev: bool | Literal["pairs"] = False
    sources: str = ""


@dataclass(frozen=True, kw_only=True)
class ReporterSpec(NamedSpec):
    """A reporter of a training run: ``cse train --report NAME``.

    Attributes:
        factory: ``"module:Class"``; ``Class(options)`` is a ``cse_core.runtime.reporter.Reporter``.
        options: Its options model.
    """

    kind: ClassVar[DataKind] = "reporter"

    factory: str
    options: type[Options] = Options
