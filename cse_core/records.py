"""What plugins return: light, frozen records, which name a part and say where its code is.

``factory`` and ``options`` ("module:Class") are imported when needed, never before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, dataclass_transform

from cse_core.capabilities import INSTANCE, Capabilities, Need, Role, parse_needs
from cse_core.errors import CseError
from cse_core.loading import load_factory, package_path

if TYPE_CHECKING:
    from cse_core.options import Options

Kind = Literal[
    "aug", "pool", "transform", "positives", "negatives", "sampler", "loss", "branch", "metric",
    "adapter",
]  # fmt: skip
Point = Literal["text", "tokens", "word_embeddings", "input_embeddings"]
GradientMode = Literal["fresh", "previous"]
ColumnType = Literal["text", "float", "int", "label"]
"""What a column holds; a ``label`` is any text, of which each has a number."""


class PerText(NamedTuple):
    """A column with a number for each text of a view; in lists, where the texts are in lists.

    Attributes:
        kind: What the numbers are.
        view: The view.
    """

    kind: ColumnType
    view: str


Encoded = str | tuple[str, str | None]
"""A view that a part asks for, and the branch that encodes it where that is not its own."""
Reads = Mapping[str, ColumnType | PerText]
"""Columns of the data with what they hold."""


class Paper(str):
    """A short citation for listings, and BibTeX for model cards."""

    _file: str

    def __new__(cls, text: str, file: str) -> Paper:
        """Return the text of a file ``"package:paper.bib"`` with one entry or several."""
        made = super().__new__(cls, text)
        made._file = file
        return made

    @property
    def bibtex(self) -> str:
        """Read the BibTeX; a ``CseError`` if the file is missing."""
        return package_path(self._file, where="paper").read_text(encoding="utf-8").strip()


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class Record:
    """What a plugin brings; each subclass is a frozen dataclass, too.

    Attributes:
        name: Lower-case words joined by hyphens, without the paper's name. If two plugins share a
            name, ``distribution/name`` tells them apart.
        summary: One line for listings.
    """

    kind: ClassVar[str]
    """Name of the class in recipes, flags and listings."""
    noun: ClassVar[str]
    """What messages call one."""
    name: str
    summary: str

    def __init_subclass__(cls, **named: str) -> None:
        """Make the subclass a dataclass with a kind and a noun."""
        dataclass(frozen=True, kw_only=True)(cls)
        for name, value in named.items():
            setattr(cls, name, value)


class ConfiguredSpec(Record):
    """Record of a part or a reporter.

    Attributes:
        factory: ``"package.module:Class"``; a part is made as ``Class(options, setup)``.
        options: The same, a class that extends the options of its kind.
    """

    factory: str
    options: str = "cse_core.options:Options"

    @cached_property
    def options_class(self) -> type[Options]:
        """Return the class of ``options``; a ``CseError`` if it is missing or of another kind."""
        where, base = f"{self.kind}.{self.name}", load_factory(type(self).options)
        loaded = load_factory(self.options, where=where)
        if not (isinstance(loaded, type) and issubclass(loaded, base)):
            what = f"its options are not a subclass of cse_core.options.{base.__name__}"
            raise CseError(what, where=where, value=self.options, hint="correct its plugin")
        return loaded


class ComponentSpec(ConfiguredSpec):
    """A part: its name, where its code is, its options, what it provides and requires.

    Some fields may be functions of the options, as their types say.

    Attributes:
        provides: Capabilities (``cse_core.capabilities``); ``{name}`` stands for the instance's
            name, so that a part can be used twice.
        requires: The same; an inner tuple lists alternatives.
        reads: Columns that it reads with ``ctx.texts`` and ``ctx.values``, and so requires, with
            their types, or as a :class:`PerText`.
        encodes: Views that it reads from ``ctx.vectors``; without a branch, that of the part's
            option ``branch``, if any.
        paper: Citation for listings, a :class:`Paper` to be cited in model cards, or empty.
        hint: How a user can supply a missing requirement: a clause that continues the error after
            "or".
        plan_notes: Function of (options, ``RunInfo``) that returns lines for the plan.
        plan_warnings: The same, for lines that a user should look at.
        resolve_options: Function of (options, ``RunInfo``) that returns options with values that
            follow from the run, called before notes and warnings; a ValueError, one line, refuses
            the run.
    """

    kind: ClassVar[Kind]
    provides: Capabilities = ()
    requires: Capabilities = ()
    reads: Reads | Callable[[Any], Reads] = field(default_factory=dict, hash=False)
    encodes: tuple[Encoded, ...] | Callable[[Any], tuple[Encoded, ...]] = ()
    paper: str = ""
    hint: str = ""
    plan_notes: Callable[[Any, Any], list[str]] | None = None
    plan_warnings: Callable[[Any, Any], list[str]] | None = None
    resolve_options: Callable[[Any, Any], Options] | None = None

    def default_options(self) -> Options | None:
        """Return the options with nothing set, or None where one must be set."""
        try:
            return self.options_class()
        except ValueError:
            return None

    def declared(self, field: str, options: Options) -> Any:
        """Return a field with these options: its value, or what it returns as their function."""
        value = getattr(self, field)
        return value(options) if callable(value) else value

    def required(self, options: Any) -> tuple[tuple[Need, ...], ...]:
        """Read ``requires``: each need as the alternatives that meet it."""
        return parse_needs(self.declared("requires", options))

    def provided(self, options: Any, name: str | None = None) -> tuple[Need, ...]:
        """Read ``provides`` of an instance, by default that of the record's own name."""
        needs = (need for item in parse_needs(self.declared("provides", options)) for need in item)
        return tuple(Need(n.kind, n.name.replace(INSTANCE, name or self.name)) for n in needs)


