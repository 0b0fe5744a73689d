"""Load a model and encode texts with it, or score models as ``cse eval`` does."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, cast

from cse_cli.plugins.installed import Installed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cse_cli.models.saved_model import SentenceModel
    from cse_core.parts import Metric
    from cse_core.suites import Role


@dataclass(frozen=True)
class Model:
    """A model that turns texts into vectors.

    Attributes:
        loaded: The encoder with its tokenizer, pooler and heads.
    """

    loaded: SentenceModel
    _plugins: Installed = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """Return the name that it was loaded by."""
        return self.loaded.name

    @property
    def max_length(self) -> int:
        """Return the longest text in tokens; longer ones are cut or sliced, as the model says."""
        return self.loaded.sentence_encoder.max_length

    @property
    def max_positions(self) -> int | None:
        """Return the most that ``max_length`` can be; None where the model slices longer texts."""
        encoder = self.loaded.sentence_encoder
        return None if encoder.slicer is not None else encoder.encoder.max_positions

    @property
    def description(self) -> str:
        """Return its pooling, heads and prompt in words."""
        return self.loaded.description

    def encode(
        self,
        texts: str | Iterable[str],
        *,
        normalize: bool = False,
        batch_tokens: int | None = None,
    ) -> NDArray[np.float32]:
        """Return the vectors of texts, ``[N, D]``, or ``[D]`` of a single text.

        Warns of texts that are longer than ``max_length``, whose ends are cut off.

        Args:
            texts: One text, or several: a list, a column of a table, a generator.
            normalize: Whether each vector is scaled to length 1.
            batch_tokens: Tokens that the encoder is given at once, about; by default 1,024 on a
                CPU in fp32, 8,192 elsewhere.

        Raises:
            CseError: If a row is not a text, or ``batch_tokens`` is less than 1.
        """
        from cse.tables import texts_of
        from cse_cli.models.encoding import TextEncoder
        from cse_cli.models.geometry import unit

        rows = texts_of(texts, "texts")
        encode = TextEncoder(self.loaded, batch_tokens)
        vectors = encode(rows)
        if encode.note:
            warnings.warn(encode.note.replace("--max-length N", "max_length=N"), stacklevel=2)
        vectors = unit(vectors).astype("float32") if normalize else vectors
        return vectors[0] if isinstance(texts, str) else vectors

    def encode_several(
        self,
        texts: Iterable[str],
        level: str = "token",
        *,
        role: Role | None = None,
        normalize: bool = False,
        batch_tokens: int | None = None,
    ) -> list[NDArray[np.float32]]:
        """Return the vectors ``[m, D]`` of each text at a level of which it has several.

        Args:
            texts: Several texts.
            level: The level, such as ``token`` or ``chunk``.
            role: ``query`` or ``document``, for a model that makes other vectors of these.
            normalize: Whether each vector is scaled to length 1.
            batch_tokens: As in :meth:`encode`.

        Raises:
            CseError: If the model has no such level.
        """
        from cse.tables import texts_of
        from cse_cli.models.encoding import TextEncoder
        from cse_cli.models.geometry import unit

        encode = TextEncoder(self.loaded, batch_tokens)
        several = encode.several(texts_of(texts, "texts"), level, role)
        return [unit(rows).astype("float32") for rows in several] if normalize else several

    def search(
        self,
        queries: str | Sequence[str],
        data: Any,
        *,
        top: int = 5,
        bm25: float = 0,
        level: str | None = None,
        rerank: str | None = None,
        rerank_top: int | None = None,
        batch_tokens: int | None = None,
        queries_model: Model | None = None,
    ) -> list[dict[str, Any]]:
        """Return the texts nearest to each query, as ``cse search --json`` has them.

        Warns where the files of an index have changed since it was made.

        Args:
            queries: What to look for: one text or several.
            data: A list of texts, or anything that ``data`` of :func:`cse.train` can be. Or
                the folder of an index that ``cse index`` made.
            top: Texts for each query.
            bm25: Share of BM25 in the order of the texts, 0 to 1.
            level: A level of the model's vectors, such as ``token``, that orders the first texts:
                50 of a query, or ``rerank_top``.
            rerank: A cross-encoder (a folder, or a model of the hub) that orders the first texts
                again: 50 of a query, or ``rerank_top``.
            rerank_top: Texts of a query that ``level`` or ``rerank`` orders.
            batch_tokens: As in :meth:`encode`.
            queries_model: Encodes the queries in place of this model, in the same space; by default
                what the index says.

        Returns:
            For each query ``query``, ``similarity`` (cosine, or what the model says) and
            ``results``: ``rank``, ``rerank`` (what orders, with one), ``maxsim`` (with a
            ``level``), ``score`` (what orders without), the similarity by its name, ``bm25`` with
            a share of it, ``title``, ``headings``, ``file``, ``row`` (from 1 in its file; of a
            document, the passage's), ``line`` and ``text``.

        Raises:
            CseError: If a query or the data is wrong, another model made the index, or cse-search
                is not installed.
        """
        from cse.tables import files_of, texts_of

        function = self._plugins.commands.function("search")
        asked, files = texts_of(queries, "queries"), files_of(data, "data")
        options: dict[str, Any] = {"top": top, "bm25": bm25, "batch_tokens": batch_tokens}
        options |= {"level": level, "rerank": rerank, "rerank_top": rerank_top}
        options["queries_model"] = queries_model
        results: list[dict[str, Any]] = function(self._plugins, self, asked, files, **options)
        return results

    def metric(self, name: str) -> Metric:
        """Return an installed metric, made for this model.

        Raises:
            CseError: If it is unknown.
        """
        from cse_engine.compose.composition import PlannedPart
        from cse_engine.compose.models import Models
        from cse_engine.step.part_factory import Making, make_part

        registry, online = self._plugins.registry, self.loaded.sentence_encoder
        models, device = Models(registry), self.loaded.device
        making = Making(online.encoder, online.tokenizer, models, device, self.name)
        planned = PlannedPart.of(registry.find("metric", name))
        return cast("Metric", make_part(planned, online.encoder.hidden_size, making))

    def __repr__(self) -> str:
        device = self.loaded.device
        return f"<cse.Model {self.name}: {self.loaded.description}, on {device}>"


def load(
    model: str | PathLike[str],
    *,
    pooling: str | None = None,
    max_length: int | None = None,
    prompt: str | None = None,
    truncate_dim: int | None = None,
    device: str = "auto",
    precision: str = "fp32",
    plugins: Installed | None = None,
) -> Model:
    """Load a run, a model folder, an installed encoder such as ``starter``, or one of the hub.

    Args:
        model: Its name or folder.
        pooling: Row pooler instead of the model's own: ``cls``, ``mean``.
        max_length: Longest text in tokens instead of what the model says.
        prompt: What stands before every text, by the name of one of the model's prompts or as a
            text, instead of what the model says.
        truncate_dim: Numbers of each vector that are kept, its first ones.
        device: ``cuda``, ``mps``, ``cpu``, or ``auto`` for the best one present.
        precision: ``fp32``, ``bf16``, ``int8`` or ``auto``.
        plugins: The installed plugins; by default they are loaded.

    Raises:
        CseError: If the model does not exist or is damaged.
    """
    from cse_cli.models.loading import Loading

    plugins = plugins or Installed()
    loading = Loading(
        pooling=pooling,
        max_length=max_length,
        prompt=prompt,
        truncate_dim=truncate_dim,
        device=device,
        precision=precision,
    )
    return Model(loading.load(fspath(model), plugins.registry), plugins)


def evaluate(*models: str | PathLike[str], **options: Any) -> dict[str, Any]:
    """Score models on graded pairs, labelled texts, titles of documents and judged queries.

    Args:
        models: Runs, model folders, installed encoders or names of the hub.
        options: The options of ``cse eval``, with ``_`` for ``-``: ``suite="sts"``,
            ``pairs="pairs.tsv"``, ``data_dir="DIR"``, ``no_baselines=True``; with ``quiet=True``
            no progress is shown. What names files takes rows that are at hand too, as ``data`` of
            :func:`cse.train` does.

    Returns:
        What ``cse eval --json`` prints: ``results`` by set for one model, ``models`` for several.

    Raises:
        CseError: If a model, a file or an option is wrong, or cse-evaluation is not installed.
    """
    from cse.tables import files_of

    plugins = Installed()
    function = plugins.commands.function("eval")
    for name in ("pairs", "labelled", "documents"):
        if options.get(name) is not None:
            options[name] = files_of(options[name], name)
    result: dict[str, Any] = function(plugins, [fspath(model) for model in models], **options)
    return result
