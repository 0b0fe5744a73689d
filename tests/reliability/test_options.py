"""Every numeric option of the core and of every plugin takes the same bad values."""

from collections.abc import Iterator
from functools import cache
from itertools import product

from cse_cli.plugins.installed import Installed
from cse_core.options import Options
from cse_core.schedule import Schedule
from cse_engine.compose.settings import CORE_OPTIONS
from cse_engine.compose.values import Accepted, FlagText, OptionReader
from tests.reliability.outcomes import LONGEST_LINE

NEVER = ("nan", "inf", "-inf", "[nan]", "1e400", "1/0", "(" * 10_000, "9" * 5_000,
         "-" + "9" * 5_000, "0x" + "f" * 5_000, "[" * 10_000, "{a=" * 5_000, "1+" * 5_000,
         "true", "false", "1e12", "1000000000000", "-1e12")  # fmt: skip
"""No numeric option has one of these values."""
EDGES = ("-1", "0", "", "1e-300", "-1e-300", "1e9", "0.5", "none", "auto", "0.1,0.2", "1 steps")
"""An option may have one of these or not: an answer in one line, or numbers within its bounds."""
LARGE = ("train.seed", "1e12"), ("train.seed", "1000000000000")
"""Values that are large and make sense."""


@cache
def models() -> dict[str, type[Options]]:
    """Return the options models of the core and of every installed part, by path."""
    registry = Installed().registry
    parts = {f"{part.spec.kind}.{part.name}": part.spec.options_class for part in registry.parts()}
    return {**CORE_OPTIONS, **parts}


def numeric_options() -> Iterator[tuple[str, str]]:
    for table, model in models().items():
        for name, info in model.model_fields.items():
            wanted = Accepted(info.annotation, metadata=info.metadata)
            if wanted.numeric or (wanted.item and wanted.item.numeric):
                yield table, name


def read(table: str, name: str, value: str) -> tuple[Options | None, list[str]]:
    reader = OptionReader()
    options = reader.options(models()[table], {name: FlagText(value)}, table)
    return options, [error.line() for error in reader.errors]


def test_a_number_that_makes_no_sense_is_refused_in_one_line() -> None:
    for (table, name), value in product(numeric_options(), (*NEVER, *EDGES)):
        info = models()[table].model_fields[name]
        texts = "a text" in Accepted(info.annotation).forms
        options, lines = read(table, name, value)
        option = f"{table}.{name}"
        assert (options is None) == bool(lines), (option, value[:40])
        if value in NEVER and not texts and (option, value) not in LARGE:
            assert lines, (option, value[:40])
        for line in lines:
            assert "\n" not in line and len(line) < LONGEST_LINE, line[:400]
            assert line.startswith(table), line
        if options is not None:
            numbers = _numbers(getattr(options, name))
            assert all(abs(number) < 2**63 for number in numbers), (option, value[:40])


def _numbers(value: object) -> list[float]:
    if isinstance(value, Schedule):
        return [value.start, value.end]
    if isinstance(value, tuple):
        return [number for each in value for number in _numbers(each)]
    return [value] if isinstance(value, int | float) else []


class Lists(Options):
    layers: tuple[int, ...] | None = None
    """Layers."""
    sizes: tuple[float, float] = (0.0, 1.0)
    """Two numbers."""


def test_one_number_is_a_list_of_one() -> None:
    assert OptionReader().options(Lists, {"layers": 2}, "part") == Lists(layers=(2,)), "in a file"
    for name, value, wanted in (
        ("layers", "2", (2,)),
        ("layers", "2,4", (2, 4)),
        ("layers", "[2]", (2,)),
        ("layers", "none", None),
        ("layers", "2.5", "must be a list of integers or none (got '2.5')"),
        ("layers", "true", "must be a list of integers or none (got True); "
         "a flag without a value means true: type --part.layers VALUE"),
        ("sizes", "2", "must be 2 numbers (got '2')"),
        ("sizes", "2,3", (2.0, 3.0)),
    ):  # fmt: skip
        reader = OptionReader()
        options = reader.options(Lists, {name: FlagText(value)}, "part")
        if isinstance(wanted, str):
            assert [error.line() for error in reader.errors] == [f"part.{name}: {wanted}"]
        else:
            assert options is not None and getattr(options, name) == wanted
