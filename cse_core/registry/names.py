"""Names of texts: which source reads ``texts.csv.gz``, ``owner/name``, ``notes.db?table=notes``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cse_core.errors import CseError, did_you_mean
from cse_core.records import SourceSpec
from cse_core.registry.registry import Registered, Registry

_PACKED = re.compile(r"\.(gz|zst)$")
_OPTIONS = re.compile(r"(.+?)\?(\w+=[^&]*(?:&\w+=[^&]*)*)")


class Place(NamedTuple):
    """Where texts are: a record, the name that it reads, and the options behind that name."""

    spec: SourceSpec
    name: str
    options: Mapping[str, str]


def split_options(name: str) -> tuple[str, dict[str, str]]:
    """Split a name from the options behind its ``?``, unless a file has the whole name."""
    match = None if os.path.exists(os.path.expanduser(name)) else _OPTIONS.fullmatch(name)
    if match is None:
        return name, {}
    pairs = (part.partition("=") for part in match[2].split("&"))
    return match[1], {key: value for key, _, value in pairs}


def unpacked(name: str) -> str:
    """Give a file's name in lower case, without the ending of its compression."""
    return _PACKED.sub("", name.lower())


def ending_of(name: str, registry: Registry) -> str:
    """Find the ending of a file's name that some source reads, the longest; empty without one."""
    stem = unpacked(split_options(name)[0])
    endings = (ending for source in registry.all(SourceSpec) for ending in source.spec.endings)
    return max(filter(stem.endswith, endings), key=len, default="")


def source_of(name: str, registry: Registry) -> Place | None:
    """Find the source that reads a name; None where no source does.

    A data set in a package goes before a file of its name, an ending of a file before sources that
    know the form of a name. Of a folder the ending says nothing.

    Raises:
        CseError: If two sources read it, or the source has no such option.
    """
    base, options = split_options(name)
    matches: Sequence[Registered[SourceSpec]] = registry.all(SourceSpec)
    if base in registry.datasets():
        matches = [registry.datasets()[base]]
    elif not os.path.isdir(os.path.expanduser(base)) and (ending := ending_of(base, registry)):
        matches = [source for source in matches if ending in source.spec.endings]
    else:
        matches = [s for s in matches if s.spec.takes is not None and s.spec.takes(base)]
    if matches[1:]:
        owners = " and ".join(source.qualified for source in matches)
        hint = f"leave one out: --no-plugin {matches[-1].distribution}"
        raise CseError(f"several sources read it: {owners}", where=name, hint=hint)
    for option in options if matches else ():
        if option not in (allowed := matches[0].spec.parameters):
            hint = did_you_mean(option, allowed) if allowed else f"write {base}"
            raise CseError("has no such option", where=name, value=option, hint=hint)
    return Place(matches[0].spec, base, options) if matches else None
