"""What ``cse eval`` and ``cse.evaluate`` are asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_core.errors import CseError, did_you_mean

if TYPE_CHECKING:
    from cse_evaluation.labelled import LongTexts


@dataclass(frozen=True)
class Request:
    """What to score, on what, how; each field is the option of ``cse eval`` of its name."""

    models: tuple[str, ...]
    suite: tuple[str, ...] = ()
    data_dir: Path | None = None
    pairs: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    labelled: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    similarity: str = "cosine"
    long_texts: LongTexts | None = None
    classifier: str = "exact"
    seed: int = 1111
    idf: str | None = None
    pooling: str | None = None
    max_length: int | None = None
    device: str = "auto"
    precision: str = "fp32"
    batch_tokens: int | None = None
    pairs_out: Path | None = None
    items_out: Path | None = None
    metric: tuple[str, ...] = ()
    no_baselines: bool = False

    @classmethod
    def of(cls, models: Sequence[str], options: Mapping[str, Any]) -> Request:
        """Return a request; in Python one name stands for a list of one.

        Raises:
            CseError: If an option is unknown, or no model is named.
        """
        known = {each.name: each for each in fields(cls) if each.name != "models"}
        values: dict[str, Any] = {}
        for name, value in options.items():
            if name not in known:
                hint = did_you_mean(name, known)
                raise CseError("unknown option", where=name, value=value, hint=hint)
            if known[name].default == ():
                one = isinstance(value, str | Path)
                value = tuple(map(str, [value] if one else value or ()))
            elif name in ("data_dir", "pairs_out", "items_out") and value is not None:
                value = Path(value)
            values[name] = value
        if not models:
            raise CseError("no model is named", hint="name a run, a model folder or starter")
        return cls(tuple(models), **values)

    @property
    def outs(self) -> dict[str, Path | None]:
        """Return the files to write, by flag."""
        return {"--pairs-out": self.pairs_out, "--items-out": self.items_out}

    def changed(self) -> dict[str, Any]:
        """Return the options that are not the defaults, files by their whole paths."""
        found: dict[str, Any] = {}
        for each in fields(self)[1:]:
            value = getattr(self, each.name)
            if isinstance(value, tuple) and value:
                found[each.name] = [_whole(one) for one in value]
            elif value != each.default:
                found[each.name] = _whole(value)
        return found


def _whole(value: Any) -> Any:
    there = isinstance(value, Path) or (isinstance(value, str) and os.path.isfile(value))
    return os.path.abspath(value) if there else value
