"""What is searched, open with the models that encode it, for any number of searches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse import Bm25, TextEncoder, similarities
from cse_cli.api import Installed, Loading, few_texts_encoder
from cse_core.errors import CseError
from cse_search.index import OF_MODEL, index_of, open_index, queries_model_of
from cse_search.late import Late
from cse_search.ranking import check_dimensions, check_queries, ranked
from cse_search.reading import Passage, once
from cse_search.reranking import Reranker, check_level, check_rerank

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cse_cli.api import FewTextsEncoder
    from cse_search.late import Several


class Searched(ABC):
    """Passages that are searched again and again.

    Attributes:
        path: Where they are.
        queries_model: Name of the model of the queries, where it is not that of the texts.
        note: What is outdated; empty where nothing is.
    """

    path: str | Path
    queries_model: str | None = None
    note: str = ""

    def __init__(self, plugins: Installed, device: str = "auto") -> None:
        self._plugins, self._device = plugins, device
        self._rerankers: dict[str, Reranker] = {}

    @property
    @abstractmethod
    def note_of_texts(self) -> str | None:
        """Describe what encoders cut or did not understand; None where all was read."""

    def search(
        self,
        queries: str | Sequence[str],
        *,
        top: int = 5,
        bm25: float = 0,
        level: str | None = None,
        rerank: str | None = None,
        rerank_top: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the passages nearest to each query, as ``cse.Model.search`` does.

        Raises:
            CseError: If a query is blank, a number is out of its range, or a model is wrong.
        """
        queries = [queries] if isinstance(queries, str) else list(queries)
        check_queries(queries, top, bm25)
        depth = check_rerank(rerank, rerank_top, top, level)
        check_level(level, self.queries_model)
        again = None if rerank is None else self._reranker(rerank)
        results = self._nearest(queries, top if again is None else depth, bm25, level, depth)
        return results if again is None else again.reranked(results, top)

    @abstractmethod
    def _nearest(
        self, queries: Sequence[str], count: int, bm25: float, level: str | None, depth: int
    ) -> list[dict[str, Any]]: ...

    def _reranker(self, name: str) -> Reranker:
        if name not in self._rerankers:
            self._rerankers[name] = Reranker(name, self._plugins.registry, self._device)
        return self._rerankers[name]


class Index(Searched):
    """The index in a folder, searched by the model that made it.

    Its files stay mapped: an update of the folder changes nothing for it. The first search opens
    the model of the queries; torch is not imported where a few tokens can be encoded without.

    Args:
        folder: As ``cse index --out`` named it, or ``index`` in a run.
        model: Name of the model of its texts; by default as the index says.
        queries_model: Model of the queries, ``none`` for that of the texts; by default as the index
            says.
        loading: How the model is loaded.
        plugins: The installed plugins.
        encode: The model, loaded.
        of_queries: That of the queries, loaded.

    Raises:
        CseError: If there is none, it is damaged, or another model or other settings made it.
    """

    def __init__(
        self,
        folder: str | Path,
        model: str | None = None,
        *,
        queries_model: str | None = None,
        loading: Loading | None = None,
        plugins: Installed | None = None,
        encode: TextEncoder | None = None,
        of_queries: TextEncoder | None = None,
    ) -> None:
        plugins, loading = plugins or Installed(), loading or Loading()
        super().__init__(plugins, loading.device)
        self.path = Path(folder).expanduser()
        self.model = model or str(open_index(self.path).about["model"])
        asked = {name: getattr(loading, name) for name in OF_MODEL}
        asked = {name: value for name, value in asked.items() if value is not None}
        self._saved = index_of(self.path, self.model, plugins.registry, asked)
        kept: Mapping[str, Any] = self._saved.about["settings"]
        self._loading = replace(loading, **{name: kept[name] for name in OF_MODEL})
        self._encode, self._of_queries = encode, of_queries
        self.queries_model = None if queries_model == "none" else queries_model
        if of_queries is not None:
            self.queries_model = of_queries.name
        elif queries_model is None:
            self.queries_model = queries_model_of(self._saved, plugins.registry)
        self.note = self._saved.note
        self._last: TextEncoder | FewTextsEncoder | None = None

    def __len__(self) -> int:
        """Return how many passages it has."""
        return len(self._saved)

    @property
    def note_of_texts(self) -> str | None:
        """Describe what the encoder of the last search cut or did not understand."""
        return None if self._last is None else self._last.note

    @cached_property
    def encoder(self) -> TextEncoder | FewTextsEncoder:
        """The encoder of queries."""
        if self._of_queries or (self._encode and not self.queries_model):
            return self._loaded
        how, name = self._loading, self.queries_model or self.model
        if self.queries_model:
            how = replace(how, pooling=None, max_length=None, prompt=None)
        probe = self._saved.about["probe"]
        return few_texts_encoder(name, self._plugins.registry, how, probe) or self._loaded

    @cached_property
    def _loaded(self) -> TextEncoder:
        if self.queries_model:
            name = self.queries_model
            return self._of_queries or queries_encoder(name, self._loading, self._plugins)
        load, tokens = self._loading.load, self._loading.batch_tokens
        return self._encode or TextEncoder(load(self.model, self._plugins.registry), tokens)

    def _nearest(
        self, queries: Sequence[str], count: int, bm25: float, level: str | None, depth: int
    ) -> list[dict[str, Any]]:
        late = None if level is None else Late(self._loaded, level, depth)
        self._last = encode = self.encoder if late is None else self._loaded
        another = self.queries_model is not None
        return self._saved.nearest(encode, queries, count, bm25, late, by_another=another)


