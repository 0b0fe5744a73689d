"""The mutations of core, command line and plugins, read from tables.

A table is ``plugins/NAME/tests/mutations.toml`` or ``core.toml`` and ``cli.toml`` beside this file.
A mutation replaces a text of a file by another; those of a file stand below its name::

    [["cse_hicl/recipes/hicl.toml"]]
    test = "test_plugin.py"
    wrong = [
        ["alpha = 0.15", "alpha = 0.5"],
    ]

``test`` is the file of tests that sees them, run first; where nothing can, ``argued`` says why.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "plugins"
TABLE = Path("tests") / "mutations.toml"
OWN = {"core": ROOT / "tests", "cli": ROOT / "tests" / "cli"}
"""Tables beside this file, and where the tests of each are."""


@dataclass(frozen=True)
class Mutation:
    """A wrong value.

    Attributes:
        owner: Name of the plugin's folder, or of a table beside this file.
        file: The file that it changes, seen from the plugin's folder or that of the repository.
        test: The file of tests that sees it, seen from the owner's tests; empty where none does.
        argued: Why nothing can see it.
    """

    owner: str
    file: str
    old: str
    new: str
    test: str = ""
    argued: str = ""

    @property
    def path(self) -> Path:
        """Return the file that it changes."""
        return (ROOT if self.owner in OWN else PLUGINS / self.owner) / self.file

    @property
    def tests(self) -> Path:
        """Return the folder of its owner's tests."""
        return OWN.get(self.owner, PLUGINS / self.owner / "tests")

    @property
    def label(self) -> str:
        """Return the change in one line."""
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.owner}: {self.file}: {old[:60]} -> {new[:60]}"

    def applied(self, text: str) -> str:
        """Return a file's text with the wrong value.

        Raises:
            ValueError: If the old text does not stand in it exactly once.
        """
        if text.count(self.old) != 1:
            raise ValueError(f"{self.label}: the old text is there {text.count(self.old)} times")
        return text.replace(self.old, self.new)


def mutations(names: list[str] | None = None) -> list[Mutation]:
    """Return the mutations of the named tables, or of all.

    Raises:
        ValueError: If a name has no table.
    """
    tables = {name: Path(__file__).with_name(f"{name}.toml") for name in OWN}
    tables |= {path.parents[1].name: path for path in sorted(PLUGINS.glob(f"*/{TABLE}"))}
    unknown = sorted({*(names or ())} - {*tables})
    if unknown:
        raise ValueError(f"no table of mutations: {', '.join(unknown)}; known: {', '.join(tables)}")
    return [
        Mutation(name, file, old, new, group.get("test", ""), group.get("argued", ""))
        for name in names or tables
        for file, groups in tomllib.loads(tables[name].read_text(encoding="utf-8")).items()
        for group in groups
        for old, new in group["wrong"]
    ]
