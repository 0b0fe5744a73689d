"""Plugins that raise at their import, or bring records that are not valid."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

from tests.reliability.server import Server
from tests.reliability.terminal import MARK, MARKUP, steering

HEAD = """
from cse_core.records import *
from cse_core.options import *
from cse_core.hookspecs import hookimpl
"""
_ONE = 'LossSpec(name="evil", summary="A loss", factory="m.n:C"%s)'
PLUGINS: dict[str, str] = {
    "raises": "raise RuntimeError({mark!r})",
    "an error that has no text": """
        class Silent(Exception):
            def __str__(self): raise ValueError
        raise Silent
        """,
    "leaves": "import sys; sys.exit(3)",
    "no such module": "import no_such_module",
    "recursion": "def f(): f()\nf()",
    "prints": "print({mark!r} * 3)",
    "a name that is a number": "R = [LossSpec(name=5, summary='A loss', factory='m.n:C')]",
    "a summary with marks": "R = [LossSpec(name='evil', summary={mark!r}, factory='m.n:C')]",
    "a paper that is a list": f"R = [{_ONE % ', paper=[1]'}]",
    "provides a word": f"R = [{_ONE % ', provides={mark!r}'}]",
    "requires raises": f"R = [{_ONE % ', requires=lambda o: 1 / 0'}]",
    "a default that raises": """
        from pydantic import Field
        class Own(LossOptions):
            x: int = Field(default_factory=lambda: 1 / 0)
        R = [LossSpec(name="evil", summary="A loss", factory="m.n:C", options=Own)]
        """,
    "a list that holds itself": "R = []\nR.append(R)",
    "no list": "R = {{1: 2}}",
    "a record of another kind": "R = [RecipeSpec(name='r', summary='s', path='p:f')]",
    "a record twice": f"R = [{_ONE % ''}, {_ONE % ''}]",
    "a hook that raises": "@hookimpl\ndef cse_losses():\n    raise KeyError({mark!r})",
    "a hook that prints": f"""
        @hookimpl
        def cse_losses():
            print({{mark!r}})
            return [{_ONE % ''}]
        """,
    "a summary of markup": "R = [LossSpec(name='evil', summary={markup!r}, factory='m.n:C')]",
    "metadata of marks": f"R = [{_ONE % ''}]",
}  # fmt: skip
FINE = ("prints", "a hook that prints", "a summary of markup", "metadata of marks")
"""Those after which the plugin is there all the same."""


USES = ("list-plugins", "show-plugin evil", "train --dry-run --data ok.txt",
        "encode ./tiny ok.txt --out v.npy", "train --help", "data show ok.txt")  # fmt: skip
"""Commands that have to work beside each of them."""


def install(name: str, folder: Path) -> None:
    """Put a distribution, cse-evil, with a plugin of ``PLUGINS`` into a folder of the path."""
    source = dedent(PLUGINS[name]).format(mark=MARK, markup=MARKUP)
    if "R = " in source:
        source += "\n@hookimpl\ndef cse_losses():\n    return R\n"
    elif "hookimpl" not in source:
        source += f"\n@hookimpl\ndef cse_losses():\n    return [{_ONE % ''}]\n"
    (folder / "cse_evil").mkdir()
    (folder / "cse_evil/__init__.py").touch()
    (folder / "cse_evil/plugin.py").write_text(HEAD + source, encoding="utf-8")
    info = folder / "cse_evil-1.dist-info"
    info.mkdir()
    printed = MARK.replace("\r", "").replace("\n", "") if "marks" in name else "Evil"
    flat = "".join(each for each in printed if each not in "\x0b\x85\u2028")
    head = f"Metadata-Version: 2.4\nName: cse-evil\nVersion: 1\nSummary: {flat}\n"
    (info / "METADATA").write_text(head, encoding="utf-8")
    (info / "entry_points.txt").write_text("[cse]\nevil = cse_evil.plugin\n", encoding="utf-8")


def listed(name: str, folder: Path, server: Server) -> str:
    """List and use plugins beside one that does harm; returns what went wrong."""
    packages = folder / "packages"
    packages.mkdir()
    install(name, packages)
    listing = server.call(["list-plugins", "--json"], folder, packages=packages)
    try:
        plugins = {each["key"]: each for each in json.loads(listing.out)["plugins"]}
    except ValueError:
        return f"no JSON: {listing.out[:300]} {listing.err[-300:]}"
    found = plugins.get("cse-evil:evil", {})
    active = sum(each["status"] == "active" for each in plugins.values())
    if name in FINE:
        if found.get("status") != "active":
            return str(found)
    elif found.get("status") != "broken" or not found["reason"]:
        return str(found)
    if active < 10:
        return f"{active} plugins are active"
    for words in USES:
        answer = server.call(words.split(), folder, packages=packages)
        if answer.code or answer.hung or steering(answer.out + answer.err):
            return f"{words}: {answer.code} {ascii(answer.out)[-200:]} {ascii(answer.err)[-300:]}"
    return ""
