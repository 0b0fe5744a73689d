"""Checks of lengths against a model, and of sizes of losses against the vectors of each level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cse_core.errors import CseError
from cse_core.records import MultiVectorSpec, SliceSpec
from cse_core.registry.plugin_info import TOOLKIT
from cse_core.registry.registry import Registry
from cse_engine.compose.composition import Composition, Problem


def check_sizes(run: Composition, registry: Registry) -> Iterator[Problem]:
    """Check lengths against the model, and the sizes of losses against its vectors."""
    facts, problems = run.facts, list[Problem]()
    widths = vector_sizes(run, problems)
    yield from problems
    if (width := widths["row"]) is not None:
        yield from check_dimensions(run, width)
    # With a slicing part max_length counts a text's content before it is cut, not a row.
    trained = 0 if run.pools(SliceSpec) else run.model.max_length
    later = 0 if run.inference.slice else run.inference.max_length or 0
    for where, longest in (("model.max_length", trained), ("inference.max_length", later)):
        if facts.positions is not None and longest > facts.positions:
            what = f"exceeds the {facts.positions} positions of {facts.model}"
            hint = f"--set {where}={facts.positions}"
            yield CseError(what, where=where, value=longest, hint=hint)


def vector_sizes(run: Composition, problems: list[Problem]) -> dict[str, int | None]:
    """Return how many numbers a vector of each level has, None where only a made part knows."""
    several = ("row", *several_levels(run))
    widths: dict[str, int | None] = dict.fromkeys(several, run.facts.hidden)
    for part in run.of("pool"):
        level = getattr(part.options, "level", "row")
        if isinstance(part.spec, MultiVectorSpec):
            level = next(need.name for need in part.provides if need.kind == "level")
        elif level not in (*widths, "all"):
            hint = f"write {' or '.join(widths)}, or all"
            what = "nothing makes vectors of this level"
            problems.append(CseError(what, where=f"{part.path}.level", value=level, hint=hint))
        levels = (*widths,) if level == "all" else (level,)
        if len({widths.get(name) for name in levels} - {None}) > 1:
            problems.append(several_sizes(part.path, widths))
        if hasattr(part.options, "dimension"):
            size = part.options.dimension
            widths |= {name: size or widths.get(name) for name in levels}
        elif part.distribution != TOOLKIT and not isinstance(part.spec, SliceSpec):
            widths |= dict.fromkeys(levels)  # it is known when the part is made
    return widths


def several_sizes(path: str, sizes: Mapping[str, int | None]) -> CseError:
    """Return the error of a head that vectors of several sizes reach, by their levels."""
    said = " and ".join(f"{size} numbers (level {level})" for level, size in sizes.items())
    named = " or ".join(f"--{path}.level {level}" for level in sizes)
    hint = f"choose one: {named}, or leave it out: --pool ~{path.rpartition('.')[2]}"
    return CseError(f"reaches vectors of {said}", where=f"{path}.level", value="all", hint=hint)


def several_levels(run: Composition) -> tuple[str, ...]:
    """Return the levels of which a row has several vectors."""
    made = run.made("level").items()
    return tuple(name for name, part in made if isinstance(part.spec, MultiVectorSpec))


def check_dimensions(run: Composition, width: int) -> Iterator[CseError]:
    """Refuse sizes of losses beyond those of the vectors of rows."""
    several = several_levels(run)
    for loss, options in run.losses():
        if options.level not in several and (most := max(options.dimensions, default=0)) > width:
            hint = f"name sizes of at most {width}, that of the vectors"
            where = f"{loss.path}.dimensions"
            yield CseError("is more than the vectors have", where=where, value=most, hint=hint)
