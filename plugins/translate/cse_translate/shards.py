"""Results of long work, shard by shard on disk, so that a killed run goes on where it stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from cse_core.errors import CseError


class ShardFile:
    """Texts that were made, in order: a first line with what they were made from, a line a shard.

    A line is on disk before the next shard begins. A last line that a kill cut short is dropped.

    Args:
        path: The file; what an earlier run left there is read.
        key: What the texts depend on; a file of another key is refused.

    Attributes:
        texts: The texts so far.
        found: How many of them an earlier run left.

    Raises:
        CseError: If the file belongs to other work, or cannot be written.
    """

    def __init__(self, path: Path, key: Mapping[str, Any]) -> None:
        self.path = path
        self.texts: list[str] = []
        try:
            lines, end = _whole_lines(path) if path.exists() else ([], 0)
            if lines:
                self._read(lines, key)
            self._file: IO[bytes] = open(path, "r+b" if path.exists() else "w+b")
            self._file.truncate(end)
            self._file.seek(end)
            if not lines:
                self._write({"key": dict(key)})
        except OSError as error:
            raise CseError(
                f"cannot be written: {error.strerror or error}", where=str(path),
                hint="name a file in a folder that is there and may be written to",
            ) from None  # fmt: skip
        self.found = len(self.texts)

    def add(self, texts: Sequence[str]) -> None:
        """Add a shard; it is on disk when this returns."""
        self._write({"texts": list(texts)})
        self.texts += texts

    def close(self) -> None:
        """Close the file and keep it."""
        self._file.close()

    def remove(self) -> None:
        """Close the file and take it away, since it is not needed any more."""
        self.close()
        self.path.unlink()

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, lines: list[bytes], key: Mapping[str, Any]) -> None:
        try:
            first, *rest = map(json.loads, lines)
            found = first["key"]
            self.texts = [text for line in rest for text in line["texts"]]
        except (ValueError, KeyError, TypeError):
            raise CseError(
                "is not a file of unfinished work", where=str(self.path), hint="remove it"
            ) from None
        for name, value in key.items():
            if found.get(name) != value:
                raise CseError(
                    f"holds work begun with {name} {found.get(name)!r}, not {value!r}",
                    where=str(self.path),
                    hint="remove it to start again, or repeat the command that started it",
                )


def _whole_lines(path: Path) -> tuple[list[bytes], int]:
    """Return the lines that have an end, and the number of their bytes."""
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    return data[:end].splitlines(), end
