"""The package of a new plugin, made of the templates in ``template``.

The templates are a package ``cse-example`` whose parts are all called ``example``. What several
kinds of parts share, ``plugin.py`` and ``options.py``, is put together of a piece for each kind.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from cse_cli.plugins.record_checks import NAME
from cse_core import __version__
from cse_core.errors import CseError, did_you_mean
from cse_core.registry.plugin_info import NOUNS, AnyKind, PluginInfo, canonical

TEMPLATE = Path(__file__).with_name("template")
KINDS: tuple[AnyKind, ...] = (
    *("aug", "pool", "positives", "negatives", "loss", "branch", "metric"),
)  # fmt: skip
"""Kinds that there are templates of, in the order of a recipe."""
LONGEST = 24
"""Characters of a name; with more the lines of the templates are too long."""
WIDTH = 100
_IMPORT = re.compile(r"from (\S+) import (.+)")
_OWN_IMPORTS = re.compile(r"(^from cse_\S+ import [^(\n]+\n)+", re.M)
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_DESCRIBE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from importlib import import_module
from cse_cli.commands.show_plugin import options_table
from cse_core.registry.plugin_info import NOUNS
from cse_core.specs import HOOK_RECORDS
module = import_module(sys.argv[2])
hooks = [getattr(module, name) for name in sorted(HOOK_RECORDS) if hasattr(module, name)]
records = [record for hook in hooks for record in hook()]
lines = [f"- {NOUNS[r.kind]} `{r.name}`: {r.summary}" for r in records]
print(json.dumps({"parts": "\\n".join(lines), "options": options_table(records)}))
"""


