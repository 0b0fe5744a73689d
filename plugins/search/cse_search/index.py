"""A saved index: texts with their vectors in a folder, from which ``cse search`` answers.

It holds ``index.json`` (the model's checksum, how it encoded, the files), ``texts.jsonl`` (a text
with its places a line) and ``vectors.npy`` (``[N, D]``, row N that of line N), which is mapped into
memory. It is written whole or not at all. The first search with BM25 adds ``words``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse import Bm25, TextEncoder, similarities, unit
from cse_cli.api import Models, folder_sums
from cse_core.errors import CseError
from cse_core.files import RUN_FILE, atomic_folder
from cse_search.ranking import ranked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cse_cli.api import Places, Registry

INDEX = "index"
"""Name of the folder of a run's index."""
_ABOUT, _TEXTS, _VECTORS, _WORDS = "index.json", "texts.jsonl", "vectors.npy", "words"
_FORMAT = 1
_ROWS = 2**16
_BLOCK = 512
"""Texts that are encoded together."""


@dataclass(frozen=True)
class Index:
    """An index that is there.

    Attributes:
        path: Its folder.
        about: What ``index.json`` says.
        vectors: ``[N, D]``, mapped from its file.
    """

    path: Path
    about: Mapping[str, Any]
    vectors: NDArray[np.floating]

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield each text with its places."""
        with (self.path / _TEXTS).open(encoding="utf-8") as file:
            yield from map(json.loads, file)

    def nearest(
        self, encode: TextEncoder, queries: Sequence[str], top: int, bm25: float = 0
    ) -> list[dict[str, Any]]:
        """Return for each query its nearest texts, as ``cse search --json`` has them."""
        import numpy as np

        kind, asked = encode.similarity, encode(queries, role="query")
        if kind == "cosine":  # the vectors here have length 1
            kind, asked = "dot", unit(asked).astype(np.float32)
        blocks = (self.vectors[at : at + _ROWS] for at in range(0, len(self.vectors), _ROWS))
        near = [similarities(kind, asked, rows.astype(np.float32)) for rows in blocks]
        scores, by_words = np.concatenate(near, axis=1), None
        if bm25:
            words = Bm25.saved(self.path / _WORDS, lambda: [e["text"] for e in self.lines()])
            by_words = words.of_queries(queries)
        return ranked(encode.similarity, queries, scores, by_words, top, bm25, self._about)

    def _about(self, rows: set[int]) -> dict[int, dict[str, Any]]:
        """Return texts by their rows here, with the first place of each."""
        texts = {}
        for row, line in enumerate(islice(self.lines(), max(rows) + 1)):
            if row in rows:
                file, place = line["places"][0]
                texts[row] = {"file": file, "row": place, "text": line["text"]}
        return texts


def index_folder(model: str, named: Path | None) -> Path | None:
    """Return the folder of a model's index: the named one, or ``index`` in a run's folder."""
    run = Path(model).expanduser()
    return named or (run / INDEX if (run / RUN_FILE).is_file() else None)


def open_index(path: Path) -> Index:
    """Return the index in a folder; refuse one that is damaged."""
    import numpy as np

    hint = "make it: cse index MODEL FILE... --out DIR"
    if not (path / _ABOUT).is_file():
        raise CseError("no index is here", where=str(path), hint=hint)
    try:
        about = json.loads((path / _ABOUT).read_text(encoding="utf-8"))
        vectors = np.load(path / _VECTORS, mmap_mode="r")
        whole = about["format"] == _FORMAT and vectors.shape == (about["texts"], about["dimension"])
    except (OSError, ValueError, KeyError, TypeError):
        whole = False
    if not whole or not (path / _TEXTS).is_file():
        what = "the index is damaged, or another version of cse wrote it"
        raise CseError(what, where=str(path), hint="delete it and make it again with cse index")
    return Index(path, about, vectors)


def model_sum(name: str, registry: Registry) -> str:
    """Return a checksum of all files of a model that say how it encodes."""
    sums = folder_sums(Models(registry).weights(name))
    return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()


def changed(index: Index, settings: Mapping[str, Any]) -> str | None:
    """Name what has changed in the model or its settings since an index was made."""
    was = index.about["settings"]
    names = {"model": "the model has changed", "pooling": "--pooling differs",
             "max_length": "--max-length differs", "prompt": "--prompt differs",
             "half": "--half differs"}  # fmt: skip
    return next((names[key] for key, now in settings.items() if was.get(key) != now), None)


def is_index(path: str) -> bool:
    """Check whether a folder holds an index."""
    return Path(path).expanduser().joinpath(_ABOUT).is_file()


def index_of(
    path: str | Path, model: str, registry: Registry, given: Mapping[str, Any] | None = None
) -> Index:
    """Return an index of a model; refuse one of another model, or of other settings than given."""
    index = open_index(Path(path).expanduser())
    why = changed(index, {"model": model_sum(model, registry), **(given or {})})
    if why is not None:
        hint = f"encode its texts again: cse index {model} --out {path}"
        raise CseError(f"{why} since this index was made", where=str(path), hint=hint)
    return index


def write_index(
    path: Path,
    encode: TextEncoder,
    places: Places,
    about: Mapping[str, Any],
    old: Index | None,
    *,
    progress: Any,
) -> dict[str, int]:
    """Write an index, whole or not at all; texts that the old one has are not encoded again.

    What is in the folder is replaced. ``about`` has facts for ``index.json``; its ``settings`` say
    whether vectors are ``half``. The same model made ``old`` with the same settings.

    Returns:
        How many texts were ``encoded`` and ``kept``, and how many of the old ones are ``gone``.
    """
    import numpy as np

    lines = () if old is None else old.lines()
    rows_before = {line["text"]: row for row, line in enumerate(lines) if line["text"] in places}
    texts = list(places)
    new = [row for row, text in enumerate(texts) if text not in rows_before]
    vectors: Any = None
    with atomic_folder(path) as beside:

        def open_vectors(dimension: int) -> Any:
            kind = np.float16 if about["settings"]["half"] else np.float32
            shape = (len(texts), dimension)
            made = np.lib.format.open_memmap(beside / _VECTORS, "w+", kind, shape)
            kept = [row for row, text in enumerate(texts) if text in rows_before]
            for start in range(0, len(kept), _ROWS):
                some = kept[start : start + _ROWS]
                assert old is not None
                made[some] = old.vectors[[rows_before[texts[row]] for row in some]]
            return made

        done = 0
        for chunk, block in encode.blocks((texts[row] for row in new), _BLOCK, "document"):
            if not np.isfinite(block).all():
                hint = "the model has diverged: train it with a lower train.lr, or in fp32"
                raise CseError("the model gave vectors that are not finite", hint=hint)
            if vectors is None:
                vectors = open_vectors(block.shape[1])
            scaled = unit(block) if encode.similarity == "cosine" else block
            vectors[new[done : done + len(chunk)]] = scaled
            done += len(chunk)
            progress(done, len(new), "texts")
        if vectors is None:
            assert old is not None, "texts are new or kept"
            vectors = open_vectors(old.vectors.shape[1])
        vectors.flush()
        with (beside / _TEXTS).open("w", encoding="utf-8") as file:
            for text in texts:
                line = {"text": text, "places": places[text]}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        facts = {"format": _FORMAT, **about, "similarity": encode.similarity,
                 "texts": len(texts), "dimension": vectors.shape[1]}  # fmt: skip
        (beside / _ABOUT).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        del vectors
    before = 0 if old is None else len(old.vectors)
    return {"encoded": len(new), "kept": len(rows_before), "gone": before - len(rows_before)}