class AugmenterSpec(ComponentSpec, kind="aug", noun="augmenter"):
    """Change the input of a view.

    Record of an ``Augmenter``.

    Attributes:
        views: Views that it changes by default.
        point: Where it acts.
        gradient: ``fresh`` or ``previous`` if it needs the gradient of the inputs.
    """

    options: str = "cse_core.options:AugmenterOptions"
    views: tuple[str, ...] = ("positive",)
    point: Point | Callable[[Any], Point] = "tokens"
    gradient: GradientMode | Callable[[Any], GradientMode | None] | None = None


class PoolSpec(ComponentSpec, kind="pool", noun="pooler"):
    """Make one vector of token states.

    Record of a pooling part: ``SliceSpec``, ``RowPoolerSpec``, ``MultiVectorSpec`` or ``HeadSpec``.
    """

    options: str = "cse_core.options:PoolerOptions"


class SliceSpec(PoolSpec):
    """Record of a ``SlicePooler``; a run has at most one.

    Attributes:
        slices_wrapped: Whether it cuts rows that already have special tokens, so that prompts are
            impossible.
    """

    slices_wrapped: bool | Callable[[Any], bool] = False


class RowPoolerSpec(PoolSpec):
    """Record of a ``RowPooler``; a run has one.

    Attributes:
        sentence_transformers: The equal pooling mode of sentence-transformers, if any.
        prompts: Whether it puts texts around the content.
    """

    sentence_transformers: str | Callable[[Any], str | None] | None = None
    prompts: bool | Callable[[Any], bool] = False


class MultiVectorSpec(PoolSpec):
    """Record of a ``MultiVectorPooler``, which provides its level.

    Attributes:
        sentence_transformers: Function of the options: the configuration of an equal
            ``MultiVectorMask`` of sentence-transformers, or None; of vectors of tokens.
    """

    sentence_transformers: Callable[[Any], dict[str, Any] | None] | None = None


class HeadSpec(PoolSpec):
    """Record of a ``Head``; a run has any number, in recipe order."""

    options: str = "cse_core.options:HeadOptions"


class TransformSpec(ComponentSpec, kind="transform", noun="transform"):
    """Change the vectors of a batch.

    Record of a ``Transform``.
    """

    options: str = "cse_core.options:TransformOptions"


