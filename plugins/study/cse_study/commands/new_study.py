"""``cse study new``: the file of a study that crosses methods with values of their options."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from cse_cli.api import CORE_OPTIONS, echo, installed, out_file
from cse_core.errors import CseError, did_you_mean
from cse_study.commands.study import seeds_of

_HEAD = """\
summary = {summary}
seeds = {seeds}
{within}
[settings]              # of every run; options of one method stand below its recipe
model = "@model"        # --model NAME, without it the starter
data = "@sentences"     # --data FILE
dev = "@dev"            # --dev FILE

[[axes]]
name = "method"
"""
_WITHIN = """\
within = {axes}         # compares each point with the first method at the same {names}
"""
_PLACE = """
[[axes.places]]
label = {name}
recipe = {name}
"""
_AXIS = """
[[axes]]
name = {axis}
values = {{ {path} = [{values}] }}
"""
_TAIL = """
[scores]
suites = ["sts"]        # --data-dir DIR; without its files the starter's pairs
shown = ["sts.mean"]    # a score, or several; "dev" is the one that chose the checkpoint
"""
_FIGURE = """
[[figures]]             # --page FILE.md
type = "curve"
x = {axis}
lines = "method"
"""


def new_study(
    context: typer.Context,
    methods: Annotated[
        str, typer.Option(metavar="A,B", help="Recipes to compare, the baseline first.")
    ],
    axis: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION=A,B",
            help="Values of an option, such as lr=1e-5,3e-5 or loss.infonce.temperature=0.05,0.1; "
            "may be repeated.",
        ),
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="N|A,B,C", help="How many seeds, or which.")] = "3",
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file.")] = Path(
        "study.toml"
    ),
) -> None:
    """Write the file of a study of your own, every point of which was checked."""
    from cse_study.definition.reading import read_study
    from cse_study.execution.folder import StudyFolder
    from cse_study.planning.composing import Composer, Wish
    from cse_study.planning.plan import plan_study

    if out.exists():
        raise CseError("is there already", where="--out", value=str(out), hint="name another file")
    names = [name.strip() for name in methods.split(",") if name.strip()]
    axes = [_axis(text) for text in axis or ()]
    known = seeds_of(seeds)
    text = _text(names, axes, list(range(1, known + 1)) if isinstance(known, int) else [*known])
    with out_file(out) as file:
        file.write_text(text, encoding="utf-8")
        definition = read_study(file, name=out.stem)
        plan = plan_study(definition, Composer(Wish(), installed(context)), StudyFolder(Path()))
    echo(f"{out}: {len(plan.points)} points, {len(plan.runs)} runs")
    echo(f"next:\n  cse study {quote(str(out))} --steps 10")


def _axis(text: str) -> tuple[str, str]:
    """Return the path of an option and its values, as a study file has them."""
    name, _, values = text.partition("=")
    paths = [f"{table}.{key}" for table, cls in CORE_OPTIONS.items() for key in cls.model_fields]
    path = name if "." in name else next((p for p in paths if p.endswith(f".{name}")), "")
    if not (path and values):
        hint = "write OPTION=VALUE,VALUE" if path else did_you_mean(f"train.{name}", paths)
        raise CseError("is not an option with values", where="--axis", value=text, hint=hint)
    typed = [value.strip() for value in values.split(",")]
    try:
        tomllib.loads(f"values = [{values}]")
    except ValueError:  # words
        typed = list(map(json.dumps, typed))
    return path, ", ".join(typed)


def _text(names: list[str], axes: list[tuple[str, str]], seeds: list[int]) -> str:
    words = {path: json.dumps(path.rpartition(".")[2]) for path, _ in axes}
    what = " by ".join([" and ".join(names), *(json.loads(word) for word in words.values())])
    first = next(iter(words.values()), "")
    axes_ = ", ".join(words.values())
    within = _WITHIN.format(axes=f"[{axes_}]", names=axes_.replace('"', "")) if first else ""
    parts = [_HEAD.format(summary=json.dumps(what), seeds=seeds, within=within)]
    parts += [_PLACE.format(name=json.dumps(name)) for name in names]
    parts += [_AXIS.format(axis=words[path], path=json.dumps(path), values=values)
              for path, values in axes]  # fmt: skip
    return "".join([*parts, _TAIL, _FIGURE.format(axis=first) if first else ""])
