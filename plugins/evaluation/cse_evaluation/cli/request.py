"""What ``cse eval`` and ``cse.evaluate`` are asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cse_core.errors import CseError, did_you_mean


@dataclass(frozen=True)
class Request:
    """What to score, on what, how; each field is the option of ``cse eval`` of its name.

    Attributes:
        settings: ``aug.NAME.OPTION=VALUE``, the values of ``--set``.
    """

    models: tuple[str, ...]
    suite: tuple[str, ...] = ()
    data_dir: Path | None = None
    pairs: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    labelled: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    similarity: str = "cosine"
    index: str = "auto"
    long_texts: str | None = None
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
    aug: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    dropout: bool = False
    no_baselines: bool = False

    @classmethod
    def of(cls, models: Sequence[str], options: dict[str, Any]) -> Request:
        """Return a request whose options come from Python: one name stands for a list of one.

        Raises:
            CseError: If an option is unknown, or no model is named.
        """
        known = {each.name: each for each in fields(cls) if each.name != "models"}
        values: dict[str, Any] = {}
        for name, value in options.items():
            if name not in known:
                hint = did_you_mean(name, known)
                raise CseError("unknown option", where=name, value=value, hint=hint)
            if known[name].default == () and value is not None:
                one = isinstance(value, str | Path)
                value = tuple(map(str, [value] if one else value))
            elif name in ("data_dir", "pairs_out", "items_out") and value is not None:
                value = Path(value)
            values[name] = () if value is None and known[name].default == () else value
        if not models:
            raise CseError("no model is named", hint="name a run, a model folder or starter")
        return cls(tuple(models), **values)

    def changed(self) -> dict[str, Any]:
        """Return the options that are not the defaults, files by their whole paths."""
        found: dict[str, Any] = {}
        for each in fields(self)[1:]:
            value = getattr(self, each.name)
            if value != each.default:
                several = isinstance(value, tuple)
                texts = [_whole(one) for one in (value if several else [value])]
                found[each.name] = texts if several else texts[0]
        return found


def _whole(value: Any) -> Any:
    there = isinstance(value, Path) or (isinstance(value, str) and os.path.isfile(value))
    return os.path.abspath(value) if there else value
