"""A cross-encoder of sentence-transformers orders the first passages of a search again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cse_cli.api import Models, libraries_quiet
from cse_core.errors import CseError
from cse_core.texts import in_context

if TYPE_CHECKING:
    from cse_cli.api import Registry

DEPTH = 50
"""Passages of a query that are scored again, by default."""
_WHERE = "--rerank"


class Reranker:
    """Scores a query and a passage together (Nogueira and Cho 2019, https://arxiv.org/abs/1901.04085).

    Args:
        name: A folder, or a model of the hub: a sequence classifier with one output.
        registry: Finds its folder.
        device: ``cuda``, ``mps``, ``cpu``, or ``auto`` for the best available.

    Raises:
        CseError: If it is not there or no such model, or sentence-transformers is not installed.
    """

    def __init__(self, name: str, registry: Registry, device: str = "auto") -> None:
        try:
            from sentence_transformers import CrossEncoder
            from transformers import AutoConfig
        except ImportError:
            hint = "pip install sentence-transformers"
            raise CseError("needs sentence-transformers", where=_WHERE, hint=hint) from None
        try:
            folder = Models(registry).weights(name)
        except CseError as error:
            raise CseError(error.what, where=_WHERE, value=name, hint=error.hint) from None
        hint = "name a sequence classifier with one output, as cross-encoder/ms-marco-MiniLM-L6-v2"
        try:
            config = AutoConfig.from_pretrained(folder, local_files_only=True)
            if not any("ForSequenceClassification" in kind for kind in config.architectures or ()):
                # It would be loaded with a head that is drawn at random.
                raise CseError("is not a cross-encoder", where=_WHERE, value=name, hint=hint)
            if (outputs := config.num_labels) != 1:
                raise CseError(f"has {outputs} outputs", where=_WHERE, value=name, hint=hint)
            with libraries_quiet():
                self._model = CrossEncoder(
                    str(folder),
                    device=None if device == "auto" else device,
                    local_files_only=True,
                    model_kwargs={"use_safetensors": True},
                )
        except CseError:
            raise
        except Exception as error:  # whatever the libraries make of other people's files
            what = f"cannot be loaded: {' '.join(str(error).split())[:240]}"
            raise CseError(what, where=_WHERE, value=name) from error
        self._name = name

    def reranked(self, results: Sequence[Mapping[str, Any]], top: int) -> list[dict[str, Any]]:
        """Return what ``nearest`` returned in the order of this model, ``top`` of each query.

        A hit's ``rerank`` is its score, of equal ones the nearer stays first. The model reads a
        passage behind its title and headings.
        """
        pairs = [
            (query["query"], in_context(hit["text"], hit["title"], hit["headings"]))
            for query in results
            for hit in query["results"]
        ]
        values = [float(value) for value in self._model.predict(pairs, show_progress_bar=False)]
        if any(value != value for value in values):
            raise CseError("gives scores that are no numbers", where=_WHERE, value=self._name)
        scores = iter(values)
        return [
            {**query, "results": _sorted([(next(scores), hit) for hit in query["results"]])[:top]}
            for query in results
        ]


def check_rerank(rerank: str | None, depth: int | None, top: int, level: str | None = None) -> int:
    """Return the passages to find for each query: ``top``, or more where these are ordered again.

    A cross-encoder orders them, or the vectors of a ``level``.
    """
    rerank = rerank or level
    if depth is not None and rerank is None:
        hint = "add --rerank MODEL or --level NAME"
        raise CseError("is for --rerank", where="--rerank-top", value=depth, hint=hint)
    if depth is not None and depth < top:
        hint = f"write {top} or more"
        raise CseError("must be at least --top", where="--rerank-top", value=depth, hint=hint)
    return top if rerank is None else max(top, depth or DEPTH)


def check_level(level: str | None, queries_model: str | None) -> None:
    """Refuse vectors of a level where another model encodes the queries."""
    if level is not None and queries_model is not None:
        what = "compares vectors of one model, and another one encodes the queries"
        raise CseError(what, where="--level", value=level, hint=f"search without {queries_model}")


def _sorted(hits: Sequence[tuple[float, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    ordered = sorted(hits, key=lambda pair: -pair[0])
    return [
        {"rank": rank, "rerank": round(score, 6), **{k: v for k, v in hit.items() if k != "rank"}}
        for rank, (score, hit) in enumerate(ordered, 1)
    ]