class MinerSpec(ComponentSpec, kind="positives", noun="positive miner"):
    """Find more positives.

    Record of a ``PositiveMiner``.

    Attributes:
        rounds: Whether it mines between rounds.
        columns: Columns that its rounds have besides ``positive``. With ``text`` among them a round
            may have texts of its own instead of rows of the data.
    """

    options: str = "cse_core.options:MinerOptions"
    rounds: bool = False
    columns: tuple[str, ...] = ()


class StoreSpec(ComponentSpec, kind="negatives", noun="negative store"):
    """Add or weigh negatives.

    Record of a ``NegativeStore``.

    By default it encodes the view of its options.

    Attributes:
        keeps: Whether it keeps vectors of that view, with ``ctx.beside``.
        side: Branches with which it weighs what others keep.
    """

    options: str = "cse_core.options:StoreOptions"
    encodes: tuple[Encoded, ...] | Callable[[Any], tuple[Encoded, ...]] = lambda o: (o.view,)
    keeps: bool = False
    side: tuple[str, ...] | Callable[[Any], tuple[str, ...]] = ()


class SamplerSpec(ComponentSpec, kind="sampler", noun="sampler"):
    """Choose the rows of each batch.

    Record of a ``Sampler``; a run has at most one.
    """


class LossSpec(ComponentSpec, kind="loss", noun="loss"):
    """Minimise this; several are summed.

    Record of a ``Loss``.

    Attributes:
        contrastive: Whether it needs negatives; a run in which such a loss can have none is
            refused.
    """

    options: str = "cse_core.options:LossOptions"
    contrastive: bool = True


class TokenLossSpec(LossSpec):
    """Record of a ``TokenLoss``.

    Attributes:
        tokens: Views whose token states it reads, all of one branch.
        whole_batch: Whether a term compares rows, which are then encoded at once in one process. A
            loss at the level of a ``MultiVectorPooler`` compares them in any.
    """

    options: str = "cse_core.options:TokenLossOptions"
    contrastive: bool = False
    tokens: tuple[str, ...] | Callable[[Any], tuple[str, ...]] = lambda o: (o.view,)
    whole_batch: bool | Callable[[Any], bool] = False


class BranchSpec(ComponentSpec, kind="branch", noun="branch"):
    """Encode views with a copy of the encoder.

    Record of a ``Branch``.

    Attributes:
        trainable: Whether its views are encoded with gradient, like those of ``online``.
    """

    options: str = "cse_core.options:BranchOptions"
    trainable: bool = False


class MetricSpec(ComponentSpec, kind="metric", noun="metric"):
    """Compute a number on dev sets.

    Record of a ``Metric``.
    """


class AdapterSpec(ComponentSpec, kind="adapter", noun="adapter"):
    """Train only some weights of the encoder.

    Record of an ``Adapter``; a run has at most one.
    """


class RecipeSpec(Record, kind="recipe", noun="recipe"):
    """A recipe: a TOML file in package data.

    Attributes:
        path: ``"package:folder/file.toml"``.
        paper: Citation, a :class:`Paper` where model cards should cite it.
        sources: Texts that the paper trains on, as ``SuiteSpec.sources``.
    """

    path: str
    paper: str = ""
    sources: str = ""


class StudySpec(Record, kind="study", noun="study"):
    """A study: a TOML file in package data.

    Attributes:
        path: ``"package:studies/file.toml"``.
        paper: As that of a recipe.
    """

    path: str
    paper: str = ""


class EncoderSpec(Record, kind="encoder", noun="encoder"):
    """An encoder: a Hugging Face folder in package data.

    Attributes:
        path: ``"package:folder"``.
        synthetic: Whether it was trained on synthetic texts.
        licence: What its weights and training texts may be used for, for model cards.
    """

    path: str
    synthetic: bool = False
    licence: str = ""


class BackendSpec(Record, kind="backend", noun="backend"):
    """What reads, runs and saves the folders of one library's models.

    Attributes:
        factory: ``"module:Class"``; ``Class()`` is a ``cse_core.backend.Backend``.
    """

    factory: str


