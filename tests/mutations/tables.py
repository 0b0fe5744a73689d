"""The mutations of every plugin, read from ``plugins/NAME/tests/mutations.toml``.

A mutation replaces a text of a file by another::

    [[mutation]]
    file = "cse_hicl/recipes/hicl.toml"
    old = "alpha = 0.15"
    new = "alpha = 0.5"
    test = "test_plugin.py"

``test`` is the file of tests that sees it, run first; where nothing can, ``argued`` says why.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "plugins"
TABLE = Path("tests") / "mutations.toml"


@dataclass(frozen=True)
class Mutation:
    """A wrong value.

    Attributes:
        plugin: Name of the plugin's folder.
        file: The file that it changes, seen from there.
        test: The file of tests that sees it, seen from the plugin's tests; empty where none does.
        argued: Why nothing can see it.
    """

    plugin: str
    file: str
    old: str
    new: str
    test: str = ""
    argued: str = ""

    @property
    def label(self) -> str:
        """Return the change in one line."""
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.plugin}: {self.file}: {old[:60]} -> {new[:60]}"

    def applied(self, text: str) -> str:
        """Return a file's text with the wrong value.

        Raises:
            ValueError: If the old text does not stand in it exactly once.
        """
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.label}: the old text stands there {text.count(self.old)} times"
            )
        return text.replace(self.old, self.new)


def mutations(names: list[str] | None = None) -> list[Mutation]:
    """Return the mutations of the named plugins, or of all.

    Raises:
        ValueError: If a plugin has no table.
    """
    known = sorted(path.parents[1].name for path in PLUGINS.glob(f"*/{TABLE}"))
    unknown = sorted({*(names or ())} - {*known})
    if unknown:
        raise ValueError(f"no table of mutations: {', '.join(unknown)}; known: {', '.join(known)}")
    found = []
    for name in names or known:
        rows = tomllib.loads((PLUGINS / name / TABLE).read_text(encoding="utf-8"))["mutation"]
        found += [Mutation(plugin=name, **row) for row in rows]
    return found
