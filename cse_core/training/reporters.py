"""The reporters that a run names in ``train.report``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pydantic import ValidationError

from cse_core.errors import CseError, did_you_mean
from cse_core.options import Options
from cse_core.records import ReporterSpec
from cse_core.registry.loading import load_factory
from cse_core.registry.registry import Registry
from cse_core.runtime.reporter import Reporter

WHERE = "train.report"


def reporters_of(wanted: Sequence[str], registry: Registry) -> dict[str, Callable[[], Reporter]]:
    """Return what makes each reporter, by the text that named it.

    Args:
        wanted: ``NAME`` or ``NAME:option=value,option=value``.
        registry: The installed parts.

    Raises:
        CseError: If there is none of a name, or it has no such option or value.
    """
    makers: dict[str, Callable[[], Reporter]] = {}
    for text in wanted:
        name, _, given = text.partition(":")
        spec = registry.reporter(name, where=WHERE).spec
        makers[text] = partial(_made, spec, _options(spec, text, given))
    return makers


def _made(spec: ReporterSpec, options: Options) -> Reporter:
    reporter: Reporter = load_factory(spec.factory, where=WHERE)(options)
    return reporter


def _options(spec: ReporterSpec, text: str, given: str) -> Options:
    values: dict[str, str] = {}
    for setting in filter(None, given.split(",")):
        option, equals, value = setting.partition("=")
        if not equals or option not in spec.options.model_fields:
            raise CseError(
                f"reporter {spec.name} has no such option",
                where=WHERE,
                value=text,
                hint=did_you_mean(option, spec.options.model_fields)
                + f"; written {spec.name}:OPTION=VALUE,OPTION=VALUE",
            )
        values[option] = value
    try:
        return spec.options.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        hint = "cse show-plugin shows the options of a reporter"
        raise CseError(what, where=WHERE, value=text, hint=hint) from None