class SourceSpec(Record, kind="source", noun="data set"):
    """A source of texts: a data set in a package, files of a kind, or a place with names.

    Attributes:
        factory: ``"module:Class"``; ``Class()`` is a ``cse_core.texts.Source``, made again for each
            reading.
        endings: Endings of the files that it reads, ``(".xlsx",)``; ``.gz`` or ``.zst`` may stand
            behind each.
        takes: Whether it reads a name that no file with a known ending has; nothing is opened yet.
            A record with neither this nor ``endings`` is a data set, called by the record's name.
        parameters: Options that may stand behind a name: ``table`` in ``notes.db?table=notes``.
        synthetic: Whether the texts are synthetic; stated wherever a number from them is shown.
        licence: The licence of the texts, for model cards.
    """

    factory: str
    endings: tuple[str, ...] = ()
    takes: Callable[[str], bool] | None = None
    parameters: tuple[str, ...] = ()
    synthetic: bool = False
    licence: str = ""

    @property
    def is_dataset(self) -> bool:
        """Whether it is a data set in a package."""
        return not (self.endings or self.takes)


class Panel(StrEnum):
    """Headings of ``cse --help``, in its order."""

    USE = "Train and use a model"
    COMPARE = "Compare and look inside"
    PAPERS = "Commands of one paper"
    PLUGINS = "Plugins and recipes"


class CommandSpec(Record):
    """A command of ``cse``, named by an entry point of group ``cse.commands``.

    Attributes:
        name: What a user types after ``cse``; its entry point has dots for spaces.
        factory: ``"package.module:function"``, a function for ``typer.Typer.command``, or a
            ``typer.Typer`` with commands below this one; imported when the command runs.
        takes_choice: Whether it has the flags of ``cse train``, options of the chosen parts
            included.
        function: ``"package.module:function"`` that does the same from Python, called with the
            installed plugins, then with the arguments of ``cse.evaluate`` and the like.
        panel: Heading under which ``cse --help`` lists it.
        example: A command line that its help ends with.
    """

    factory: str
    takes_choice: bool = False
    function: str | None = None
    panel: Panel = Panel.COMPARE
    example: str = ""


class SuiteSpec(Record, kind="suite", noun="suite"):
    """An evaluation suite.

    Attributes:
        factory: ``"module:Class"``; ``Class()`` is a ``cse_core.suites.Suite``.
        dev: Whether ``cse train --dev FILE`` takes its files; ``"pairs"`` if these are graded
            pairs: then it also reads those of data sets, and is asked last; ``"rows"`` if it makes
            dev sets of rows that ``data.held_out`` keeps out of training, and has no files.
        sources: ``"package:folder/NAME.toml"`` of ``cse data fetch``, as in cse_evaluation.
    """

    factory: str
    dev: bool | Literal["pairs", "rows"] = False
    sources: str = ""


class ReporterSpec(ConfiguredSpec, kind="reporter", noun="reporter"):
    """A reporter of a training run: ``cse train --report NAME``.

    ``factory`` is called as ``Class(options)`` and makes a ``cse_core.reporter.Reporter``.
    """


class ViewSpec(Record, kind="view", noun="view"):
    """A view that recipes can name: its relation to the anchor, and the column of its texts.

    The core has ``anchor``, ``positive`` and ``negative``. One with a suffix (``positive-2``) has
    the same role; an undeclared one is auxiliary.

    Attributes:
        role: ``positive`` of its anchor, ``negative`` of every anchor, ``aux`` of those that ask.
        column: Column of its texts.
        optional: Whether it reads ``text`` if the data lacks that column.
        find: Function of a file's column names and of the text column, called unless
            ``data.columns`` names them: the column of its texts if none has the view's name.
    """

    role: Role = "aux"
    column: str
    optional: bool = False
    find: Callable[[Sequence[str], str], str | None] | None = None


class ScheduleSpec(Record, kind="schedule", noun="schedule"):
    """A shape of options that change over a round: ``loss.NAME.weight = "NAME(0.1,1)"``.

    Attributes:
        factory: ``"package.module:function"``, a ``cse_core.schedule.Curve``.
    """

    factory: str
