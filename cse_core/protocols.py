"""What is handed to parts: an encoder, a tokenizer, the training rows. Parts make none of these."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor, nn

from cse_core.texts import NO_COLUMNS, DataOptions, LoadReport, NeededColumns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cse_core.records import ColumnType
    from cse_core.types import CorpusKeys, Hidden, TokenBatch


class DropoutSource(Protocol):
    """Seeded random bits of every dropout mask of a model; ``state`` is where the draws are."""

    state: Any

    def drop(self, values: Tensor, p: float) -> Tensor:
        """Drop values, of any shape, with probability ``p`` in [0, 1] and scale the others up."""

    def next_seed(self) -> int:
        """Draw a seed for something that has its own generator."""


class Encoder(nn.Module):
    """An encoder that takes rows lying end to end.

    Attributes:
        model: The network: what adapters change, whose weights are saved.
        hidden_size: ``H``.
        embedding_size: ``E``, the width of the word-embedding table.
        layer_count: Number of its layers.
        vocab_size: Rows of the word-embedding table.
        max_positions: Tokens of its longest row.
        own_pooler: ``weight`` ``[H, H]`` and ``bias`` ``[H]`` of the dense layer trained with it on
            the first token (BERT's pooler); None without one.
        dropout_source: What its dropout masks are drawn from; None: torch's own generator.
        only_fp32: Whether it computes in fp32 under autocast too.
        tokens_at_once: Tokens of a call without gradient; None: as many as suit a transformer.
        why_padded: Why rows are padded, one clause; None where no work is done on padding.
    """

    model: nn.Module
    hidden_size: int
    embedding_size: int
    layer_count: int
    vocab_size: int
    max_positions: int
    own_pooler: Mapping[str, Tensor] | None = None
    dropout_source: DropoutSource | None = None
    only_fp32: bool = False
    tokens_at_once: int | None = None
    why_padded: str | None = None

    def use_dropout(self, source: DropoutSource) -> None:
        """Draw dropout masks from a source; the engine has replaced modules of torch before."""
        self.dropout_source = source

    def depths(self) -> Mapping[str, int]:
        """Count the layers above each parameter, by its name; none where no layers are known."""
        return {}

    def copy(self, share_embeddings: bool = False) -> Encoder:
        """Return a copy that draws its dropout from the same source.

        It shares weights that are not trained and, on request, the word embeddings.
        """

    def word_embeddings(self, ids: Tensor) -> Tensor:
        """Look ``[T]`` ids up in the word-embedding table: ``[T, E]``, nothing added yet."""

    def input_embeddings(self, words: Tensor, positions: Tensor, offsets: Tensor) -> Tensor:
        """Return ``[T, H]``, what enters the first layer for ``[T, E]`` word embeddings.

        That includes positions, token types, LayerNorm, and dropout in training. The arguments are
        those of ``forward``.
        """

    def layers(self) -> list[nn.Module]:
        """Return the transformer layers, none if they are unknown."""

    def drop_layers(self, keep: int = 0) -> None:
        """Free the weights of all layers but the first ``keep``, after which a pass then ends."""

    def forward(
        self,
        words: Tensor,
        positions: Tensor,
        offsets: Tensor,
        *,
        on_input: Callable[[Tensor], Tensor] | None = None,
        layers: Collection[int] = (),
        read: Tensor | None = None,
    ) -> Hidden:
        """Encode R rows of T tokens in all.

        Args:
            words: ``[T, E]`` word embeddings.
            positions: ``[T]`` int64, each token's place in its row, from 0, below
                ``max_positions``, unique in a row; places may be omitted.
            offsets: ``[R + 1]`` int64 on the CPU: where each row begins; the last is T.
            on_input: Gets ``[T, H]``, what enters the first layer (after LayerNorm, dropout and
                projection), and returns what enters instead.
            layers: Which layers' outputs to return too, 0 to ``layer_count``.
            read: ``[R]`` int64, the only token of each row whose last state is needed; the last
                layer then skips the others if the model allows it. None: all.

        Raises:
            ValueError: If a row is longer than ``max_positions``, or the layer does not exist.
        """


class MaskedHead(nn.Module):
    """The head of a masked language model.

    Attributes:
        pretrained: Whether the model's folder has weights for it; else they are drawn.
    """

    pretrained: bool

    def tie(self, encoder: Encoder | None) -> None:
        """Let its matrix be the word embeddings of an encoder; None gives it one of its own."""

    def forward(self, states: Tensor) -> Tensor:
        """Return ``[N, V]`` logits of the vocabulary for ``[N, H]`` states."""


class Tokenizer(Protocol):
    """A tokenizer that adds special tokens by wrapping content.

    Attributes:
        hf: The tokenizer of its library, such as a Hugging Face tokenizer.
        before: Ids of the special tokens before a row's content.
        after: Ids of those behind it.
        special_count: Number of both.
        prompt: Text before each text, read with it as one; special in the tokens.
        longest: Content tokens that a run keeps of a text, for another model; None: the run's own.
    """

    hf: Any
    before: list[int]
    after: list[int]
    special_count: int

    @property
    def unknown_id(self) -> int | None:
        """The id of the token for what the vocabulary lacks; None without one."""

    prompt: str
    longest: int | None

    def with_prompt(self, prompt: str | None) -> Tokenizer:
        """Give this tokenizer another prompt, one object for each; None keeps its own."""

    def end_rows(self, where: str) -> None:
        """End every row with the end token, unless the tokenizer already does.

        Raises:
            CseError: If it has no such token; ``where`` is what asks for it.
        """

    def content(self, texts: Sequence[str], longest: int | None = None) -> TokenBatch:
        """Return texts as rows of content tokens; row i has owner i."""

    def wrap(
        self, content: TokenBatch, prompt: tuple[str, str] = ("", ""), longest: int | None = None
    ) -> TokenBatch:
        """Put every row between its special tokens and prompt; cut the content's tail, never them.

        Raises:
            CseError: If special tokens and prompt alone are longer than ``longest``.
        """

    def prompt_ids(self, text: str) -> list[int]:
        """Tokenise the text of a prompt."""

    def state(self) -> str:
        """Write down all that its tokens depend on but texts, prompt and lengths.

        Raises:
            ValueError: If that is not known, as where a part of it is written in Python.
        """

    def cuts(self, texts: Sequence[str], tokens: int) -> list[list[int]]:
        """List where each text is cut into pieces of ``tokens`` tokens, as places of characters."""


class Column(Protocol):
    """A column of texts, which stay in Arrow until they are used; a ``Sequence[str]``."""

    def __len__(self) -> int: ...
    def __getitem__(self, row: int) -> str: ...
    def __iter__(self) -> Iterator[str]: ...

    def take(self, rows: Sequence[int] | NDArray[np.integer[Any]]) -> list[str]:
        """Take the texts of some rows, in their order."""

    def distinct(self) -> tuple[Sequence[str], NDArray[np.int64]]:
        """List the different texts by first appearance, and ``[rows]`` which of them a row has."""


class Corpus(Protocol):
    """The training rows of a run: a row is a sentence, a paragraph or a document."""

    def __len__(self) -> int: ...

    @property
    def report(self) -> LoadReport:
        """What was seen in loading it."""

    @property
    def held_out(self) -> Corpus | None:
        """Rows that are kept out of it, None where there are none."""

    @property
    def text_ids(self) -> NDArray[np.int64]:
        """``[rows]`` first row with the same text."""

    @property
    def fingerprint(self) -> str:
        """A hash of columns, contents and documents; paths do not enter."""

    @property
    def documents(self) -> NDArray[np.int64] | None:
        """``[rows]`` document number of each row, -1 for none; None without documents."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""

    def column(self, name: str) -> Column:
        """Return a column with one text a row.

        Raises:
            CseError: If it is missing, or holds lists.
        """

    def texts_of(self, name: str) -> Column:
        """Return the texts of a column; those of lists lie end to end."""

    def offsets(self, name: str) -> NDArray[np.int64] | None:
        """Return ``[rows + 1]`` where the lists of a column begin; None: a row has one text."""

    def pieces(self, tokenizer: Tokenizer, tokens: int, columns: Sequence[str] = ()) -> Corpus:
        """Cut the texts into pieces of at most ``tokens`` tokens.

        Raises:
            CseError: If the run encodes further ``columns``: only texts are cut.
        """

    def values(self, name: str, kind: ColumnType) -> NDArray[Any]:
        """Read a column as ``[rows]`` numbers: float64, or int64 of integers and labels.

        A label's number is its place among the sorted labels. Numbers of lists lie end to end.
        """


class Rows(Protocol):
    """The rows of a round, of the corpus or of a miner, tokenised once.

    Attributes:
        keys: What the core knows about each row, for masks.
        longest: Content tokens of a text that are kept.
        pairs: Columns of a miner's round; None if it trains on the corpus.
    """

    keys: CorpusKeys
    longest: int
    pairs: Mapping[str, Sequence[str] | NDArray[Any]] | None

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""

    def content(self, column: str, index: Tensor, tokenizer: Tokenizer) -> TokenBatch:
        """Return rows ``[B]`` of a column as content tokens; row i of the result has owner i.

        Of a column of lists these are places among the texts of all rows.
        """

    def texts(self, column: str, index: Tensor) -> list[str]:
        """Return rows ``[B]`` of a column as texts, of lists those at places."""

    def values(self, column: str, kind: ColumnType) -> Tensor:
        """Return ``[rows]`` numbers of a column: float32, or int64 of integers and labels."""

    def __len__(self) -> int: ...


class Data(Protocol):
    """All rows and columns that ``data.*`` names, of which a run takes what it needs."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that some source has, ``text`` first."""

    @property
    def texts(self) -> set[str]:
        """Names of the columns of files that hold texts of more than a word."""

    @property
    def graded(self) -> set[str]:
        """Names of the columns whose texts another grades; only views that name them read them."""

    @property
    def renamed(self) -> Mapping[str, str]:
        """Names of columns, by those that they have in their files, where these differ."""

    def corpus(self, needed: NeededColumns = NO_COLUMNS) -> Corpus:
        """Give the rows that have a text in ``text`` and in every column that a run needs.

        Raises:
            CseError: If a column is missing, or no row is complete.
        """


TextReader = Callable[[DataOptions], Data]
"""Reads what ``data.*`` names; a ``CseError`` says which source is missing or wrong."""
