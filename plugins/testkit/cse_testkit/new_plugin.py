"""``cse new-plugin``: a package that installs, trains and passes its tests as it is written.

The templates are jinja2's: what is fixed is in ``template/package``, the files of each kind in
``template/kinds``, and what is put together of all kinds in ``records`` and ``recipes``.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from cse_cli.api import Installed, echo, installed
from cse_core import __version__, options
from cse_core.errors import CseError, did_you_mean
from cse_core.hookspecs import NOUNS

TEMPLATE = Path(__file__).with_name("template")
KINDS: dict[str, dict[str, str]] = tomllib.loads(
    (TEMPLATE / "kinds.toml").read_text(encoding="utf-8")
)
"""What a plugin brings: noun, place and record of each kind, and what shows that it works."""
PARTS = [kind for kind, of in KINDS.items() if "try" not in of]
"""Kinds of parts in the order of a recipe, which they come with."""
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAX_NAME = 20
"""Characters of a name; with more the lines of the templates are too long."""
COLUMNS, INDENT = 100, 4
"""Of a line of Python, and before one in brackets."""


def new_plugin(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of parts and recipe: margin makes the package cse-margin."
        ),
    ],
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND,…",
            help=f"Kinds of parts: {', '.join(KINDS)}; by default a loss.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The new folder; by default ./cse-NAME.")
    ] = None,
    author: Annotated[str, typer.Option(metavar="NAME", help="Author of the plugin.")] = "",
    paper: Annotated[
        str, typer.Option(metavar="TEXT", help="The paper: 'Wu et al.: Name, ACL 2024'.")
    ] = "",
) -> None:
    """Write the package of a plugin: options, records, parts, a recipe, tests, CI, publishing.

    Each part is a small one that works, with its shapes in comments and a slow version in the
    tests: change both to those of your method.
    """
    package = Package.named(name, kinds_of(kind or ["loss"]), author=author, paper=paper)
    package.check_free(installed(context))
    folder = package.write(out or Path(package.distribution))
    echo(f"written: {folder}")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            echo(f"  {path.relative_to(folder)}")
    echo("next:")
    echo(f'  pip install -e "{folder}"')
    for line in package.tries:
        echo(f"  {line}")
    echo(f"  cse check-plugin {package.distribution}")
    echo(f"  pytest {folder}")


def kinds_of(typed: Iterable[str]) -> tuple[str, ...]:
    """Return the kinds of words with commas, each once, in order; parts come with a recipe.

    Raises:
        CseError: If one has no template.
    """
    words = [word.strip() for text in typed for word in text.split(",") if word.strip()]
    for word in words:
        if word not in KINDS:
            hint = did_you_mean(word, list(KINDS))
            raise CseError("no kind of record", where="--kind", value=word, hint=hint)
    if not words:
        raise CseError("names no kind", where="--kind", hint=f"known: {', '.join(KINDS)}")
    words += ["recipe"] if {*words} & {*PARTS} else []
    return tuple(kind for kind in KINDS if kind in words)


@dataclass(frozen=True)
class Package:
    """The package of a new plugin.

    Attributes:
        name: Of its parts, its recipe and its entry point.
        kinds: What it brings.
        author: Author of the plugin.
        paper: Its citation, or an empty text.
    """

    name: str
    kinds: tuple[str, ...]
    author: str = ""
    paper: str = ""

    @staticmethod
    def named(name: str, kinds: tuple[str, ...], *, author: str, paper: str) -> Package:
        """Return a package by the name that was typed, with or without ``cse-`` in front.

        Raises:
            CseError: If the name is none of a part or taken, or a text is not one line.
        """
        name = name.removeprefix("cse-")
        if not NAME.fullmatch(name) or len(name) > MAX_NAME:
            what = f"a name is lower-case words joined by hyphens, of {MAX_NAME} characters at most"
            raise CseError(what, where="NAME", value=name, hint="such as margin or hard-queue")
        for where, text in (("--author", author), ("--paper", paper)):
            if not text.isprintable():
                raise CseError("is not one line of printable text", where=where, value=text)
        package = Package(name, kinds, author, paper)
        if find_spec(package.module) is not None:
            what = f"Python has a package {package.module} already"
            raise CseError(what, where="NAME", value=name, hint="choose another NAME")
        return package

    def check_free(self, plugins: Installed) -> None:
        """Check that no installed package has a record of its name and one of its kinds.

        Raises:
            CseError: If one has: the name alone would then mean neither.
        """
        for kind in self.kinds:
            command = kind == "command" and plugins.commands.known([self.name])
            if command or plugins.registry.has(kind, self.name):
                what = f"an installed package has a {NOUNS.get(kind, kind)} of this name"
                raise CseError(what, where="NAME", value=self.name, hint="choose another NAME")

    @property
    def distribution(self) -> str:
        """Return its name for pip."""
        return f"cse-{self.name}"

    @property
    def module(self) -> str:
        """Return its name for Python."""
        return self.distribution.replace("-", "_")

    @property
    def tries(self) -> list[str]:
        """Return the commands that show that it works."""
        lines = (KINDS[kind].get("try", "") for kind in self.kinds)
        return [line.format(self.name) for line in lines if line]

    def write(self, folder: Path) -> Path:
        """Write everything to a folder that is not there yet, or nothing; returns it.

        Raises:
            CseError: If the folder is there, or cannot be written.
        """
        if folder.exists() or folder.is_symlink():
            hint = "name another: --out DIR"
            raise CseError("is there already", where="--out", value=str(folder), hint=hint)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".cse-", dir=folder.parent) as made:
                for name, text in self.files():
                    path = Path(made, "package", name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
                if "encoder" in self.kinds:
                    from cse_testkit.tiny import tiny_encoder

                    tiny_encoder(Path(made, "package", self.module, "encoder"))
                shutil.move(Path(made, "package"), folder)
        except OSError as error:
            what = f"cannot be written: {error.strerror}"
            raise CseError(what, where="--out", value=str(folder)) from error
        return folder

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield the path and the text of each file."""
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        environment = Environment(
            loader=FileSystemLoader(TEMPLATE), keep_trailing_newline=True, undefined=StrictUndefined
        )
        values = self._values()
        folders = ["package", *(["recorded"] if values["recorded"] else [])]
        for folder in (*folders, *(f"kinds/{kind}" for kind in self.kinds)):
            for path in sorted((TEMPLATE / folder).rglob("*.txt")):
                target = path.relative_to(TEMPLATE / folder).as_posix().removesuffix(".txt")
                target = target.replace("dot-", ".").replace("cse_example", self.module)
                source = path.relative_to(TEMPLATE).as_posix()
                text = environment.get_template(source).render(values)
                yield target.replace("example", self.name), text

    def _values(self) -> dict[str, Any]:
        """Return the variables of the templates; user texts are JSON strings, as in Python."""
        words = "".join(word.title() for word in self.name.split("-"))
        taken = words[0].isdigit() or hasattr(options, f"{words}Options")
        title = f"Plugin{words}" if taken else words
        recorded = [kind for kind in self.kinds if kind != "command"]
        author = self.author or f"The authors of {self.distribution}"
        major, minor = __version__.split(".")[:2]
        return {
            "name": self.name,
            "module": self.module,
            "title": title,
            "summary": f"The method {self.name}, a plugin of cse",
            "author": json.dumps(author, ensure_ascii=False),
            "paper": literal(self.paper, len("PAPER = ")),
            "lowest": f"{major}.{minor}",
            "next": f"{major}.{int(minor) + 1}",
            "kinds": self.kinds,
            "every": PARTS,
            "recorded": recorded,
            "tries": self.tries,
            "table": KINDS,
            "specs": sorted(KINDS[kind]["record"] for kind in recorded),
            "cites": bool({*self.kinds} & {*PARTS, "recipe", "study"}),
        }


def literal(text: str, before: int) -> str:
    """Return a text as Python's formatter writes it behind some columns: in one line, or several.

    Lines break behind spaces, or where a word is longer than a line.
    """
    if before + len(whole := _quoted(text)) <= COLUMNS:
        return whole
    lines, rest = [], text
    while rest:
        size = len(rest)
        while INDENT + len(_quoted(rest[:size])) > COLUMNS:
            size = rest.rfind(" ", 0, size - 1) + 1 or size - 1
        lines.append(_quoted(rest[:size]))
        rest = rest[size:]
    return "\n".join(["(", *(f"{' ' * INDENT}{line}" for line in lines), ")"])


def _quoted(text: str) -> str:
    """Return a text in the quotes that leave less to escape."""
    quoted = json.dumps(text, ensure_ascii=False)
    if text.count('"') <= text.count("'"):
        return quoted
    inner = quoted[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inner}'"
