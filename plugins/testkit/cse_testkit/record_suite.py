"""The suite of every record of a part, and what it says."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any, ClassVar

from cse_cli.api import Registered, describe
from cse_core import parts
from cse_core.capabilities import describe_fault, parse_needs
from cse_core.loading import load_factory
from cse_core.options import Options
from cse_core.records import ComponentSpec, Kind
from cse_testkit.promises import NotAsked, Suite
from cse_testkit.tiny import declared_unchecked


class RecordSuite(Suite):
    """What the record of every part promises; the base of all suites of parts.

    Attributes:
        base: What its factory may be a subclass of; the suite of the kind says it.
        part: Kind and name.
        options: Options that differ from the defaults.
    """

    base: ClassVar[tuple[type[parts.Part], ...]]
    part: ClassVar[tuple[Kind, str]]
    options: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def found(cls) -> Registered[ComponentSpec]:
        """Return the part's record and who brings it."""
        return cls.installed().find(*cls.part)

    @classmethod
    def package(cls) -> str:
        """Return the package of the part."""
        return cls.found().spec.factory.partition(".")[0].partition(":")[0]

    @classmethod
    def unchecked(cls) -> Collection[str]:
        """Return the options that do nothing in a few steps, and ``gradient``, as declared."""
        found = cls.found()
        return declared_unchecked(found.distribution, f"{found.spec.kind}.{found.name}")

    @classmethod
    def given_options(cls) -> Options:
        """Return the suite's options, or the defaults; not asked where one has no default."""
        spec = cls.found().spec
        options = spec.options_class(**cls.options) if cls.options else spec.default_options()
        if options is None:
            where = f"[tool.cse.options.{spec.kind}.{spec.name}]"
            raise NotAsked(f"an option has no default: give one in {where}, or the suite options")
        return options

    def promise_its_options_are_described(self) -> None:
        """Each option has a text."""
        model = self.found().spec.options_class
        silent = [name for name in model.model_fields if not describe(model, name)]
        assert not silent, f"options without a description: {', '.join(silent)}"

    def promise_its_default_options_are_valid(self) -> None:
        """The defaults pass the model's own checks, which pydantic does not run by itself."""
        model, options = self.found().spec.options_class, self.found().spec.default_options()
        try:
            if options is not None:
                model.model_validate({name: getattr(options, name) for name in model.model_fields})
        except ValueError as error:
            raise AssertionError(f"are refused by their own model: {error}") from None

    def promise_its_capabilities_are_known(self) -> None:
        """What it provides and requires are capabilities, also where its options decide."""
        spec, options = self.found().spec, self.given_options()
        for field in ("provides", "requires"):
            for need in chain.from_iterable(parse_needs(spec.declared(field, options))):
                fault = describe_fault(str(need))
                assert fault is None, f"{field} has {str(need)!r}, not a capability; {fault}"

    def promise_its_factory_makes_a_part_of_its_kind(self) -> None:
        """The factory is importable and a subclass of its kind's base class."""
        factory = self.found().spec.factory
        made, names = load_factory(factory), " or ".join(base.__name__ for base in self.base)
        fine = inspect.isclass(made) and issubclass(made, self.base)
        assert fine, f"{factory} is not a subclass of cse_core.parts.{names}"
