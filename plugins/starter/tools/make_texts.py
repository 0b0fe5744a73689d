"""Write the starter texts again, by the grammar: ``python plugins/starter/tools/make_texts.py``.

Rows and graded pairs become ``rows``, ``dev`` and ``test.jsonl.gz`` in ``cse_starter/texts``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from grammar.documents import documents
from grammar.pairs import graded_pairs

TEXTS = Path(__file__).parents[1] / "cse_starter" / "texts"


def made() -> dict[str, list[Any]]:
    """Return rows and pairs by the name of their file."""
    rows = [
        {"text": text, "document": each.name, "title": each.title, "fraternal": fraternal}
        for each in documents()
        for text, fraternal in each.sentences
    ]
    return {"rows": rows, "dev": graded_pairs("dev"), "test": graded_pairs("test")}


def write(path: Path, lines: Iterable[Any]) -> None:
    """Write JSON lines, without a time in the file, so that equal texts are equal files."""
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    for name, lines in made().items():
        write(TEXTS / f"{name}.jsonl.gz", lines)
