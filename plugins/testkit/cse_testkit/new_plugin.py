"""``cse new-plugin``: a package that installs, trains and passes its tests as it is written.

The templates are a package ``cse-example`` whose parts are all called ``example``: what is fixed is
in ``template/package``, the files of each kind of part in ``template/kinds``. The names are put in
first, then jinja2 fills in what a user typed.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from cse_cli.plugins.installed import installed
from cse_cli.plugins.record_checks import NAME
from cse_cli.terminal.console import echo
from cse_core import __version__
from cse_core.errors import CseError, did_you_mean
from cse_core.registry.plugin_info import NOUNS, AnyKind, PluginInfo, canonical

TEMPLATE = Path(__file__).with_name("template")
KINDS: dict[AnyKind, tuple[str, str]] = {
    "aug": ("augmenter", "AugmenterSpec"),
    "pool": ("pooler", "RowPoolerSpec"),
    "positives": ("miner", "MinerSpec"),
    "negatives": ("store", "StoreSpec"),
    "loss": ("loss", "LossSpec"),
    "branch": ("branch", "BranchSpec"),
    "metric": ("metric", "MetricSpec"),
}
"""Kinds that there are templates of, in the order of a recipe: module and record of each."""
MAX_NAME = 20
"""Characters of a name; with more the lines of the templates are too long."""


def new_plugin(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Of the parts and the recipe: margin makes the package cse-margin."
        ),
    ],
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND,…",
            help="What it brings: aug, pool, positives, negatives, loss, branch, metric; by "
            "default a loss.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The new folder; by default ./cse-NAME."),
    ] = None,
    author: Annotated[str, typer.Option(metavar="NAME", help="Who writes it.")] = "",
    paper: Annotated[
        str, typer.Option(metavar="TEXT", help="The paper: 'Wu et al.: Name, ACL 2024'.")
    ] = "",
) -> None:
    """Write the package of a plugin: options, records, parts, a recipe, tests, CI.

    Each part is a small one that works, with its shapes in comments and a slow version in the
    tests: change both to those of your method.
    """
    package = Package.named(name, kinds_of(kind or ["loss"]), author=author, paper=paper)
    package.check_names(installed(context).manager.infos)
    folder = package.write(out or Path(package.distribution))
    echo(f"written: {folder}")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            echo(f"  {path.relative_to(folder)}")
    echo("next:")
    echo(f'  pip install -e "{folder}"')
    echo(f"  cse train --recipe {package.name} --train.max_steps 20")
    echo(f"  cse check-plugin {package.distribution}")
    echo(f"  pytest {folder}")


def kinds_of(typed: Iterable[str]) -> tuple[AnyKind, ...]:
    """Return the kinds of words with commas, each once, in the order of a recipe.

    Raises:
        CseError: If one has no template.
    """
    words = [word.strip() for text in typed for word in text.split(",") if word.strip()]
    for word in words:
        if word not in KINDS:
            hint = did_you_mean(word, list(KINDS))
            raise CseError("no kind of part", where="--kind", value=word, hint=hint)
    if not words:
        raise CseError("names no kind of part", where="--kind", hint=f"known: {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in words)


@dataclass(frozen=True)
class Package:
    """The package of a new plugin.

    Attributes:
        name: Of its parts, its recipe and its entry point.
        kinds: Of its parts.
        author: Who writes it.
        paper: Its citation, or an empty text.
    """

    name: str
    kinds: tuple[AnyKind, ...]
    author: str = ""
    paper: str = ""

    @staticmethod
    def named(name: str, kinds: tuple[AnyKind, ...], *, author: str, paper: str) -> Package:
        """Return a package by the name that was typed, with or without ``cse-`` in front.

        Raises:
            CseError: If the name is none of a part, or a text is not one line.
        """
        name = name.removeprefix("cse-")
        if not NAME.fullmatch(name) or len(name) > MAX_NAME:
            what = f"a name is lower-case words joined by hyphens, of {MAX_NAME} characters at most"
            raise CseError(what, where="NAME", value=name, hint="such as margin or hard-queue")
        for where, text in (("--author", author), ("--paper", paper)):
            if not text.isprintable():
                raise CseError("is not one line of printable text", where=where, value=text)
        return Package(name, kinds, author, paper)

    @property
    def distribution(self) -> str:
        """Return its name for pip."""
        return f"cse-{self.name}"

    @property
    def module(self) -> str:
        """Return its name for Python."""
        return self.distribution.replace("-", "_")

    def check_names(self, infos: Sequence[PluginInfo]) -> None:
        """Refuse names that something installed has.

        Raises:
            CseError: If the distribution, the package or a part is there already.
        """
        hint = "choose another NAME"
        if any(canonical(info.distribution) == self.distribution for info in infos):
            raise CseError("is installed already", where="NAME", value=self.distribution, hint=hint)
        if find_spec(self.module) is not None:
            what = f"Python has a package {self.module} already"
            raise CseError(what, where="NAME", value=self.name, hint=hint)
        for info in infos:
            for record in info.parts:
                if record.name == self.name and record.kind in (*self.kinds, "recipe"):
                    what = f"{NOUNS[record.kind]} {self.name} is already in {info.distribution}"
                    raise CseError(what, where="NAME", value=self.name, hint=hint)

    def write(self, folder: Path) -> Path:
        """Write everything to a folder that is not there yet, or nothing; returns it.

        Raises:
            CseError: If the folder is there, or cannot be written.
        """
        if folder.exists() or folder.is_symlink():
            hint = "name another: --out DIR"
            raise CseError("is there already", where="--out", value=str(folder), hint=hint)
        if not folder.parent.is_dir():
            what = f"no folder {folder.parent}"
            raise CseError(what, where="--out", value=str(folder), hint=f"mkdir -p {folder.parent}")
        try:
            with tempfile.TemporaryDirectory(prefix=".cse-", dir=folder.parent) as made:
                for name, text in self.files():
                    path = Path(made, "package", name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
                shutil.move(Path(made, "package"), folder)
        except OSError as error:
            what = f"cannot be written: {error.strerror}"
            raise CseError(what, where="--out", value=str(folder)) from error
        return folder

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield the path and the text of each file."""
        from jinja2 import Environment, StrictUndefined

        environment = Environment(keep_trailing_newline=True, undefined=StrictUndefined)
        values = self._values()
        paths = {path: path.relative_to(TEMPLATE / "package") for path in _texts("package")}
        for kind in self.kinds:
            for path in _texts(f"kinds/{kind}"):
                if path.name == "test.py.txt":
                    paths[path] = Path("tests", f"test_{kind}.py")
                elif path.name not in ("record.py.txt", "recipe.toml.txt"):
                    paths[path] = Path("cse_example", path.name)
        for path, target in paths.items():
            template = environment.from_string(self._named(path.read_text(encoding="utf-8")))
            name = str(target).removesuffix(".txt").replace("dot-", ".")
            yield self._named(name), template.render(values)

    def _named(self, text: str) -> str:
        """Return a text of a template with the name of the package."""
        words = "".join(word.title() for word in self.name.split("-"))
        title = words if words[0].isalpha() else f"Plugin{words}"
        for old, new in (("cse_example", self.module), ("Example", title), ("example", self.name)):
            text = text.replace(old, new)
        return text

    def _values(self) -> dict[str, Any]:
        """Return what the templates ask for; texts of a user are strings of JSON, as of Python."""
        nouns = [NOUNS[kind] for kind in self.kinds]
        listed = " and ".join([", ".join(nouns[:-1]), nouns[-1]] if nouns[1:] else nouns)
        summary = f"The {listed} {self.name}, a plugin of cse"
        if len(summary) > 80:
            summary = f"{len(nouns)} parts called {self.name}, a plugin of cse"
        modules = {f"{KINDS[kind][0]}_options" for kind in self.kinds} | {"papers"}
        imports = [
            f"from cse_example.{module} import {_class(module)}" for module in sorted(modules)
        ]
        pieces = {kind: _piece(kind, "recipe.toml.txt") for kind in self.kinds}
        pieces["pool"] = pieces.get("pool", '[[pool]]\nuse = "cls"\n')
        pieces["pool"] += '\n[[pool]]\nuse = "mlp"\nkeep = "train"\n'
        pieces["loss"] = pieces.get("loss", '[[loss]]\nuse = "infonce"\n')
        major, minor = __version__.split(".")[:2]
        return {
            "summary": summary,
            "author": json.dumps(
                self.author or f"The authors of {self.distribution}", ensure_ascii=False
            ),
            "paper": json.dumps(self.paper, ensure_ascii=False),
            "lowest": f"{major}.{minor}",
            "next": f"{major}.{int(minor) + 1}",
            "parts": [(NOUNS[kind], KINDS[kind][0]) for kind in self.kinds],
            "specs": sorted({*(KINDS[kind][1] for kind in self.kinds), "RecipeSpec"}),
            "imports": [self._named(line) for line in imports],
            "records": [self._named(_piece(kind, "record.py.txt")) for kind in self.kinds],
            "recipe": [self._named(pieces[kind]) for kind in KINDS if kind in pieces],
        }


def _texts(folder: str) -> list[Path]:
    return sorted((TEMPLATE / folder).rglob("*.txt"))


def _piece(kind: AnyKind, name: str) -> str:
    return (TEMPLATE / "kinds" / kind / name).read_text(encoding="utf-8")


def _class(module: str) -> str:
    """Return what ``plugin.py`` imports of a module of the package."""
    if module == "papers":
        return "PAPER"
    return f"Example{module.removesuffix('_options').title()}Options"
