"""Rows of the pre-training tool: token chunks, batches of one length, and masking.

Every batch holds rows of one exact length, so nothing is ever padded. A row begins at the start
of a sentence, as the texts do that the encoder is meant for, and never leaves its text.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from cse_core.errors import CseError
from mlm.text import TokenStore

SHORTEST_ROW = 4


class Special(NamedTuple):
    """Ids of the special tokens a batch needs, and the size of the vocabulary."""

    cls: int
    sep: int
    mask: int
    vocab_size: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Special":
        """Read the ids from a tokenizer.

        Raises:
            CseError: It has no [CLS], [SEP] or [MASK].
        """
        ids = [tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]", "[MASK]")]
        if None in ids:
            raise CseError("the tokenizer lacks [CLS], [SEP] or [MASK]", hint="use one of BERT's")
        return cls(ids[0], ids[1], ids[2], tokenizer.get_vocab_size())


class Masked(NamedTuple):
    """A masked batch.

    Attributes:
        ids: Token ids `[R, L]`, masked.
        positions: Flat places in `ids` that are scored `[M]`, ascending.
        labels: The ids that stood there `[M]`.
    """

    ids: Tensor
    positions: Tensor
    labels: Tensor


class Batch(NamedTuple):
    """Rows of one length: where each begins in the token store, and how many tokens it takes."""

    starts: NDArray[np.int64]
    length: int


def cut_rows(
    store: TokenStore, held_out: bool, shares: dict[int, float], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cut every text into rows and return their starts and lengths.

    Args:
        store: The tokens.
        held_out: Whether to cut the held-out texts or the others.
        shares: Row length with its special tokens -> wanted share of all tokens.
        rng: Draws the length of each row.
    """
    caps = np.array(sorted(shares)) - 2
    chances = np.array([shares[cap + 2] / cap for cap in caps])
    chances /= chances.sum()
    starts: list[int] = []
    lengths: list[int] = []
    bounds = store.sentences
    for text in np.flatnonzero(store.held_out == held_out):
        sentence, end = int(store.texts[text]), int(store.texts[text + 1])
        stop = int(bounds[end])
        while sentence < end:
            begin = int(bounds[sentence])
            cap = int(caps[np.searchsorted(chances.cumsum(), rng.random(), side="right")])
            length = min(cap, stop - begin)
            if length >= SHORTEST_ROW:
                starts.append(begin)
                lengths.append(length)
            after = int(np.searchsorted(bounds[sentence + 1 : end], begin + length))
            sentence = sentence + 1 + after
    return np.asarray(starts, dtype=np.int64), np.asarray(lengths, dtype=np.int64)


def batch_rows(
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    batch_tokens: int,
    rng: np.random.Generator,
) -> list[Batch]:
    """Group rows into batches of one length and about `batch_tokens` positions, in random order.

    Rows left over after the full batches of their length are cut to the shortest of their group.
    """
    order = rng.permutation(len(starts))
    order = order[np.argsort(-lengths[order], kind="stable")]
    batches: list[Batch] = []
    left: list[NDArray[np.int64]] = []
    edges = np.flatnonzero(np.diff(lengths[order], prepend=-1, append=-1))
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        group = order[low:high]
        length = int(lengths[group[0]])
        rows = max(1, batch_tokens // (length + 2))
        full = len(group) // rows * rows
        batches += [Batch(starts[group[i : i + rows]], length) for i in range(0, full, rows)]
        left.append(group[full:])
    rest = np.concatenate(left) if left else order[:0]
    place = 0
    while place < len(rest):
        rows = max(1, batch_tokens // (int(lengths[rest[place]]) + 2))
        group = rest[place : place + rows]
        batches.append(Batch(starts[group], int(lengths[group[-1]])))
        place += rows
    return [batches[i] for i in rng.permutation(len(batches))]


def epoch_batches(
    store: TokenStore, shares: dict[int, float], batch_tokens: int, seed: int, epoch: int
) -> list[Batch]:
    """Return the batches of one pass over the training texts, a function of seed and epoch."""
    rng = np.random.default_rng((seed, epoch))
    starts, lengths = cut_rows(store, False, shares, rng)
    return batch_rows(starts, lengths, batch_tokens, rng)


def token_ids(store: TokenStore, batch: Batch, special: Special) -> Tensor:
    """Return the batch's rows `[R, length + 2]` with their special tokens."""
    content = store.tokens[batch.starts[:, None] + np.arange(batch.length)]
    ids = np.empty((len(batch.starts), batch.length + 2), dtype=np.int64)
    ids[:, 0], ids[:, 1:-1], ids[:, -1] = special.cls, content, special.sep
    return torch.from_numpy(ids)


def mask_tokens(ids: Tensor, special: Special, rate: float, rng: np.random.Generator) -> Masked:
    """Choose tokens to predict: 80 % become [MASK], 10 % a random token, 10 % stay.

    The rule of BERT (Devlin et al. 2019, section 3.1); special tokens are never chosen and a
    batch has at least one chosen token.
    """
    rows, length = ids.shape
    chosen = rng.random((rows, length), dtype=np.float32) < rate
    chosen[:, 0] = chosen[:, -1] = False
    if not chosen.any():
        chosen[0, 1] = True
    positions = np.flatnonzero(chosen)
    flat = ids.numpy().reshape(-1).copy()
    labels = flat[positions]
    fate = rng.random(len(positions), dtype=np.float32)
    flat[positions[fate < 0.8]] = special.mask
    swapped = positions[fate >= 0.9]
    flat[swapped] = rng.integers(special.mask + 1, special.vocab_size, len(swapped))
    return Masked(
        torch.from_numpy(flat.reshape(rows, length)),
        torch.from_numpy(positions),
        torch.from_numpy(labels),
    )


def held_out_batches(
    store: TokenStore, row_length: int, batch_tokens: int, limit: int
) -> Iterator[Batch]:
    """Yield fixed batches of about `limit` held-out tokens, rows of at most `row_length`."""
    rng = np.random.default_rng(0)
    starts, lengths = cut_rows(store, True, {row_length: 1.0}, rng)
    seen = 0
    for batch in batch_rows(starts, lengths, batch_tokens, rng):
        if seen >= limit:
            return
        seen += batch.length * len(batch.starts)
        yield batch
