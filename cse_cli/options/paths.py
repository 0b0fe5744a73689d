"""Every option that a run has, by its path: what the command line makes flags of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cse_cli.options.descriptions import describe
from cse_core.options import Options
from cse_engine.compose.composition import Composition, PlannedPart
from cse_engine.compose.settings import CORE_OPTIONS, ViewOptions
from cse_engine.compose.values import describe_type, format_value


@dataclass(frozen=True)
class OptionPath:
    """An option of a run.

    Attributes:
        path: ``kind.name.option`` or ``train.lr``.
        type: What it accepts, in words.
        default: The value that it has without a flag, as a user would type it.
        description: What it does, in one line.
        panel: Heading under which help shows it.
    """

    path: str
    type: str
    default: str
    description: str
    panel: str


def option_paths(source: Composition | Iterable[PlannedPart] = ()) -> list[OptionPath]:
    """Return the options of a composition with its values, or those of parts beside the core's."""
    if isinstance(source, Composition):
        parts: Iterable[PlannedPart] = source.parts
        core: Mapping[str, Options] = {name: getattr(source, name) for name in CORE_OPTIONS}
        views = {
            view.name: ViewOptions(branch=view.branch, column=view.column) for view in source.views
        }
    else:
        parts = source
        core = {name: options() for name, options in CORE_OPTIONS.items()}
        views = {}
    paths = [path for name, options in core.items() for path in _of(options, name, name)]
    for name, options in views.items():
        paths += _of(options, f"views.{name}", "views")
    for part in parts:
        paths += _of(part.options, part.path, f"{part.path} ({part.owner})")
    return paths


def _of(options: Options, path: str, heading: str) -> Iterator[OptionPath]:
    for name, info in type(options).model_fields.items():
        yield OptionPath(
            path=f"{path}.{name}",
            type=describe_type(info),
            default=format_value(getattr(options, name)),
            description=describe(type(options), name),
            panel=heading,
        )
