"""A saved index: passages with their vectors in a folder, from which ``cse search`` answers.

``index.json`` says how they were made and names the folder with the rest: ``passages.jsonl`` (what
is encoded once a line, with its places), ``vectors.npy`` (``[N, D]``, row N that of line N; with
int8 ``scales.npy`` too), ``words.npz`` (for BM25) and ``files.json`` (the files as they were). An
update writes another such folder and then replaces ``index.json``: who reads has the old index or
the new one. Checksums of all files, and its own, are in ``index.json``.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import IO, TYPE_CHECKING, Any

from xxhash import xxh3_128

from cse import Bm25, TextEncoder, similarities, unit
from cse_cli.api import Models, folder_sums
from cse_core.errors import CseError
from cse_core.files import (
    LOCK,
    RUN_FILE,
    atomic_write,
    disk_errors,
    lock_folder,
    remove_stale_files,
    writable_folder,
)
from cse_search.late import VECTORS as SEVERAL
from cse_search.late import Kept, KeptWriter, Late
from cse_search.ranking import check_dimensions, ranked
from cse_search.reading import Passage, changes, once
from cse_search.vectors import ROWS, Kind, Vectors, shrunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cse_cli.api import FewTextsEncoder, Registry
    from cse_search.late import Several

INDEX = "index"
"""Name of the folder of a run's index."""
_ABOUT = "index.json"
_PASSAGES, _VECTORS, _SCALES = "passages.jsonl", "vectors.npy", "scales.npy"
_SHOWN = "texts.jsonl"
"""A link to the passages, for people; nothing reads it."""
_WORDS, _FILES = "words.npz", "files.json"
_CONTENT = re.compile(r"content-[0-9a-f]{8}")
_OURS = re.compile(rf"{_CONTENT.pattern}|{re.escape(LOCK)}|\.(index\.json|writable)-[0-9a-f]{{8}}")
"""What a process that was killed may leave in a folder without an index."""
_FORMAT = 3
_BLOCK = 512
"""Texts that are encoded together."""
_READ = 2**20
_LONGEST = 2**26
"""Bytes of ``index.json`` that are read at most."""
_TRIES = 5
OF_MODEL = ("pooling", "max_length", "prompt", "truncate_dim")
"""Flags of the model that an index keeps."""
CHANGED = {
    "model": "the model has changed", "pooling": "--pooling differs",
    "max_length": "--max-length differs", "prompt": "--prompt differs",
    "truncate_dim": "--truncate-dim differs", "titles": "--titles differs",
    "vectors": "--vectors differs", "level": "--level differs",
}  # fmt: skip
"""Settings on which vectors depend, and what to say where one is another than it was."""


@dataclass(frozen=True)
class SavedIndex:
    """An index that is open: an update changes nothing for it.

    Attributes:
        path: Its folder.
        about: What ``index.json`` says.
        vectors: Those of its passages.
        files: The files that were read, as they were then (:func:`cse_search.reading.changes`).
        kept: Several vectors of its passages; None without a level.
    """

    path: Path
    about: Mapping[str, Any]
    vectors: Vectors
    files: Mapping[str, Any]
    _words: IO[bytes]
    _lines: mmap.mmap
    kept: Kept | None = None

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def words(self) -> Bm25:
        """The words of its passages, read from the file that was there when it was opened.

        Raises:
            CseError: If it is damaged.
        """
        try:
            if self.about["sums"][_WORDS] != _file_sum(self._words):
                raise ValueError(f"{_WORDS} is not what was written")
            self._words.seek(0)
            return Bm25.load(self._words)
        except (OSError, ValueError) as error:
            raise _damaged(self.path, error) from None

    @property
    def outdated(self) -> str:
        """Count files that are not as they were when the index was made; empty without any."""
        return ", ".join(f"{count:,} {kind}" for kind, count in changes(self.files).items())

    @property
    def note(self) -> str:
        """Say what is outdated, and how to update it; empty where nothing is."""
        counts, update = (
            self.outdated,
            f"cse index {self.about['model']} --out {quote(str(self.path))}",
        )
        return counts and f"files have changed since this index was made ({counts}): {update}"

    def lines(self) -> Iterator[bytes]:
        """Yield what is encoded once with its places, as JSON."""
        self._lines.seek(0)
        return iter(self._lines.readline, b"")

    def nearest(
        self,
        encode: TextEncoder | FewTextsEncoder,
        queries: Sequence[str],
        top: int,
        bm25: float = 0,
        late: Late | None = None,
        *,
        by_another: bool = False,
    ) -> list[dict[str, Any]]:
        """Return for each query its nearest passages, as ``cse search --json`` has them.

        ``encode`` encodes the queries: the model of the index, or with ``by_another`` one of the
        same space. ``late`` orders the first ones, by the vectors that are kept here or new ones.

        Raises:
            CseError: If vectors of queries and of the index have other dimensions.
        """
        import numpy as np

        kind, asked = self.about["similarity"], encode(queries, role="query")
        dimension = self.about["dimension"]
        if by_another:
            check_dimensions(asked, encode.name, dimension, self.about["model"])
        if asked.shape[1] != dimension:
            what = f"the index has vectors of {dimension} numbers, the model {asked.shape[1]}"
            hint = f"load the model with truncate_dim={dimension}"
            raise CseError(what, where=str(self.path), hint=hint)
        if kind == "cosine":  # the vectors here have length 1
            kind, asked = "dot", unit(asked).astype(np.float32)
        near = [similarities(kind, asked, rows) for rows in self.vectors.blocks()]
        scores = np.concatenate(near, axis=1)
        by_words = self.words.of_queries(queries) if bm25 else None
        by_late = None if late is None else (late, partial(self._several, late))
        kind = self.about["similarity"]
        return ranked(kind, queries, scores, by_words, top, bm25, self._about, by_late)

    def _several(self, late: Late, rows: Sequence[int]) -> Several:
        if self.kept is not None and self.about["settings"].get("level") == late.level:
            return self.kept.of(rows)
        titles, known = self.about["settings"]["titles"], self._about({*rows})
        return late.of_texts([Passage(**known[row]).embedded(titles) for row in rows])

    def _about(self, rows: set[int]) -> dict[int, dict[str, Any]]:
        """Return passages by their rows here, with the first place of each."""
        some = enumerate(islice(self.lines(), max(rows) + 1))
        found = ((row, json.loads(line)) for row, line in some if row in rows)
        return {row: {**line["places"][0], "text": line["text"]} for row, line in found}