class Texts(Searched):
    """Passages that no index has; the first search encodes them.

    Equal ones are one answer.

    Args:
        passages: The passages.
        path: Where they are.
        plugins: The installed plugins.
        encode: Encodes them.
        of_queries: Encodes the queries, by default the same model.
        device: Where a reranker runs.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        path: str,
        plugins: Installed,
        encode: TextEncoder,
        of_queries: TextEncoder | None = None,
        device: str = "auto",
    ) -> None:
        super().__init__(plugins, device)
        self.path, self._encode, self._of_queries = path, encode, of_queries
        self.queries_model = None if of_queries is None else of_queries.name
        self._count, self._places = len(passages), once(passages, titles=True)

    def __len__(self) -> int:
        """Return how many passages there are."""
        return self._count

    @property
    def note_of_texts(self) -> str | None:
        """Describe what the encoder of the texts cut or did not understand."""
        return self._encode.note

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        import numpy as np

        blocks = self._encode.blocks(self._places, role="document")
        return np.concatenate([vectors for _, vectors in blocks])

    @cached_property
    def _words(self) -> Bm25:
        return Bm25.of(self._places, stems=None)

    def _nearest(
        self, queries: Sequence[str], count: int, bm25: float, level: str | None, depth: int
    ) -> list[dict[str, Any]]:
        asked = (self._of_queries or self._encode)(queries, role="query")
        if self._of_queries is not None:
            dimension = self._vectors.shape[1]
            check_dimensions(asked, self._of_queries.name, dimension, self._encode.name)
        kind = self._encode.similarity
        scores = similarities(kind, asked, self._vectors)
        by_words = self._words.of_queries(queries) if bm25 else None
        late = None if level is None else Late(self._encode, level, depth)
        texts, first = [*self._places], [same[0] for same in self._places.values()]

        def about(rows: set[int]) -> dict[int, dict[str, Any]]:
            return {row: {**first[row].place, "text": first[row].text} for row in rows}

        def several(rows: Sequence[int]) -> Several:
            return late.of_texts([texts[row] for row in rows]) if late else []

        by_late = None if late is None else (late, several)
        return ranked(kind, queries, scores, by_words, count, bm25, about, by_late)


def queries_encoder(name: str, loading: Loading, plugins: Installed) -> TextEncoder:
    """Load a model of queries: on the same device, cut to the same dimension."""
    loading = replace(loading, pooling=None, max_length=None, prompt=None)
    try:
        return TextEncoder(loading.load(name, plugins.registry), loading.batch_tokens)
    except CseError as error:
        where = "--queries-model" if error.where == "MODEL" else error.where
        raise CseError(error.what, where=where, value=error.value, hint=error.hint) from None
