"""A recipe compared whole with a table of its settings, each with its source.

The table is a TOML file: a section for each encoder, the first one whole, the others with what
differs from it; a row is a value, or ``absent`` for a part, and where it comes from::

    [bert-base]
    "train.lr" = [3e-5, "paper, Table 7"]
    "loss.infonce.temperature" = [0.05, "paper, Section 4; run.sh"]
    "loss.infonce.same_text" = ["mask", "ours: docs/methods/simcse.md"]

``python -m cse_testkit RECIPE`` prints one to fill in.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

from cse_core.recipes.compose import resolve
from cse_core.recipes.composition import Composition
from cse_core.records import RunInfo
from cse_core.registry.registry import Registry
from cse_testkit.corpora import COLUMNS
from cse_testkit.promises import promise


def _facts(
    name: str, family: str, hidden: int, layers: int, *, cased: bool, starter: bool = False
) -> RunInfo:
    return RunInfo(
        model=name,
        family=family,
        hidden=hidden,
        embedding=hidden,
        layers=layers,
        positions=512,
        cased=cased,
        mask_token=True,
        starter=starter,
        rows=1_000_000,
        columns=COLUMNS,
    )


ENCODERS: dict[str, RunInfo] = {
    "bert-base": _facts("bert-base-uncased", "bert", 768, 12, cased=False),
    "bert-base-cased": _facts("bert-base-cased", "bert", 768, 12, cased=True),
    "bert-large": _facts("bert-large-uncased", "bert", 1024, 24, cased=False),
    "roberta-base": _facts("roberta-base", "roberta", 768, 12, cased=True),
    "roberta-large": _facts("roberta-large", "roberta", 1024, 24, cased=True),
    "starter": _facts("starter", "bert", 256, 4, cased=False, starter=True),
}
"""What is known of the encoders that recipes pick settings for; nothing is loaded."""

OF_THE_RUN = frozenset(
    {
        *("model.name", "data.path", "data.columns", "data.limit", "train.dev", "train.report"),
        *("train.device", "train.threads", "train.precision", "train.seed"),
        *("train.log_steps", "train.save_steps", "train.save_rounds", "train.max_steps"),
        *("train.check", "train.drop_spikes", "train.shard", "model.gradient_checkpointing"),
    }
)
"""Settings of a run or a machine, which no paper gives."""
Settings = dict[str, Any]


def settings_of(composition: Composition) -> Settings:
    """Return every setting of a composition by its path, as JSON values; None is ``none``.

    A part's own path has the name of its record, a view's has role, column and branch.
    """
    found: Settings = {}
    for table in ("model", "data", "train", "inference"):
        values = getattr(composition, table).model_dump(mode="json")
        found.update({f"{table}.{name}": value for name, value in values.items()})
    for part in composition.parts:
        found[part.path] = part.use
        values = part.options.model_dump(mode="json")
        found.update({f"{part.path}.{name}": value for name, value in values.items()})
    for view in composition.views:
        made = f"made by {view.made_by}" if view.made_by else f"column {view.column}"
        found[f"views.{view.name}"] = f"{view.role}, {made}, branch {view.branch}"
    return {
        path: "none" if value is None else value
        for path, value in found.items()
        if path not in OF_THE_RUN
    }


def read_settings(path: Path) -> dict[str, Settings]:
    """Return the whole table of each encoder of a file.

    Raises:
        BrokenPromise: If a row is not a value with a source.
    """
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    whole: dict[str, Settings] = {}
    for encoder, rows in tables.items():
        promise(encoder in ENCODERS, f"{path.name}: {encoder} is none of {', '.join(ENCODERS)}")
        settings = dict(next(iter(whole.values()), {}))
        for name, row in rows.items():
            fine = isinstance(row, list) and len(row) == 2 and str(row[1]).strip()
            promise(bool(fine), f"{path.name}: {encoder}: {name} is not [value, source]")
            if row[0] == "absent":
                settings = {k: v for k, v in settings.items() if not f"{k}.".startswith(f"{name}.")}
            else:
                settings[name] = row[0]
        whole[encoder] = settings
    return whole


def differences(found: Settings, wanted: Settings) -> list[str]:
    """Return a line for each setting that is another, is missing or is not in the table."""
    lines = []
    for path in dict.fromkeys((*wanted, *found)):
        if path not in found:
            lines.append(f"{path}: the table has {wanted[path]!r}, the recipe has none")
        elif path not in wanted:
            lines.append(f"{path}: {found[path]!r} is not in the table")
        elif found[path] != wanted[path]:
            lines.append(f"{path}: {found[path]!r}, the table has {wanted[path]!r}")
    return lines


def skeleton(recipe: str, registry: Registry) -> str:
    """Return a table of a recipe's settings with sources to fill in."""
    document = tomlkit.document()
    base: Mapping[str, Any] | None = None
    for encoder, facts in ENCODERS.items():
        found = settings_of(resolve(registry, recipe=recipe, model=facts.model, facts=facts))
        rows = found if base is None else {k: v for k, v in found.items() if base.get(k) != v}
        if base is not None:
            gone = [path for path in base if path not in found]
            heads = [path for path in gone if path.rpartition(".")[0] not in gone]
            rows |= dict.fromkeys(heads, "absent")
        base = base or found
        if rows:
            table = tomlkit.table()
            for path, value in rows.items():
                table[path] = [value, ""]
            document[encoder] = table
    return tomlkit.dumps(document)