def index_folder(model: str, named: Path | None) -> Path | None:
    """Return the folder of a model's index: the named one, or ``index`` in a run's folder."""
    run = Path(model).expanduser()
    return named or (run / INDEX if (run / RUN_FILE).is_file() else None)


def is_index(path: str) -> bool:
    """Check whether a folder holds an index."""
    return os.path.lexists(Path(path).expanduser() / _ABOUT)


def open_index(path: Path) -> SavedIndex:
    """Return the index in a folder.

    Raises:
        CseError: If there is none, a file is damaged, or another version of cse wrote it.
    """
    if not is_index(str(path)):
        hint = "make it: cse index MODEL FILE... --out DIR"
        raise CseError("no index is here", where=str(path), hint=hint)
    about = _read_about(path)
    for _ in range(_TRIES):
        try:
            return _open(path, about)
        except (OSError, ValueError) as error:
            before, about = about, _read_about(path)
            if about == before:  # else an update replaced it meanwhile
                raise _damaged(path, error) from None
    raise CseError("is being updated again and again", where=str(path), hint="search later")


def _damaged(path: Path, error: OSError | ValueError) -> CseError:
    why = str(error)
    if isinstance(error, OSError):
        why = f"{Path(error.filename or path).name}: {error.strerror or error}"
    hint = "delete the folder, and make it again: cse index MODEL FILE... --out DIR"
    return CseError(f"the index is damaged: {why}", where=str(path), hint=hint)


def _read_about(path: Path) -> dict[str, Any]:
    try:
        with _open_file(path / _ABOUT) as file:
            content = file.read(_LONGEST)
        about: dict[str, Any] = json.loads(content)["index"]
        if content == _as_written(about) and about["format"] == _FORMAT:
            return about
    except OSError as error:
        raise _damaged(path, error) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    why = f"{_ABOUT} is not what was written, or another version of cse wrote it"
    raise _damaged(path, ValueError(why))


def _as_written(about: Mapping[str, Any]) -> bytes:
    """Return the content of ``index.json``."""
    checksum = xxh3_128(json.dumps(about).encode()).hexdigest()
    return (json.dumps({"checksum": checksum, "index": about}, indent=1) + "\n").encode()


def _open(path: Path, about: Mapping[str, Any]) -> SavedIndex:
    """Open and verify the files of an index.

    Raises:
        FileNotFoundError: If one is missing.
        OSError, ValueError: If one is not what was written.
    """
    import numpy as np

    content, sums = path / about["content"], about["sums"]
    for name in sums.keys() - {_WORDS}:
        with _open_file(content / name) as file:
            if sums[name] != _file_sum(file):
                raise ValueError(f"{name} is not what was written")
    with _open_file(content / _PASSAGES) as file:
        lines = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    words = _open_file(content / _WORDS)
    kept = np.load(content / _VECTORS, mmap_mode="r")
    scales = np.load(content / _SCALES) if _SCALES in sums else None
    with _open_file(content / _FILES) as file:
        files = json.load(file)
    several = Kept.open(content, about["settings"]["vectors"]) if SEVERAL in sums else None
    return SavedIndex(path, about, Vectors(kept, scales), files, words, lines, several)


