"""Shell completion: names of parts with their summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, get_args

from cse_cli.plugins.installed import Installed
from cse_core.hookspecs import NOUNS
from cse_core.registry.plugin_info import Status

if TYPE_CHECKING:
    from cse_core.records import Kind

Complete = Callable[[str], Iterator[tuple[str, str]]]


def complete_part(kind: Kind) -> Complete:
    """Return a completion of the parts of a kind, behind ``+`` and ``~`` too."""

    def complete(incomplete: str) -> Iterator[tuple[str, str]]:
        sign = incomplete[:1] if incomplete[:1] in ("+", "~") else ""
        for part in Installed().registry.parts(kind):
            if part.name.startswith(incomplete.removeprefix(sign)):
                yield f"{sign}{part.name}", part.spec.summary

    return complete


def _complete(offered: Callable[[], Iterable[tuple[str, str]]]) -> Complete:
    """Return a completion of names, offered with what each is."""

    def complete(incomplete: str) -> Iterator[tuple[str, str]]:
        return (pair for pair in offered() if pair[0].startswith(incomplete))

    return complete


def _records(name: str) -> Complete:
    """Return a completion of the installed records of a class."""

    def offered() -> Iterator[tuple[str, str]]:
        from cse_core import records

        installed = Installed().registry.all(getattr(records, name))
        return ((record.name, record.spec.summary) for record in installed)

    return _complete(offered)


complete_kind = _complete(NOUNS.items)
complete_status = _complete(lambda: ((status, "") for status in get_args(Status)))
complete_plugin = _complete(lambda: ((i.name, i.summary) for i in Installed().manager.infos))
complete_recipe = _records("RecipeSpec")
complete_model = _records("EncoderSpec")
complete_suite = _records("SuiteSpec")
complete_reporter = _records("ReporterSpec")
complete_data = _complete(lambda: ((n, d.summary) for n, d in Installed().datasets.items()))
