"""The command line of what runs in sections and writes a page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


class SectionParser(argparse.ArgumentParser):
    """Reads which sections run, and where results and page go.

    Args:
        module: What is run with ``python -m``.
        description: The module's docstring.
        sections: Their names.
        out: Folder of the results, where no other is named.
    """

    def __init__(self, module: str, description: str | None, sections: Sequence[str], out: Path):
        super().__init__(
            prog=f"python -m {module}",
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.known = ", ".join(sections)
        self.names = frozenset(sections)
        self.add_argument("sections", nargs="*", help=f"{self.known}; all by default")
        self.add_argument("--render", action="store_true", help="write the page alone")
        self.add_argument("--out", type=Path, default=out, help="folder of the results")
        self.add_argument("--page", type=Path, help="where the page goes instead")

    def read(self, words: Sequence[str] | None) -> argparse.Namespace:
        """Read the words; an unknown section ends the program with what there is."""
        options = self.parse_args(words)
        for name in options.sections:
            if name not in self.names:
                self.error(f"{name}: there are {self.known}")
        return options