def _open_file(path: Path) -> IO[bytes]:
    """Open a plain file; never a link, and a pipe does not wait for its writer."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise ValueError(f"{path.name} is not a plain file")
    return os.fdopen(number, "rb")


def _file_sum(file: IO[bytes]) -> list[Any]:
    """Return size and checksum of an open file."""
    made = xxh3_128()
    for block in iter(lambda: file.read(_READ), b""):
        made.update(block)
    return [file.tell(), made.hexdigest()]


def model_sum(name: str, registry: Registry) -> str:
    """Return a checksum of all files of a model that say how it encodes."""
    sums = folder_sums(Models(registry).weights(name))
    return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()


def changed(index: SavedIndex, settings: Mapping[str, Any]) -> str | None:
    """Name what has changed in the model or its settings since an index was made."""
    was = index.about["settings"]
    return next((CHANGED[key] for key, now in settings.items() if was.get(key) != now), None)


def index_of(
    path: str | Path, model: str, registry: Registry, given: Mapping[str, Any] | None = None
) -> SavedIndex:
    """Return an index of a model; refuse one of another model, or of other settings than given."""
    index = open_index(Path(path).expanduser())
    now = model_sum(model, registry)
    why = changed(index, {"model": now, **(given or {})})
    if why == CHANGED["model"] and now == (index.about.get("queries") or {}).get("sum"):
        texts_of = index.about["model"]
        what = f"{model} encodes the queries of this index, and {texts_of} its texts"
        raise CseError(
            what, where=str(path), hint=f"name that one: cse search {texts_of} --index {path}"
        )
    if why is not None:
        hint = f"encode its texts again: cse index {model} --out {path}"
        raise CseError(f"{why} since this index was made", where=str(path), hint=hint)
    return index


def queries_model_of(index: SavedIndex, registry: Registry) -> str | None:
    """Return the model that encodes queries for an index; None: the model of its texts.

    Raises:
        CseError: If it has changed since the index was made.
    """
    kept: Mapping[str, str] | None = index.about.get("queries")
    if kept is None:
        return None
    if model_sum(name := kept["model"], registry) != kept["sum"]:
        again = f"{index.about['model']} --queries-model {name} --out {quote(str(index.path))}"
        what = f"the model of its queries, {name}, has changed since this index was made"
        raise CseError(what, where=str(index.path), hint=f"name it again: cse index {again}")
    return name


@contextmanager
def updating(path: Path, where: str) -> Iterator[SavedIndex | None]:
    """Keep other processes from updating an index; give the one that is there.

    What killed processes left is removed, what is not finished at the end too, and the folder if
    nothing was made.

    Raises:
        CseError: If another process updates it, the index is damaged, or the folder holds other
            things.
    """
    try:
        with lock_folder(writable_folder(path, where), where, "updating this index"):
            names = (name for name in os.listdir(path) if not _OURS.fullmatch(name))
            old = open_index(path) if is_index(str(path)) or any(names) else None
            _clean(path)
            try:
                yield old
            finally:
                with suppress(CseError):
                    _clean(path)
    finally:
        with suppress(OSError):
            path.rmdir()  # which leaves one with a file


def _clean(path: Path) -> None:
    """Remove all content of an index but its own, and what is half written."""
    content = _read_about(path)["content"] if is_index(str(path)) else ""
    remove_stale_files(path)
    for entry in path.iterdir():
        if _CONTENT.fullmatch(entry.name) and entry.name != content and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
    shown = path / _SHOWN
    if shown.is_symlink() and not shown.exists():
        shown.unlink(missing_ok=True)


def write_index(
    path: Path,
    encode: TextEncoder,
    passages: Sequence[Passage],
    about: Mapping[str, Any],
    state: Mapping[str, Any],
    old: SavedIndex | None,
    *,
    progress: Callable[[int, int, str], None],
) -> dict[str, int]:
    """Write an index; what the old one has of these passages is not encoded again.

    The caller is :func:`updating` it. ``about`` has facts for ``index.json``, ``state`` the files
    as they were when they were read. The same model made ``old`` with the same settings.

    Returns:
        How many texts were ``encoded`` and ``kept``, and how many of the old ones are ``gone``.
    """
    settings = about["settings"]
    places = once(passages, settings["titles"])
    texts, content = list(places), path / f"content-{secrets.token_hex(4)}"
    before = _rows_before(texts, old, settings["titles"])
    with disk_errors(content):
        content.mkdir()
        with (content / _PASSAGES).open("w", encoding="utf-8") as lines:
            for same in places.values():
                line = {"text": same[0].text, "places": [passage.place for passage in same]}
                lines.write(json.dumps(line, ensure_ascii=False) + "\n")
        (content / _FILES).write_text(json.dumps(state), encoding="utf-8")
        languages = _write_words(content / _WORDS, texts, about["stems"])
        size = _write_vectors(content, encode, texts, settings, old, before, progress)
        sums = {}
        for written in sorted(content.iterdir()):
            with written.open("rb") as file:
                sums[written.name] = _file_sum(file)
        facts = {
            "format": _FORMAT, **about, "similarity": encode.similarity,
            "languages": languages, "texts": len(texts), "dimension": size,
            "content": content.name, "sums": sums,
        }  # fmt: skip
        atomic_write(path / _ABOUT, _as_written(facts).decode())
        with suppress(OSError):  # of a file system without links
            beside = path / f".{_SHOWN}-{secrets.token_hex(4)}"
            beside.symlink_to(f"{content.name}/{_PASSAGES}")
            beside.replace(path / _SHOWN)
    kept = sum(row >= 0 for row in before)
    gone = 0 if old is None else len(old) - kept
    return {"encoded": len(texts) - kept, "kept": kept, "gone": gone}


def _rows_before(texts: Sequence[str], old: SavedIndex | None, titles: bool) -> list[int]:
    """Return the row of each text in an index that encoded it; -1 for new ones."""
    rows, before = {text: row for row, text in enumerate(texts)}, [-1] * len(texts)
    for number, line in enumerate(() if old is None else old.lines()):
        said = json.loads(line)
        row = rows.get(Passage(said["text"], **said["places"][0]).embedded(titles))
        if row is not None:
            before[row] = number
    return before


def _write_words(path: Path, texts: Sequence[str], stems: Sequence[str] | None) -> tuple[str, ...]:
    """Count the words of texts into a file; return the languages of their stems."""
    words = Bm25.of(texts, stems=stems)
    with path.open("wb") as file:
        words.save(file)
    return words.languages


def _blocks(
    encode: TextEncoder, texts: Sequence[str], rows: Sequence[int], writer: KeptWriter | None
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Encode the texts of rows; yield how many at a time, and their vectors ``[n, D]``.

    Those of the writer's level go to the writer.
    """
    if writer is None:
        for chunk, block in encode.blocks((texts[row] for row in rows), _BLOCK, "document"):
            yield len(chunk), block
        return
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        block, several = encode.with_several([texts[row] for row in some], writer.level, "document")
        for row, vectors in zip(some, several, strict=True):
            writer.add(row, vectors)
        yield len(some), block


