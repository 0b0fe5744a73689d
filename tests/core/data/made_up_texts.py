"""A data set as a plugin brings it, for tests of installed data sets."""

from __future__ import annotations

from collections.abc import Iterator


class MadeUpTexts:
    def rows(self) -> Iterator[dict[str, str]]:
        for document in ("one", "two"):
            for number in range(3):
                yield {
                    "text": f"sentence {number} of {document}",
                    "document": document,
                    "title": f"title {document}",
                    "fraternal": f"Satz {number} von {document}",
                }
