"""The pages of docs/ as tests read them: sections, code blocks, files and commands in them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SKILL = ".github/skills/cse/SKILL.md"
_FENCE = re.compile(r"^(?P<dent> *)```(?P<kind>\w*)\n(?P<text>.*?)^(?P=dent)```", re.DOTALL | re.M)
_FILE = re.compile(r"[#%] (?P<path>[\w./-]+\.(py|toml|txt|md|bib))\n")


@dataclass(frozen=True)
class Block:
    kind: str
    text: str

    @property
    def path(self) -> str:
        found = _FILE.match(self.text)
        return found["path"] if found else ""

    def commands(self) -> list[list[str]]:
        """Return its command lines as words; lines that end in a backslash are joined."""
        if self.kind != "sh":
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        words = [shlex.split(line, comments=True) for line in lines]
        return [line for line in words if line]


@dataclass
class Page:
    path: Path
    text: str = field(init=False)

    def __post_init__(self) -> None:
        self.text = self.path.read_text(encoding="utf-8")

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    def blocks(self, section: str | None = None) -> list[Block]:
        """Return its code blocks, or those under one second heading."""
        text = self.text if section is None else self.section(section)
        return [Block(found["kind"], found["text"]) for found in _FENCE.finditer(text)]

    def section(self, heading: str) -> str:
        parts = re.split(r"^## +", self.text, flags=re.M)
        (found,) = (part for part in parts if part.split("\n", 1)[0].strip() == heading)
        return found

    def prose(self) -> str:
        return _FENCE.sub("", self.text)


def pages() -> Iterator[Page]:
    for path in (
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", SKILL)),
        *sorted(DOCS.rglob("*.md")),
        *sorted(ROOT.glob("plugins/*/README.md")),
    ):
        yield Page(path)


def write_files(blocks: list[Block], folder: Path) -> list[str]:
    """Write the blocks that are files into a folder; returns their paths."""
    written = []
    for block in blocks:
        if block.path:
            target = folder / block.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
            written.append(block.path)
    return written
