"""The space of a race: the points of a study, each a composition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from cse_core.errors import CseError, did_you_mean
from cse_core.loading import package_path

DEFAULT, STATIC = "encoder", "static"
BESIDE = "beside"
"""The start, and what the winner is judged beside."""
STATIC_RATE = 3e-3
"""Learning rate of these for a static model, where those of recipes change nothing."""
_KEYS = ("settings", "axes", "runs")
_FIXED: dict[str, Any] = {
    "model": "@model", "data": "@texts", "dev": "none", "data.held_out": 0,
    "train.keep_checkpoints": False,
}  # fmt: skip
"""Settings of every run: documents are held out for all of them at once."""
_SET_BY = {
    "model": "--model", "data": "FILE", "data.path": "FILE", "data.held_out": "FILE", "dev": "FILE",
    "train.max_steps": "--steps",
}  # fmt: skip


def space_of(
    given: Path | None, name: str = DEFAULT, *, length: int, rate: float | None = None
) -> str:
    """Return the study file whose points race.

    Args:
        given: A file of the user's, else that of a ``name`` here.
        name: Compositions of this distribution.
        length: Tokens of the longest text, in training if the file does not say it, and in scoring.
        rate: Learning rate of what does not say one itself; by default that of each recipe.

    Raises:
        CseError: If the file cannot be read, or holds something else.
    """
    source = given or package_path(f"cse_tune:spaces/{name}.toml", where="cse tune")
    try:
        table = tomlkit.parse(source.read_text(encoding="utf-8"))
    except OSError as error:
        what = error.strerror or "cannot be read"
        raise CseError(what, where="--space", value=str(source)) from None
    except (UnicodeDecodeError, TOMLKitError) as error:
        raise CseError(f"not TOML: {error}", where="--space", value=str(source)) from None
    for key in table:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS)
            what = f"a space has no key {key!r}; it has {', '.join(_KEYS)}"
            raise CseError(what, where="--space", value=str(source), hint=hint)
    settings = table.get("settings", {})
    try:
        paths = [*_settings(table.unwrap())]
    except (AttributeError, TypeError):  # a value that is not a table
        what, hint = "is not made of tables", "write it as the [settings] and [[axes]] of a study"
        raise CseError(what, where="--space", value=str(source), hint=hint) from None
    for path, value in paths:
        if path in _SET_BY and not str(value).startswith("@run:"):
            what, hint = f"{path} is set by cse tune", f"name it by {_SET_BY[path]}"
            raise CseError(what, where="--space", value=str(source), hint=hint)
    study = tomlkit.document()
    study["summary"] = f"The race of cse tune: {name if given is None else given.stem}"
    study["seeds"] = [1]
    rates = {} if rate is None else {"train.lr": rate}
    study["settings"] = {**_FIXED, "model.max_length": length, **rates, **settings}
    for key in ("runs", "axes"):
        if key in table:
            study[key] = table[key]
    study["scores"] = {
        "shown": ["@questions"],
        "options": {"collections": "@questions", "max-length": length, "precision": "auto"},
    }
    return tomlkit.dumps(study)


def _settings(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every path that a space sets, with its value."""
    places = [table.get("settings", {}), *table.get("runs", {}).values()]
    for axis in table.get("axes", ()):
        places += [axis.get("values", {}), *axis.get("places", ())]
    for place in places:
        yield from place.items()
