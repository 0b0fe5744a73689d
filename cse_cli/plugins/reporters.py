"""The reporters that a run names in ``train.report``, beside that of its caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partialmethod
from typing import TYPE_CHECKING, Any

from cse_core.errors import CseError, describe, raise_all
from cse_core.loading import load_factory
from cse_core.records import ReporterSpec
from cse_core.registry.registry import Registry
from cse_core.reporter import Reporter
from cse_engine.compose.values import FlagText, OptionReader

if TYPE_CHECKING:
    from torch import Tensor

WHERE = "train.report"


class Reporters(Reporter):
    """One reporter, and others beside it that may fail; each method calls all.

    Args:
        own: The reporter of the caller; what it raises is raised.
        makers: Make the others, by name; they hear nothing before the run starts.
    """

    def __init__(self, own: Reporter, makers: Mapping[str, Callable[[], Reporter]]) -> None:
        self._own = own
        self._others: dict[str, Reporter] = {}
        self._started = False
        for name, make in makers.items():
            with self._guarded(name):
                self._others[name] = make()

    def measure(self, anchors: Tensor) -> dict[str, float]:
        """Collect the numbers of all."""
        answers = self._call("measure", anchors, take=_numbers)
        return dict(answers)

    def check(self, line: Mapping[str, float], sizes: Mapping[str, int]) -> list[str]:
        """Collect the warnings of all."""
        return self._call("check", line, sizes, take=list)

    def _call(
        self, method: str, *values: Any, take: Callable[[Any], list[Any]] = lambda answer: []
    ) -> list[Any]:
        """Call a method of all, and join what ``take`` makes of the answers."""
        self._started = self._started or method == "start"
        answers = take(getattr(self._own, method)(*values))
        for name, other in list(self._others.items()) if self._started else ():
            with self._guarded(name):
                answers += take(getattr(other, method)(*values))
        return answers

    @contextmanager
    def _guarded(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if isinstance(error, CseError) and not self._started:
                raise
            self._others.pop(name, None)
            what = f"reporter {name} failed and gets no further messages: {describe(error)}"
            self._own.warning(what)


def _numbers(answer: Mapping[str, float]) -> list[tuple[str, float]]:
    return [(name, float(value)) for name, value in answer.items()]


for _event in vars(Reporter).keys() - vars(Reporters).keys():
    if not _event.startswith("_"):
        setattr(Reporters, _event, partialmethod(Reporters._call, _event))


def reporters_of(wanted: Sequence[str], registry: Registry) -> dict[str, Callable[[], Reporter]]:
    """Return the factory of each reporter, by the text that named it: ``NAME:OPTION=VALUE,…``."""
    makers: dict[str, Any] = {}
    reader = OptionReader()
    for text in wanted:
        name, _, settings = text.partition(":")
        spec = registry.one(ReporterSpec, name, where=WHERE).spec
        given: dict[str, FlagText] = {}
        for setting in filter(None, settings.split(",")):
            option, equals, value = setting.partition("=")
            if not equals:
                hint = f"write {name}:OPTION=VALUE,OPTION=VALUE"
                raise CseError("is not OPTION=VALUE", where=WHERE, value=setting, hint=hint)
            given[option] = FlagText(value)
        options = reader.options(spec.options_class, given, f"{WHERE}: {name}")
        makers[text] = lambda s=spec, o=options: load_factory(s.factory, where=WHERE)(o)
    raise_all(reader.errors)
    return makers
