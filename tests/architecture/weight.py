"""``python -m tests.architecture.weight`` prints how much code there is, and how much may be.

Counted are lines of Python that hold code: no docstrings, comments or blank lines. Documentation
is bounded from below: ``tests/architecture/test_docstrings.py``.
"""

import ast
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docs.packages import ROOT, statements

_TEXT = re.compile(
    r"""#[^\n]*|("{3}|'{3})(?:\\.|.)*?\1|"(?:\\.|[^"\n\\])*"|'(?:\\.|[^'\n\\])*'""", re.DOTALL
)
"""A comment, or a text: what may hold lines that look like another kind of line."""


@dataclass(frozen=True)
class Bound:
    """The code lines that some folders may have.

    Attributes:
        name: Name in the table.
        paths: Files and folders, with ``*`` for any name.
        aim: The lines that it is to have at most.
        most: The lines that it may have until then: no change adds to them.
        tests: Whether to count tests, and nothing else.
    """

    name: str
    paths: tuple[str, ...]
    aim: int
    most: int
    tests: bool = False

    def size(self) -> int:
        """Count the code lines."""
        roots = [found for path in self.paths for found in ROOT.glob(path)]
        files = {f for root in roots for f in ([root] if root.is_file() else root.rglob("*.py"))}
        files = {f for f in files if ("tests" in f.relative_to(ROOT).parts) == self.tests}
        return sum(len(code_lines(file)) for file in files)


@cache
def code_lines(path: Path) -> frozenset[int]:
    """Number the lines of a Python file that hold code."""
    text = path.read_text(encoding="utf-8")
    plain = _TEXT.sub(lambda match: "\n".join("x" * _lines_of(match[0])), text)
    lines = {number for number, line in enumerate(plain.split("\n"), 1) if line.strip()}
    for node in statements(ast.parse(text).body):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return frozenset(lines)


def _lines_of(text: str) -> int:
    return 0 if text.startswith("#") else text.count("\n") + 1


BOUNDS = (
    Bound("cse_core", ("cse_core",), 2_100, 2_551),
    Bound("cse_engine", ("cse_engine",), 5_000, 6_721),
    Bound("cse_defaults/transformers", ("cse_defaults/transformers",), 1_800, 1_900),
    Bound("cse_defaults/texts", ("cse_defaults/texts",), 1_350, 1_464),
    Bound("cse_defaults/documents", ("cse_defaults/documents",), 700, 800),
    Bound("cse_defaults/words", ("cse_defaults/words",), 160, 155),
    Bound("cse_defaults/basics", ("cse_defaults/basics",), 400, 455),
    Bound("cse_cli and cse", ("cse_cli", "cse"), 5_900, 6_695),
    Bound("plugins", ("plugins",), 18_600, 26_526),
    Bound("tests", ("tests", "plugins/*/tests", "conftest.py"), 31_473, 39_511, tests=True),
)


def main() -> int:
    """Print the table; return 1 where a room has more lines than it may have."""
    print(f"{'code lines':28}{'now':>8}{'most':>8}{'aim':>8}")
    passed = 0
    for bound in BOUNDS:
        size = bound.size()
        over = f"  {size - bound.aim:,} to go" if size > bound.aim else ""
        passed += size > bound.most
        print(f"{bound.name:28}{size:>8,}{bound.most:>8,}{bound.aim:>8,}{over}")
    return int(bool(passed))


if __name__ == "__main__":
    sys.exit(main())