def _write_vectors(
    content: Path,
    encode: TextEncoder,
    texts: Sequence[str],
    settings: Mapping[str, Any],
    old: SavedIndex | None,
    before: Sequence[int],
    progress: Callable[[int, int, str], None],
) -> int:
    """Write the vectors of texts, and those of a level; return the dimension.

    What the old index has is copied from the rows ``before``.

    Raises:
        CseError: If the model gives vectors that are not finite.
    """
    import numpy as np

    kind: Kind = settings["vectors"]
    level: str | None = settings.get("level")
    kept_before = None if old is None else old.kept
    writer = KeptWriter(content, level, kind, kept_before, before) if level else None
    new = [row for row, number in enumerate(before) if number < 0]
    scales = np.ones(len(texts), np.float32)
    vectors: Any = None

    def opened(dimension: int) -> Any:
        return np.lib.format.open_memmap(content / _VECTORS, "w+", kind, (len(texts), dimension))

    done = 0
    for count, block in _blocks(encode, texts, new, writer):
        if not np.isfinite(block).all():
            hint = "the model has diverged: train it with a lower train.lr, or in fp32"
            raise CseError("the model gave vectors that are not finite", hint=hint)
        vectors = opened(block.shape[1]) if vectors is None else vectors
        some = new[done : done + count]
        scaled = unit(block) if encode.similarity == "cosine" else block
        vectors[some], scales[some] = shrunk(scaled, kind)
        done += count
        progress(done, len(new), "texts")
    if writer is not None:
        writer.close()
    if old is not None:
        vectors = opened(old.vectors.kept.shape[1]) if vectors is None else vectors
        kept = np.setdiff1d(np.arange(len(texts)), new)
        for start in range(0, len(kept), ROWS):
            here = kept[start : start + ROWS]
            there = np.take(before, here)
            vectors[here] = old.vectors.kept[there]
            if old.vectors.scales is not None:
                scales[here] = old.vectors.scales[there]
    vectors.flush()
    if kind == "int8":
        np.save(content / _SCALES, scales)
    return int(vectors.shape[1])
