"""Compose a run and look at its plan before anything heavy is loaded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from cse.tables import files_of
from cse_cli.options.flags import PART_FLAGS, Choice
from cse_cli.plugins.installed import Installed
from cse_cli.training.stored_run import StoredRun
from cse_core.errors import CseError

if TYPE_CHECKING:
    from cse_cli.training.plan import PlannedRun
    from cse_engine.compose.composition import Composition

Names = str | Sequence[str] | None
"""One name or several, as a flag that may be repeated takes them."""
File = str | PathLike[str]
Texts = Any
"""Files and names, or rows that are at hand: see :func:`cse.tables.files_of`."""


@dataclass(frozen=True)
class Plan:
    """A checked composition; printed, it is what ``cse train --dry-run`` prints.

    Attributes:
        composition: The typed options, parts, views and passes.
    """

    composition: Composition
    choice: Choice = field(repr=False)
    plugins: Installed = field(repr=False)
    run: PlannedRun = field(repr=False)

    def __str__(self) -> str:
        return "\n".join(self.run.lines())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the plan where a notebook shows a cell's value."""
        printer.text("…" if cycle else str(self))

    def _repr_html_(self) -> str:
        """Show the plan as a table where a notebook shows a cell's value."""
        from cse_cli.terminal.console import outline

        rows = outline(str(self).splitlines())
        cells = ((escape(head), "<br>".join(map(escape, said))) for head, said in rows)
        return f"<table>{''.join(f'<tr><th>{a}</th><td>{b}</td></tr>' for a, b in cells)}</table>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings of the data and of the parts."""
        from cse_cli.training.plan import warnings_of

        return tuple(warnings_of(self.composition))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as ``cse train --dry-run --json`` prints it."""
        return self.run.as_dict()

    def save(self, path: File) -> None:
        """Write the resolved recipe to a TOML file.

        Raises:
            CseError: If the file cannot be written.
        """
        from cse_cli.training.train_checks import save_recipe

        save_recipe(self.composition, Path(path))


class Chosen(TypedDict, total=False):
    """What :func:`plan` and :func:`cse.train` take beside the recipe: the flags of ``cse train``.

    Attributes:
        model: The encoder to start from: an installed one, a folder, a run, or a hub name.
        prompt: What stands before every text: the name of one of the model's prompts, or a text.
        data: Training texts: files, installed data sets, names of the hub, a DataFrame, a
            ``datasets.Dataset``, or a list or generator of texts or of rows as dictionaries.
        dev: Graded pairs that choose the checkpoint, in any of these; ``"none"`` for none.
        aug: Augmenters. As on the command line ``"fgsm"`` replaces those of the recipe, ``"+fgsm"``
            adds one, ``"~fgsm"`` removes one; so for every kind of part.
        pool: Poolers and heads.
        transform: What changes vectors before the loss.
        positives: Positive miners.
        negatives: Negative stores.
        sampler: What chooses the rows of each batch.
        loss: Losses.
        branch: Branches.
        metric: Metrics.
        adapter: The adapter of the encoder, such as ``"lora"``.
        report: Reporters that hear of the run too, such as ``"csv"``.
        seed: Seed of everything drawn.
        options: Any option by its path, ``{"train.lr": 3e-5}``, or as tables,
            ``{"train": {"lr": 3e-5}}``.
        without: Plugins to leave out, as ``--no-plugin`` does.
    """

    model: File | None
    prompt: str | None
    data: Texts
    dev: Texts
    aug: Names
    pool: Names
    transform: Names
    positives: Names
    negatives: Names
    sampler: Names
    loss: Names
    branch: Names
    metric: Names
    adapter: Names
    report: Names
    seed: int | None
    options: Mapping[str, Any] | None
    without: Names


def plan(recipe: File | None = None, *, out: File | None = None, **chosen: Unpack[Chosen]) -> Plan:
    """Compose a run from a recipe and parts of any papers, and check that they fit.

    Args:
        recipe: An installed recipe, a TOML file, or a run, which is repeated.
        out: Folder of the run, checked to be free.
        chosen: The flags of ``cse train``: :class:`Chosen`.

    Raises:
        CseError: What is wrong; ``CseErrors`` where it is more than one thing.
    """
    from cse_cli.training.train_checks import planned_run

    composition, choice, plugins = compose(recipe, chosen)
    run = planned_run(composition, plugins, None if out is None else Path(out))
    return Plan(composition, choice, plugins, run)


def compose(
    recipe: File | Plan | StoredRun | None, chosen: Chosen, where: str = "cse.plan"
) -> tuple[Composition, Choice, Installed]:
    """Return the checked composition of a plan, of a run, or that of the arguments of :func:`plan`.

    Raises:
        TypeError: If one of them is unknown.
        CseError: What is wrong with it, or stands beside a plan; ``where`` is who asks.
    """
    from cse_cli.training.resolving import composition_of

    if isinstance(recipe, Plan | StoredRun):
        if beside := [name for name, value in chosen.items() if value is not None]:
            kind = "plan" if isinstance(recipe, Plan) else "run"
            what = f"a {kind} is trained as it is; {', '.join(beside)} cannot change it"
            raise CseError(what, where=where, hint="leave it out, or give it to cse.plan")
        choice = recipe.choice if isinstance(recipe, Plan) else Choice()
        return recipe.composition, choice, recipe.plugins
    if unknown := chosen.keys() - Chosen.__annotations__.keys():
        hint = "options are given by their paths: options={'train.batch_size': 8}"
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}; {hint}")
    report, model = chosen.get("report"), chosen.get("model")
    settings = {
        "model.prompt": chosen.get("prompt"),
        "train.seed": chosen.get("seed"),
        "train.report": None if report is None else _names(report),
    }
    given = {path: value for path, value in settings.items() if value is not None}
    kinds: Mapping[str, Any] = chosen
    choice = Choice(
        recipe=None if recipe is None else fspath(recipe),
        model=None if model is None else fspath(model),
        data=files_of(chosen.get("data"), "data"),
        dev=files_of(chosen.get("dev"), "dev"),
        kinds={kind: _names(kinds[kind]) for kind in PART_FLAGS if kinds.get(kind)},
        sets=[
            f"{path}={text}"
            for source in (given, chosen.get("options") or {})
            for path, text in _as_typed(source)
        ],
    )
    plugins = Installed(_names(chosen.get("without")))
    return composition_of(choice, plugins), choice, plugins


def _names(given: Names) -> list[str]:
    """Return one name or several as texts."""
    if given is None:
        return []
    return [given] if isinstance(given, str) else list(given)


def _as_typed(options: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield each option's path, and its value as it is typed on the command line."""
    for name, value in options.items():
        path = f"{above}{name}"
        if isinstance(value, Mapping):
            yield from _as_typed(value, f"{path}.")
        else:
            yield path, _value(value, path)


def _value(value: Any, path: str) -> str:
    if value is None:
        return "none"
    if isinstance(value, str | PathLike):
        text = fspath(value)
        return text if text == text.strip() else json.dumps(text, ensure_ascii=False)
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError):
        what = "must be text, a number, true or false, a list or a table"
        raise CseError(what, where=path, value=value) from None


def _plain(value: Any) -> Any:
    """Return a path as its text, and a number of another library as Python's own."""
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError
