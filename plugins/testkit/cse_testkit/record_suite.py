"""What the record of every part promises."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from cse_cli.options.descriptions import describe
from cse_cli.plugins.record_checks import PluginFault, check_record
from cse_core import parts as protocols
from cse_core.capabilities import flatten, is_known
from cse_core.options import Options
from cse_core.records import (
    AdapterSpec,
    AugmenterSpec,
    BranchSpec,
    ComponentSpec,
    HeadSpec,
    Kind,
    LossSpec,
    MetricSpec,
    MinerSpec,
    RowPoolerSpec,
    RunInfo,
    SliceSpec,
    StoreSpec,
)
from cse_core.registry.registry import Registered, Registry
from cse_core.runtime.loading import load_factory
from cse_testkit.installed import installed_registry
from cse_testkit.promises import BrokenPromise, after, promise
from cse_testkit.recipe_settings import ENCODERS

PROTOCOLS: dict[type[ComponentSpec], type] = {
    AugmenterSpec: protocols.Augmenter,
    MinerSpec: protocols.PositiveMiner,
    StoreSpec: protocols.NegativeStore,
    LossSpec: protocols.Loss,
    BranchSpec: protocols.Branch,
    MetricSpec: protocols.Metric,
    AdapterSpec: protocols.Adapter,
    SliceSpec: protocols.SlicePooler,
    RowPoolerSpec: protocols.RowPooler,
    HeadSpec: protocols.Head,
}
"""What the factory of a record must return."""


class RecordSuite:
    """What the record of every part promises; the base of all suites of parts.

    Attributes:
        part: Kind and name.
        options: Options that differ from the defaults.
        registry: Where parts are found; None is what is installed.
        first: Promises that others wait for, beside those that the kit names itself.
    """

    part: ClassVar[tuple[Kind, str]]
    options: ClassVar[Mapping[str, Any]] = {}
    registry: ClassVar[Registry | None] = None
    first: ClassVar[Mapping[str, Sequence[str]]] = {}

    @classmethod
    def found(cls) -> Registered[ComponentSpec]:
        """Return the part's record and who brings it."""
        return (cls.registry or installed_registry()).find(*cls.part)

    # -- the record ---------------------------------------------------------------------------

    def test_its_record_is_valid(self) -> None:
        """Name, summary, factory and tokens have the form that the registry takes."""
        spec = self.found().spec
        try:
            check_record(spec, f"{self.part[0]} {spec.name}")
        except PluginFault as fault:
            raise BrokenPromise(str(fault)) from None

    @after("test_its_record_is_valid")
    def test_its_tokens_are_in_the_vocabulary(self) -> None:
        """Provides and requires use the closed vocabulary, with the suite's options too."""
        spec = self.found().spec
        options = spec.options(**self.options) if self.options else spec.default_options()
        if options is None:
            return
        for name, tokens in (
            ("provides", spec.provided(options)),
            ("requires", spec.required(options)),
        ):
            wrong = [token for token in flatten(tokens) if not is_known(token)]
            promise(not wrong, f"{name} has tokens outside the vocabulary: {wrong}")

    @after("test_its_record_is_valid")
    def test_its_options_are_described_and_frozen(self) -> None:
        """Each option has a text, unknown names are refused, values cannot be changed."""
        model = self.found().spec.options
        silent = [name for name in model.model_fields if not describe(model, name)]
        promise(not silent, f"options without a description: {', '.join(silent)}")
        config = model.model_config
        promise(config.get("frozen") is True, "its options model is not frozen")
        promise(config.get("extra") == "forbid", "its options model takes unknown names")

    @after("test_its_record_is_valid")
    def test_its_default_options_are_valid(self) -> None:
        """The defaults pass the model's own checks, which pydantic does not run by itself."""
        spec = self.found().spec
        options = spec.default_options()
        if options is not None:
            _check_defaults(options)

    @after("test_its_default_options_are_valid")
    def test_its_notes_are_lines(self) -> None:
        """Lines of the plan are lists of texts; ``resolve_options`` returns its options model."""
        spec = self.found().spec
        options = spec.options(**self.options) if self.options else spec.default_options()
        if options is None:
            return
        for facts in (*ENCODERS.values(), RunInfo(model="one of which nothing is known")):
            for name in ("plan_notes", "plan_warnings"):
                asked = getattr(spec, name)
                lines = [] if asked is None else asked(options, facts)
                fine = isinstance(lines, list) and all(_is_line(line) for line in lines)
                promise(fine, f"{name} returns {lines!r} for {facts.model}, not a list of lines")
            derived = options if spec.resolve_options is None else _derived(spec, options, facts)
            promise(
                isinstance(derived, spec.options),
                f"resolve_options returns a {type(derived).__name__} for {facts.model}, "
                f"not {spec.options.__name__}",
            )

    @after("test_its_record_is_valid")
    def test_its_factory_makes_a_part_of_its_kind(self) -> None:
        """The factory is importable and a subclass of its kind's protocol."""
        spec = self.found().spec
        made = load_factory(spec.factory)
        expected = PROTOCOLS[type(spec)]
        promise(
            inspect.isclass(made) and issubclass(made, expected),
            f"{spec.factory} is not a subclass of cse_core.parts.{expected.__name__}",
        )


def _is_line(line: object) -> bool:
    return isinstance(line, str) and bool(line.strip()) and "\n" not in line


def _derived(spec: ComponentSpec, options: Options, facts: RunInfo) -> Any:
    """Return what ``resolve_options`` returns; where it refuses, the options themselves."""
    try:
        return cast(Any, spec.resolve_options)(options, facts)
    except ValueError:
        return options


def _check_defaults(options: Options) -> None:
    try:
        type(options).model_validate(
            {name: getattr(options, name) for name in type(options).model_fields}
        )
    except ValueError as error:
        line = " ".join(str(error).split())
        raise BrokenPromise(f"its default options are refused by their own model: {line}") from None
