"""``python -m tests.papers`` prints how far each equation's part is from a loop by hand.

The loops are tests of the papers' plugins; 1 is returned where a part gives something else.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from tests.fixtures.equations import EQUATIONS, Equation

ROOT = Path(__file__).parents[2]
PAPERS = {"hicl": "HiCL", "iscse": "IS-CSE", "infocse": "InfoCSE", "ifcl": "IFCL",
          "mocose": "MoCoSE"}  # fmt: skip
WITHOUT = (
    ("HiCL", "Section 3.3, the bound l - 1", "no part: study hicl/section-3.3 counts operations"),
    ("HiCL", "A.8, averaging", "by numbers that are computed elsewhere: test_golden.py"),
    ("InfoCSE", "Eq. 5, the objective", "Eq. 1 over the pairs of Eq. 4: both are above"),
    ("InfoCSE", "rounds until recall stops growing", "no number: test_clusters.py has a table"),
    ("IFCL", "Eq. 1, the identical twin", "dropout: no number"),
    ("MoCoSE", "Eq. 2, the moving average", "by numbers of the authors' code: test_golden.py"),
)
"""Equations that stand in no line of their own, and why."""


def equations() -> list[Equation]:
    """Return the equations of all papers, in the order of ``PAPERS``."""
    for folder in PAPERS:
        for file in sorted((ROOT / "plugins" / folder / "tests").glob("test_*.py")):
            if "tests.fixtures.equations" in file.read_text(encoding="utf-8"):
                import_module(f"plugins.{folder}.tests.{file.stem}")
    order = list(PAPERS.values())
    return sorted(EQUATIONS, key=lambda each: (order.index(each.paper), each.number))


def table(found: Sequence[Equation]) -> Iterator[str]:
    """Yield a line for each equation, with its largest difference."""
    for each in found:
        gap = each.difference()
        verdict = f"{gap:.1e}" if gap <= each.within else f"{gap:.1e} DIFFERS"
        yield f"{each.paper:8} {each.number:58} {each.part:44} {verdict}"


def main() -> int:
    """Print the table; return 1 where a part differs from its loop."""
    lines = []
    for line in table(equations()):
        print(line, flush=True)
        lines.append(line)
    for paper, number, why in WITHOUT:
        print(f"{paper:8} {number:58} - {why}")
    wrong = sum(line.endswith("DIFFERS") for line in lines)
    print(f"{len(lines)} equations and algorithms in float64, {wrong} differ")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
