"""The suite of sources of texts: data sets in packages, readers of files and of places."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from cse_cli.api import source_of
from cse_core.errors import CseError
from cse_core.loading import load_factory
from cse_core.records import SourceSpec
from cse_core.texts import Wanted
from cse_testkit.promises import NotMeant, Suite

_ROWS = 2_000
"""Rows that are looked at."""
_PAIR = ("sentence1", "sentence2", "score")


class SourceSuite(Suite):
    """What a source promises: rows of texts, the same twice, and errors of one line.

    Attributes:
        source: Its name.
        sample: A name that it reads, ``tests/notes.xlsx`` or ``tests/notes.db?table=notes``; a data
            set in a package needs none.
    """

    source: ClassVar[str]
    sample: ClassVar[str] = ""

    def spec(self) -> SourceSpec:
        """Return its record."""
        return self.installed().one(SourceSpec, self.source).spec

    def place(self) -> Any:
        """Return the place that the sample's name stands for."""
        spec = self.spec()
        name = self.sample or (spec.name if spec.is_dataset else "")
        if not name:
            raise NotMeant("no sample of it is named")
        place = source_of(name, self.installed())
        assert place is not None and place.spec == spec, f"it does not read {name}"
        return place

    def rows(self, limit: int | None = None) -> list[tuple[str, Mapping[str, Any]]]:
        """Return its first rows, read again."""
        place = self.place()
        wanted = Wanted(limit=limit, options=place.options)
        rows = load_factory(place.spec.factory)().rows(place.name, wanted)
        return list(islice(rows, _ROWS if limit is None else limit))

    def promise_its_rows_are_texts(self) -> None:
        """It yields rows, each behind its place: text, lists of texts, numbers or None by name."""
        rows = self.rows()
        assert rows, "yields no row"
        for place, row in rows:
            assert isinstance(place, str) and place.strip(), f"a row's place is {place!r}"
            assert isinstance(row, Mapping), f"{place} is {row!r}, no mapping"
            for name, cell in row.items():
                assert isinstance(name, str), f"{place}: the column {name!r} has no name"
                cells = cell if isinstance(cell, list) else [cell]
                texts = all(isinstance(text, str) for text in cells)
                plain = cell is None or isinstance(cell, int | float)
                assert texts or plain, f"{place}: {name} is {cell!r}"
        assert any(text for _, row in rows for text in row.values()), "every cell is empty"

    def promise_its_rows_repeat_and_end(self) -> None:
        """Read twice, it yields the same rows, and with a limit the first of them."""
        rows = self.rows()
        assert self.rows() == rows, "read twice, other rows"
        assert self.rows(2) == rows[:2], "with a limit of 2, not the first two rows"

    def promise_what_it_cannot_read_is_one_line(self) -> None:
        """A broken file or a name of nothing is a ``CseError``; ``takes`` never fails."""
        spec = self.spec()
        if (takes := spec.takes) is not None:
            for name in ("", "nowhere", "a/b", "/", "x" * 300):
                assert isinstance(takes(name), bool), f"takes({name!r}) is not a bool"
        with tempfile.TemporaryDirectory(prefix="cse-source-") as folder:
            for ending in spec.endings:
                path = Path(folder, f"broken{ending}")
                for content in (b"", b"\x00\xffno such form", b"PK\x03\x04"):
                    path.write_bytes(content)
                    for _ in self._read(str(path)):
                        pass

    def _read(self, name: str) -> Iterator[Any]:
        """Yield the rows of a name that are read before it is refused."""
        try:
            yield from load_factory(self.spec().factory)().rows(name, Wanted())
        except CseError as error:
            assert "\n" not in error.line(), f"an error of several lines: {error.line()}"
        except Exception as error:
            what = f"a broken file raised {type(error).__name__}, no CseError: {error}"
            raise AssertionError(what) from error

    def promise_its_pairs_are_graded(self) -> None:
        """``pairs``, where it has them, returns two texts and a score for dev and for test."""
        source: Any = load_factory(self.spec().factory)()
        if not hasattr(source, "pairs"):
            raise NotMeant("it has no pairs")
        for split in ("dev", "test"):
            pairs = source.pairs(split)
            assert pairs, f"has no pairs of {split}"
            for pair in pairs:
                assert all(name in pair for name in _PAIR), f"{split} lacks {_PAIR}: {pair}"
                texts = pair["sentence1"], pair["sentence2"]
                assert all(isinstance(text, str) for text in texts), f"{split}: no texts: {pair}"
                float(pair["score"])
