"""Damages of an index: a name, and a function that does it to the folder of one."""

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

Damage = Callable[[Path, Path], object]
"""Damages the first folder; the second is that of another index."""
FILES = ("files.json", "passages.jsonl", "scales.npy", "vectors.npy", "words.npz")
_VALUES: tuple[Any, ...] = (None, [], {}, -1, 1e300, "x", True)
_WHOLE = ("null", "[]", "1", '"x"', "{}", '{"index": []}', '{"checksum": 1, "index": {}}', "",
          "[" * 100_000, '{"a":' * 100_000, "1e999", "9" * 5000, "NaN", "\0", "\ud800")  # fmt: skip


def content_of(index: Path) -> Path:
    name = json.loads((index / "index.json").read_text())["index"]["content"]
    return index / str(name)


def damages() -> Iterator[tuple[str, Damage]]:
    """Yield every damage, in the same order each time."""
    draw = random.Random(0)
    for name in ("index.json", *FILES):
        for _ in range(12):
            yield f"{name}: a bit flips", partial(_flip, name, draw.random(), draw.randrange(8))
        for left in (0.0, 0.01, 0.5, 0.9):
            yield f"{name}: cut to {left}", partial(_cut, name, left)
        yield f"{name}: a byte less", partial(_bytes, name, lambda kept: kept[:-1])
        yield f"{name}: a byte more", partial(_bytes, name, lambda kept: kept + b"\n")
        yield f"{name}: zeros", partial(_bytes, name, lambda kept: bytes(len(kept)))
        yield f"{name}: NaN", partial(_bytes, name, lambda kept: kept[:-4] + b"\x00\x00\xc0\x7f")
        yield f"{name}: lines reversed", partial(_bytes, name, _reversed)
        yield f"{name}: a folder", partial(_instead, name, Path.mkdir)
        yield f"{name}: a pipe", partial(_instead, name, os.mkfifo)
        yield (
            f"{name}: a link to itself",
            partial(_instead, name, lambda path: path.symlink_to(path)),
        )
        yield (
            f"{name}: a link to zeros",
            partial(_instead, name, lambda p: p.symlink_to("/dev/zero")),
        )
        yield f"{name}: another index's", partial(_swap, name)
        if name != "index.json":
            yield f"{name}: missing", partial(_instead, name, lambda path: None)
            for other in FILES:
                if other != name:
                    yield f"{name}: {other} in its place", partial(_replaced, name, other)
    for number, text in enumerate(_WHOLE):
        yield f"index.json: other JSON {number}", partial(_bytes, "index.json", _constant(text))
    for key in ("format", "model", "settings", "files", "columns", "stems", "similarity", "texts",
                "languages", "dimension", "content", "sums"):  # fmt: skip
        for value in _VALUES:
            yield f"index.json: {key} is {value}", partial(_set, key, value)
    yield "the content is missing", lambda index, _: shutil.rmtree(content_of(index))
    yield "the content is another's", _other_content
    yield "the index of cse 0.1", _of_before


def _constant(text: str) -> Callable[[bytes], bytes]:
    return lambda kept: text.encode("utf-8", "surrogatepass")


def _reversed(kept: bytes) -> bytes:
    return b"\n".join(reversed(kept.split(b"\n"))) + b"\n"


def _path(index: Path, name: str) -> Path:
    return index / name if name == "index.json" else content_of(index) / name


def _bytes(name: str, change: Callable[[bytes], bytes], index: Path, _: Path) -> None:
    path = _path(index, name)
    path.write_bytes(change(path.read_bytes()))


def _flip(name: str, place: float, bit: int, index: Path, _: Path) -> None:
    path = _path(index, name)
    kept = bytearray(path.read_bytes())
    at = int(place * len(kept))
    kept[at] ^= 1 << bit
    path.write_bytes(kept)


def _cut(name: str, left: float, index: Path, _: Path) -> None:
    os.truncate(_path(index, name), int(left * _path(index, name).stat().st_size))


def _instead(name: str, make: Callable[[Path], object], index: Path, _: Path) -> None:
    path = _path(index, name)
    path.unlink()
    make(path)


def _swap(name: str, index: Path, other: Path) -> None:
    shutil.copyfile(_path(other, name), _path(index, name))


def _replaced(name: str, other: str, index: Path, _: Path) -> None:
    shutil.copyfile(_path(index, other), _path(index, name))


def _set(key: str, value: Any, index: Path, _: Path) -> None:
    said = json.loads((index / "index.json").read_text())
    said["index"][key] = value
    (index / "index.json").write_text(json.dumps(said))


def _other_content(index: Path, other: Path) -> None:
    there = content_of(index)
    shutil.rmtree(there)
    shutil.copytree(content_of(other), there)


def _of_before(index: Path, _: Path) -> None:
    shutil.move(content_of(index) / "vectors.npy", index)
    (index / "texts.jsonl").write_text('{"text": "a", "places": [["a.txt", 1]]}\n')
    (index / "index.json").write_text('{"format": 1, "texts": 1, "dimension": 256}')
