"""``python -m tests.architecture.weight`` prints how much there is to read, and how much may be.

Lines are those of Python files, words those of Markdown pages. ``aim`` is what a package is meant
to have at most; ``held`` is what it has at most now where it is not there yet: it falls with each
deletion, and a new feature raises it in the commit that brings it.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Bound:
    """What some files hold at most.

    Attributes:
        name: How the table calls them.
        paths: Files and folders, with a ``*`` for any name.
        aim: Lines of code, or words of prose.
        held: The bound that is tested where the aim is not reached.
        tests: Whether tests are counted, and nothing else.
        words: Whether words of pages are counted instead of lines of code.
    """

    name: str
    paths: tuple[str, ...]
    aim: int
    held: int | None = None
    tests: bool = False
    words: bool = False

    @property
    def bound(self) -> int:
        """Return what is tested."""
        return self.held or self.aim

    def size(self) -> int:
        """Return how much there is now."""
        roots = [found for path in self.paths for found in ROOT.glob(path)]
        pattern = "*.md" if self.words else "*.py"
        files = {f for root in roots for f in ([root] if root.is_file() else root.rglob(pattern))}
        if not self.words:
            files = {f for f in files if ("tests" in f.relative_to(ROOT).parts) == self.tests}
        texts = (file.read_text(encoding="utf-8") for file in files)
        return sum(len(text.split() if self.words else text.splitlines()) for text in texts)


BOUNDS = (
    Bound("cse_core", ("cse_core",), 11_000, held=18_784),
    Bound("  contract", ("cse_core/*.py",), 2_450, held=3_635),
    Bound("  registry", ("cse_core/registry",), 600, held=829),
    Bound("  recipes", ("cse_core/recipes",), 1_900, held=2_663),
    Bound("  data", ("cse_core/data",), 1_300, held=2_094),
    Bound("  tokenization", ("cse_core/tokenization",), 450, held=660),
    Bound("  encoders and models", ("cse_core/encoders", "cse_core/models"), 1_700, held=2_243),
    Bound("  builtins", ("cse_core/builtins",), 600),
    Bound("  engine", ("cse_core/engine",), 1_800, held=2_715),
    Bound("  training", ("cse_core/training",), 1_400, held=2_165),
    Bound("  runtime", ("cse_core/runtime",), 490, held=1_044),
    Bound("  evaluation", ("cse_core/evaluation",), 110, held=137),
    Bound("cse_cli and cse", ("cse_cli", "cse"), 7_760, held=9_340),
    Bound("plugins", ("plugins",), 26_467),
    Bound("  study", ("plugins/study",), 5_000, held=5_152),
    Bound("  cse-evaluation", ("plugins/evaluation",), 3_370, held=3_807),
    Bound("  testkit", ("plugins/testkit",), 3_000, held=4_059),
    Bound("  starter", ("plugins/starter",), 1_800),
    Bound("  sncse", ("plugins/sncse",), 1_000),
    Bound("  bench", ("plugins/bench",), 700),
    Bound("tests", ("tests", "plugins/*/tests", "conftest.py"), 32_854, held=39_499, tests=True),
    Bound("  gpu", ("tests/gpu",), 700, held=814, tests=True),
    Bound("docs, words", ("docs",), 50_000, words=True),
)


def main() -> int:
    """Print the table; return 1 where a bound is passed."""
    print(f"{'':24}{'now':>8}{'aim':>8}")
    passed = 0
    for bound in BOUNDS:
        size = bound.size()
        over = f"  {size - bound.aim:,} to go" if size > bound.aim else ""
        passed += size > bound.bound
        print(f"{bound.name:24}{size:>8,}{bound.aim:>8,}{over}")
    return int(bool(passed))


if __name__ == "__main__":
    sys.exit(main())
