"""The starter corpus: synthetic documents with titles, parallel German, and graded pairs.

``plugins/starter/tools/make_texts.py`` of commit e18b07cc of this project's repository wrote the
three files, by a seeded grammar.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse_core.texts import Wanted

SPLITS = ("dev", "test")


class StarterCorpus:
    """Synthetic texts of a seeded grammar: for trying things, not for measuring progress."""

    def rows(self, name: str, wanted: Wanted) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield one row a sentence in document order: text, document, title, fraternal (German)."""
        for number, row in enumerate(_read("rows"), 1):
            yield f"{name}, row {number}", row

    def pairs(self, split: str) -> list[dict[str, Any]]:
        """Return the graded pairs of a split: sentence1, sentence2, score (0 to 5), subset (kind).

        Their meanings (which action is done to which thing) occur in no row, in whatever words.

        Raises:
            ValueError: If `split` is not dev or test.
        """
        if split not in SPLITS:
            raise ValueError(f"split must be dev or test, not {split!r}")
        return list(_read(split))


def _read(name: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file of the package, one a line."""
    packed = files(__package__).joinpath("texts", f"{name}.jsonl.gz").read_bytes()
    lines = gzip.decompress(packed).splitlines()
    for at in range(0, len(lines), 1000):  # many in one go: a third of the time
        yield from json.loads(b"[%b]" % b",".join(lines[at : at + 1000]))