def kinds_of(typed: Iterable[str]) -> tuple[AnyKind, ...]:
    """Return the kinds of words with commas, each once, in the order of a recipe.

    Raises:
        CseError: If one has no template.
    """
    words = [word.strip() for text in typed for word in text.split(",") if word.strip()]
    for word in words:
        if word not in KINDS:
            raise CseError("no kind of part", where="--kind", value=word,
                           hint=did_you_mean(word, KINDS))  # fmt: skip
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
        if not NAME.fullmatch(name) or len(name) > LONGEST:
            what = f"a name is lower-case words joined by hyphens, of {LONGEST} characters at most"
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
        own: list[AnyKind] = [*self.kinds, "recipe"]
        for info in infos:
            for record in info.parts:
                if record.name == self.name and record.kind in own:
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
            made = Path(tempfile.mkdtemp(prefix=f".{self.distribution}-", dir=folder.parent))
        except OSError as error:
            what = f"cannot be written: {error.strerror}"
            raise CseError(what, where="--out", value=str(folder)) from error
        try:
            self._write(made)
            made.chmod(0o755)
            made.rename(folder)
        except OSError as error:
            what = f"cannot be written: {error.strerror}"
            raise CseError(what, where="--out", value=str(folder)) from error
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return folder

    def _write(self, folder: Path) -> None:
        files = {
            str(path.relative_to(TEMPLATE / "package")): path.read_text(encoding="utf-8")
            for path in sorted((TEMPLATE / "package").rglob("*.txt"))
        }
        readme = files.pop("README.md.txt")
        files.update(self._of_kinds())
        for name, text in files.items():
            self._put(folder, name, text)
        described = subprocess.run(
            [sys.executable, "-c", _DESCRIBE, str(folder), f"{self.module}.plugin"],
            capture_output=True,
            text=True,
            check=True,
        )
        self._put(folder, "README.md.txt", readme, **json.loads(described.stdout))
        for cache in folder.rglob("__pycache__"):
            shutil.rmtree(cache)

    def _of_kinds(self) -> Iterator[tuple[str, str]]:
        """Yield the files that depend on the kinds."""
        records, options = [_read("recipe.py.txt")], []
        for kind in self.kinds:
            for path in sorted((TEMPLATE / "kinds" / kind).iterdir()):
                text = path.read_text(encoding="utf-8")
                if path.name == "plugin.py.txt":
                    records.insert(-1, text)
                elif path.name == "options.py.txt":
                    options.append(text)
                elif path.name == "test.py.txt":
                    yield f"tests/test_{kind}.py", text
                elif path.suffixes[0] == ".py":
                    yield f"cse_example/{path.name}", text
        yield (
            "cse_example/plugin.py",
            _joined('"""The records; imports no torch."""', records, self.module),
        )
        yield (
            "cse_example/options.py",
            _joined('"""The options of the parts."""', options, self.module),
        )
        yield "cse_example/recipes/example.toml", self._recipe()

    def _recipe(self) -> str:
        pieces = {kind: _read(f"kinds/{kind}/recipe.toml.txt") for kind in self.kinds}
        pieces["pool"] = pieces.get("pool", '[[pool]]\nuse = "cls"\n')
        pieces["pool"] += '\n[[pool]]\nuse = "mlp"\nkeep = "train"\n'
        pieces["loss"] = pieces.get("loss", '[[loss]]\nuse = "infonce"\n')
        head = "# The settings of the paper: put those of yours here, each with its source.\n"
        parts = [pieces[kind] for kind in KINDS if kind in pieces]
        train = "[train]\nbatch_size = 64\nlr = 3e-5\n"
        return "\n".join([head, *parts, train])

    def _put(self, folder: Path, name: str, text: str, **more: str) -> None:
        path = folder / self._named(name.removesuffix(".txt").replace("dot-", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        # Only what the template says is renamed, not the words of a user.
        values = {**self._values(), **more}
        pieces = _PLACE.split(text)
        pieces[::2] = [self._named(piece) for piece in pieces[::2]]
        pieces[1::2] = [values[key] for key in pieces[1::2]]
        sorted_ = _OWN_IMPORTS.sub(_in_order, "".join(pieces))
        path.write_text(sorted_, encoding="utf-8")

    def _named(self, text: str) -> str:
        words = "".join(word.title() for word in self.name.split("-"))
        title = words if words[0].isalpha() else f"Plugin{words}"
        for old, new in (("cse_example", self.module), ("Example", title), ("example", self.name)):
            text = text.replace(old, new)
        return text

    def _values(self) -> dict[str, str]:
        nouns = [NOUNS[kind] for kind in self.kinds]
        listed = " and ".join([", ".join(nouns[:-1]), nouns[-1]] if nouns[1:] else nouns)
        summary = f"The {listed} {self.name}, a plugin of cse"
        if len(summary) > 80:
            summary = f"{len(nouns)} parts called {self.name}, a plugin of cse"
        major, minor = __version__.split(".")[:2]
        author = self.author or f"The authors of {self.distribution}"
        return {
            "summary": summary,
            "summary_text": _quoted(summary),
            "author": _quoted(author),
            "paper": _python_text(self.paper),
            "lowest": f"{major}.{minor}",
            "next": f"{major}.{int(minor) + 1}",
        }


def _in_order(found: re.Match[str]) -> str:
    """Return lines of imports in the order that they have with the name of the package."""
    return "".join(sorted(found[0].splitlines(keepends=True)))


def _read(name: str) -> str:
    return (TEMPLATE / name).read_text(encoding="utf-8")


def _quoted(text: str) -> str:
    """Return a text as a string of JSON, which is one of TOML, YAML and Python too."""
    return json.dumps(text, ensure_ascii=False)


def _python_text(text: str) -> str:
    """Return a text as a string of Python, in several lines where it is long."""
    if len(text) < WIDTH - 30:
        return _quoted(text)
    lines = textwrap.wrap(text, WIDTH - 30, drop_whitespace=False, break_long_words=True)
    return "(\n" + "".join(f"    {_quoted(line)}\n" for line in lines) + ")"


def _joined(docstring: str, texts: Sequence[str], package: str) -> str:
    """Return modules as one, with one head of imports as ruff orders those of a package."""
    wanted: dict[str, set[str]] = {}
    bodies = []
    for text in texts:
        lines = text.splitlines()
        kept = []
        for line in lines:
            found = _IMPORT.fullmatch(line)
            if found is None:
                kept.append(line)
            elif found[1] != "__future__":
                wanted.setdefault(found[1], set()).update(found[2].split(", "))
        body = "\n".join(kept).strip()
        bodies.append(re.sub(r'\A""".*?"""\s*', "", body, flags=re.S))
    own = [module for module in wanted if module.startswith(("cse_core", "cse_example"))]
    own.sort(key=lambda module: module.replace("cse_example", package))
    blocks = [sorted(set(wanted) - set(own)), own]
    heads = ["\n".join(_import(m, sorted(wanted[m])) for m in block) for block in blocks if block]
    head = "\n\n".join([docstring, "from __future__ import annotations", *heads])
    return "\n\n\n".join([head, *bodies]) + "\n"


def _import(module: str, names: Sequence[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"
