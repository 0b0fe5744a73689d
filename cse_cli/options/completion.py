"""What the shell offers at the tabulator key: names of parts with their summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, get_args

from cse_cli.plugins.installed import Installed

if TYPE_CHECKING:
    from cse_core.records import Kind

Complete = Callable[[str], Iterator[tuple[str, str]]]


def complete_part(kind: Kind) -> Complete:
    """Return a completion of the parts of a kind, behind ``+`` and ``~`` too."""

    def complete(incomplete: str) -> Iterator[tuple[str, str]]:
        sign = incomplete[:1] if incomplete[:1] in ("+", "~") else ""
        for part in Installed().registry.parts(kind):
            yield f"{sign}{part.name}", part.spec.summary

    return _matching(complete)


def complete_kind(incomplete: str) -> Iterator[tuple[str, str]]:
    """Complete a kind of part."""
    from cse_core.registry.plugin_info import NOUNS

    return _starting(incomplete, NOUNS.items())


def complete_status(incomplete: str) -> Iterator[tuple[str, str]]:
    """Complete a plugin's status."""
    from cse_core.registry.plugin_info import Status

    return _starting(incomplete, ((status, "") for status in get_args(Status)))


def complete_plugin(incomplete: str) -> Iterator[tuple[str, str]]:
    """Complete a plugin's name."""
    return _starting(incomplete, ((i.name, i.summary) for i in Installed().manager.infos))


def complete_recipe(incomplete: str) -> Iterator[tuple[str, str]]:
    """Complete a recipe's name."""
    return _starting(incomplete, _named(Installed().registry.recipes()))


def complete_model(incomplete: str) -> Iterator[tuple[str, str]]:
    """Complete an installed encoder's name."""
    return _starting(incomplete, _named(Installed().registry.encoders()))


def complete_suite(incomplete: str) -> Iterator[tuple[str, str]]:
    """Complete an installed suite's name."""
    return _starting(incomplete, _named(Installed().registry.suites()))


def complete_reporter(incomplete: str) -> Iterator[tuple[str, str]]:
    """Complete an installed reporter's name."""
    return _starting(incomplete, _named(Installed().registry.reporters()))


def complete_data(incomplete: str) -> Iterator[tuple[str, str]]:
    """Complete an installed data set's name."""
    return _starting(incomplete, _named(Installed().registry.datasets()))


def _named(found: Any) -> Iterator[tuple[str, str]]:
    return ((each.name, each.spec.summary) for each in found)


def _starting(incomplete: str, offered: Any) -> Iterator[tuple[str, str]]:
    return ((name, summary) for name, summary in offered if name.startswith(incomplete))


def _matching(offer: Complete) -> Complete:
    def complete(incomplete: str) -> Iterator[tuple[str, str]]:
        return _starting(incomplete, offer(incomplete))

    return complete
