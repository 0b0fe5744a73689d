"""What reads, runs and saves models of one library: its record is a ``BackendSpec``."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cse_core.errors import CseError
from cse_core.model_card import Declared
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from cse_core.parts import Head
    from cse_core.protocols import Encoder, MaskedHead, Tokenizer


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A model to save.

    Attributes:
        encoder: Its encoder.
        model: ``encoder.model``, with an adapter's additions merged into it.
        tokenizer: Its tokenizer.
        card: How it encodes: its row pooler's options, prompts, lengths and the like.
        pooling: Mode of sentence-transformers that equals its row pooler, if any.
        heads: Its heads by instance name.
        mask: Which tokens have a vector, as ``MultiVectorSpec.sentence_transformers`` says it; None
            where none has, or nothing but cse can leave out the others.
        other: Why nothing but cse computes its vectors, one clause; None where others can.
    """

    encoder: Encoder
    model: nn.Module
    tokenizer: Tokenizer
    card: Mapping[str, Any]
    pooling: str | None
    heads: Mapping[str, Head]
    mask: Mapping[str, Any] | None
    other: str | None


class TokenCount(NamedTuple):
    """Tokens of a text: with special ones, its own, and those that the vocabulary lacks."""

    tokens: int
    content: int
    unknown: int


class TokenStates(NamedTuple):
    """Last states ``[T, H]`` of each text, and counts over all of them."""

    states: list[NDArray[np.float32]]
    cut: int
    tokens: int
    unknown: int


class FewTexts(Protocol):
    """Computes states of a few texts without torch, in fp32 on a processor.

    Attributes:
        max_positions: Tokens of its longest row.
    """

    max_positions: int

    def __call__(self, texts: Sequence[str], longest: int, prompt: str) -> TokenStates | None:
        """Return the states of texts behind a prompt, cut to ``longest`` tokens with special ones.

        None where it cannot: then the model is loaded whole.
        """


class Backend(Protocol):
    """Finds, describes, loads and saves the models of one library.

    The class is called without an argument. All methods but those that load and save import no
    torch.
    """

    def find(self, name: str, installed: Sequence[str], *, weights: bool) -> Path | None:
        """Fetch a model that has no folder here, or only its small files.

        Args:
            name: Name of a model, such as one on a hub.
            installed: Names of installed encoders, for hints.
            weights: Whether its weights are wanted too; they are there or refused.

        Raises:
            CseError: If the name is known to be wrong.
        """

    def cached(self, name: str) -> Path | None:
        """Find a model that was fetched before; nothing is fetched."""

    def takes(self, folder: Path) -> bool:
        """Check whether a folder holds a model of this library."""

    def facts(self, folder: Path, name: str) -> RunInfo:
        """Read sizes and special tokens from a folder's small files; ``name`` is for messages."""

    def card(self, folder: Path, name: str) -> Declared:
        """Read how the model encodes, as its library's files say."""

    def check(self, folder: Path, name: str) -> None:
        """Refuse a folder whose small files show that no encoder can be loaded from it."""

    def count_tokens(self, folder: Path, texts: Sequence[str]) -> list[TokenCount]:
        """Count the tokens of texts that nothing cuts.

        Raises:
            CseError: If the folder has no tokenizer that can be read.
        """

    def problems(self, options: Any, facts: RunInfo) -> Iterator[CseError | str]:
        """Yield the errors in the ``model.*`` options for a model with these facts."""

    def load(
        self, folder: Path, options: Any, card: Declared, *, seed: int = 0
    ) -> tuple[Encoder, Tokenizer]:
        """Load an encoder and its tokenizer.

        Args:
            folder: Its folder.
            options: ``model.*``: dropout, frozen layers, attention and the like.
            card: What its folder says of how it encodes.
            seed: Seeds weights that are drawn.
        """

    def few_texts(self, folder: Path, name: str, card: Declared) -> FewTexts | None:
        """Open a model for the few texts of a search, None where it has to be loaded.

        A backend may lack this method. What it computes is compared with what the loaded model
        computed before it is used.
        """

    def load_tokenizer(self, folder: Path, card: Declared) -> Tokenizer:
        """Load only a tokenizer, without a prompt."""

    def load_masked_lm(
        self, folder: Path, card: Declared, *, seed: int = 0, from_scratch: bool = False
    ) -> tuple[Encoder, MaskedHead, Tokenizer]:
        """Load an encoder with its head for masked tokens, drawn where the folder has none."""

    def head_weights(self, folder: Path, name: str) -> dict[str, Tensor]:
        """Read the weights of a pooler or head of the card, by the names of a part's own."""

    def save(self, trained: TrainedModel, folder: Path) -> str | None:
        """Write a model into a folder that is there; return why other programs cannot read it."""
