"""The authors' training texts as rows: readers of ``sources/simcse.toml``."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping


def sentences(raw: Mapping[str, bytes]) -> Iterator[dict[str, str]]:
    """Yield the sentences, one a line; blank ones are left out."""
    (content,) = raw.values()
    for line in content.decode("utf-8").split("\n"):
        if line.strip():
            yield {"text": line.strip()}


def triplets(raw: Mapping[str, bytes]) -> Iterator[dict[str, str]]:
    """Yield a sentence, an entailed one and a contradicting one."""
    (content,) = raw.values()
    for row in csv.DictReader(content.decode("utf-8").splitlines(keepends=True)):
        yield {"text": row["sent0"], "positive": row["sent1"], "negative": row["hard_neg"]}
