"""Texts encoded with a loaded model: the ends of long ones are cut, or their slices averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol

from cse_cli.models.processes import by_all, helpers
from cse_cli.texts.given import unknown_line
from cse_core.errors import CseError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from cse_cli.models.saved_model import SentenceModel
    from cse_core.model_card import SimilarityName
    from cse_core.suites import Role
    from cse_engine.step.sentence_encoder import SentenceEncoder
    from cse_engine.step.token_table import TokenTable

LongTexts = Literal["cut", "slice"]
"""What becomes of texts that are longer than the model takes."""
BLOCK = 8192
"""Texts that are encoded together, so that vectors can be written while others are made."""


class TextEncoder:
    """Encodes texts with a model, and counts those whose ends it cuts off.

    Args:
        model: The model.
        batch_tokens: Tokens that it is given at once.
        max_length: Longest text in tokens instead of the model's own.
        long_texts: ``cut``, or ``slice``: the vector of a longer text is the mean of those of its
            consecutive slices, weighted by their tokens.

    Raises:
        CseError: If ``batch_tokens`` is not a number of tokens.
    """

    def __init__(
        self,
        model: SentenceModel,
        batch_tokens: int | None = None,
        *,
        max_length: int | None = None,
        long_texts: LongTexts = "cut",
    ) -> None:
        from cse_core.options import LARGEST

        if batch_tokens is not None and not 1 <= batch_tokens <= LARGEST:
            raise CseError("must be a number of tokens", where="--batch-tokens", value=batch_tokens,
                           hint=f"write 1 to {LARGEST:,}")  # fmt: skip
        if max_length is not None:
            encoder = replace(model.sentence_encoder, max_length=max_length)
            model = replace(model, sentence_encoder=encoder)
        self._model, self._batch_tokens, self._long_texts = model, batch_tokens, long_texts
        self.texts = self.cut = self.tokens = self.unknown = 0

    @property
    def name(self) -> str:
        """Return the name that the model was loaded by."""
        return self._model.name

    @property
    def max_length(self) -> int:
        """Return the longest text in tokens, special ones counted, that is encoded at once."""
        return self._model.sentence_encoder.max_length

    @property
    def similarity(self) -> SimilarityName:
        """Return the similarity that compares the model's vectors."""
        return self._model.similarity

    def with_role(self, role: Role) -> Callable[[Sequence[str]], NDArray[np.float32]]:
        """Return the encoder of queries or documents; what it cuts is counted here."""
        return partial(self, role=role)

    def __call__(
        self, texts: Sequence[str], block: int | None = None, role: Role | None = None
    ) -> NDArray[np.float32]:
        """Return their vectors ``[N, D]``; ``block`` texts are put in order of length at a time."""
        texts = list(texts)
        model = self._model if role is None else self._model.with_role(role)
        if self._long_texts == "slice":
            self.texts += len(texts)
            return by_all(model, _sliced, texts, self._batch_tokens, block).numpy()
        longest, room = _room(model.sentence_encoder)
        vectors, *counts = by_all(model, _encoded, texts, longest, self._batch_tokens, block)
        self._count(room, *counts)
        return vectors.numpy()

    def _count(self, room: int, lengths: Tensor, unknown: Tensor) -> None:
        """Count texts by their content tokens and unknown ones, and those beyond the room."""
        self.texts += len(lengths)
        self.cut += int((lengths > room).sum())
        self.tokens += int(lengths.sum())
        self.unknown += int(unknown.sum())

    def several(
        self, texts: Sequence[str], level: str, role: Role | None = None
    ) -> list[NDArray[np.float32]]:
        """Return the vectors ``[m, D]`` of each text at a level of which it has several.

        Raises:
            CseError: If the model has no such level.
        """
        return self.with_several(texts, level, role, count=False)[1]

    def with_several(
        self, texts: Sequence[str], level: str, role: Role | None = None, *, count: bool = True
    ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        """Return the vectors ``[N, D]`` of texts, and those ``[m, D']`` of each at a level.

        Texts that are cut are counted, unless they were before.

        Raises:
            CseError: If the model has no such level.
        """
        import numpy as np

        model = self._model if role is None else self._model.with_role(role)
        encoder, known = model.sentence_encoder, model.sentence_encoder.several
        if level not in known:
            named = [f"write {' or '.join(known)}"] if known else []
            hint = ", or ".join((*named, *_training_of(level)))
            raise CseError(f"{model.name} has no vectors of this level", where="--level",
                           value=level, hint=hint)  # fmt: skip
        longest, room = _room(encoder)
        table = encoder.table(texts, longest, False)
        if count:
            self._count(room, *_counts(encoder, table))
        rows: list[Any] = [None] * len(texts)
        several = [*rows]
        with model.precision.autocast():
            blocks = encoder.encode_several(table, level, model.device, self._batch_tokens)
            for places, made, parted in blocks:
                for place, row, parts in zip(places.tolist(), made, parted, strict=True):
                    rows[place], several[place] = row.numpy(), parts.numpy()
        empty = np.zeros((0, encoder.dimension), np.float32)
        return np.stack(rows) if rows else empty, several

    def several_blocks(
        self, texts: Iterable[str], level: str, role: Role | None = None
    ) -> Iterator[tuple[list[str], list[NDArray[np.float32]]]]:
        """Yield texts, some at a time, with their vectors ``[m, D]`` of each at a level."""
        rest = iter(texts)
        while block := list(islice(rest, BLOCK)):
            yield block, self.with_several(block, level, role)[1]

    def blocks(
        self, texts: Iterable[str], size: int | None = None, role: Role | None = None
    ) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """Yield texts, ``size`` for each process at a time, with their vectors ``[N, D]``."""
        rest, size = iter(texts), size or BLOCK
        while block := list(islice(rest, size * (1 + helpers()))):
            yield block, self(block, size, role)

    @property
    def note(self) -> str | None:
        """Describe the texts that were cut or not understood; None where all were read."""
        positions = self._model.sentence_encoder.encoder.max_positions
        return note_of(self, self._model.name, self.max_length, positions)


class Counts(Protocol):
    """Texts that were read and cut, and their tokens, of which some are unknown."""

    texts: int
    cut: int
    tokens: int
    unknown: int


def note_of(read: Counts, name: str, longest: int, positions: int) -> str | None:
    """Describe the texts that a model cut at ``longest`` tokens or did not understand."""
    unknown = unknown_line(read.unknown, read.tokens, name)
    if not read.cut:
        return unknown or None
    more = f"; --max-length N reads up to {positions:,}"
    if longest >= positions:
        more = ", which is all that the model takes"
    cut = f"{read.cut:,} of {read.texts:,} texts were cut"
    return "; ".join(filter(None, (f"{cut} at {longest:,} tokens{more}", unknown)))


def _training_of(level: str) -> list[str]:
    """Name the installed parts by which a model is trained that has a level."""
    from cse_cli.plugins.installed import Installed
    from cse_core.capabilities import Need
    from cse_core.records import MultiVectorSpec

    parts = Installed().registry.providers(Need("level", level))
    poolers = [part.name for part in parts if isinstance(part.spec, MultiVectorSpec)]
    return [f"train one: --pool +{name}" for name in poolers]


def _encoded(
    model: SentenceModel,
    shared: bool,
    texts: list[str],
    longest: int,
    batch_tokens: int | None,
    block: int | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the vectors ``[N, D]`` of texts, and how many tokens and unknown ones each has."""
    encoder = model.sentence_encoder
    table = encoder.table(texts, longest, shared)
    with model.precision.autocast():
        vectors = encoder.encode_table(
            table, model.device, batch_tokens, block=block, shared=shared
        )
    return vectors, *_counts(encoder, table)


def _room(encoder: SentenceEncoder) -> tuple[int, int]:
    """Return how many content tokens of a text to read, and those from which on it is cut."""
    longest = encoder.max_length
    if encoder.slicer is not None and not encoder.slicer.slices_wrapped:
        return longest + 1, longest  # a text that is cut shows by it
    prompt = map(encoder.tokenizer.prompt_ids, encoder.prompt("anchor"))
    return longest, longest - encoder.tokenizer.special_count - sum(map(len, prompt))


def _counts(encoder: SentenceEncoder, table: TokenTable) -> tuple[Tensor, Tensor]:
    """Return how many content tokens and unknown ones each text has, both ``[N]``."""
    from torch.nn.functional import pad

    unknown = encoder.tokenizer.unknown_id
    before = pad((table.ids == (-1 if unknown is None else unknown)).cumsum(0), (1, 0))
    return table.offsets.diff(), before[table.offsets].diff()


def _sliced(
    model: SentenceModel,
    shared: bool,
    texts: list[str],
    batch_tokens: int | None,
    block: int | None,
) -> Tensor:
    """Return the vectors ``[N, D]`` of texts, means over slices where they are long.

    A slice has as many content tokens as a row of ``max_length`` takes; a prompt stands in the
    first. A text that fits is encoded as :meth:`SentenceEncoder.encode` does.
    """
    import torch

    from cse_core.types import offsets_of, positions_of
    from cse_engine.step.token_table import TokenTable

    encoder = model.sentence_encoder
    whole = encoder.table(texts, None, shared)
    total = whole.offsets.diff()
    longest = slice_length(encoder)
    counts = (total + longest - 1).div(longest, rounding_mode="floor").clamp_min(1)
    text = torch.repeat_interleave(torch.arange(len(texts)), counts)
    begin = positions_of(offsets_of(counts)) * longest
    lengths = (total[text] - begin).clamp_max(longest)
    slices = TokenTable(whole.ids, whole.word, offsets_of(lengths))
    blocks = None if block is None else [int(part.sum()) for part in torch.split(counts, block)]
    with model.precision.autocast():
        vectors = encoder.encode_table(
            slices, model.device, batch_tokens, block=blocks, shared=shared
        )
    # A text without tokens is one empty slice, which counts as one token.
    weights = lengths.clamp_min(1).to(vectors.dtype).unsqueeze(1)
    sums = vectors.new_zeros(len(texts), vectors.shape[1]).index_add_(0, text, vectors * weights)
    return sums / sums.new_zeros(len(texts), 1).index_add_(0, text, weights)


def slice_length(encoder: SentenceEncoder) -> int:
    """Count the content tokens that fit in a row of ``max_length`` beside its special tokens."""
    longest = encoder.max_length
    if encoder.slicer is None:
        longest = min(longest, encoder.encoder.max_positions)
    empty = encoder.tokenizer.content([""])
    wrapped = encoder.tokenizer.wrap(empty, encoder.prompt("anchor"), longest)
    return longest - len(wrapped.ids)


def maxsim(asked: NDArray[np.floating], vectors: NDArray[np.floating]) -> float:
    """Return the sum over vectors ``[q, D]`` of their largest product with one of ``[m, D]``.

    Without any it is 0 (ColBERT, Eq. 3; vectors have length 1).
    """
    return float((asked @ vectors.T).max(axis=1).sum()) if len(vectors) else 0.0


def similarities(
    kind: SimilarityName, asked: NDArray[np.float32], vectors: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Compare vectors ``[queries, D]`` and ``[texts, D]``, giving ``[queries, texts]``.

    More is nearer: distances are negative.
    """
    import numpy as np

    from cse_cli.models.geometry import unit

    if kind in ("euclidean", "manhattan"):
        from scipy.spatial.distance import cdist  # slow to import, and most never need it

        distances = cdist(asked, vectors, "cityblock" if kind == "manhattan" else kind)
        return -distances.astype(np.float32)
    if kind == "cosine":
        asked, vectors = (unit(side).astype(np.float32) for side in (asked, vectors))
    return asked @ vectors.T
