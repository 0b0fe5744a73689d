"""Texts to ragged tokens: content, then prompts and special tokens around it, the tail cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cse_core.errors import CseError
from cse_core.types import TokenBatch, offsets_of, positions_of, ragged_index

_TOKENISED_AT_ONCE = 10_000


@dataclass(frozen=True)
class TokenTable:
    """Content tokens of many texts, end to end.

    Attributes:
        ids: ``[T]`` vocabulary ids.
        word: ``[T]`` index of the word in its text.
        offsets: ``[texts + 1]`` where each text begins.
    """

    ids: Tensor
    word: Tensor
    offsets: Tensor

    def rows(self, index: Tensor, owner: Tensor | None = None) -> TokenBatch:
        """Return the texts at ``index`` as rows of content.

        Args:
            index: ``[R]`` texts.
            owner: ``[R]`` batch row of each; by default one each in order.
        """
        lengths = self.offsets[1:][index] - self.offsets[:-1][index]
        tokens = ragged_index(self.offsets[:-1][index], lengths)
        offsets = offsets_of(lengths)
        positions = positions_of(offsets)
        return TokenBatch(
            ids=self.ids[tokens].long(),
            positions=positions,
            source=positions.clone(),
            word=self.word[tokens].long(),
            special=torch.zeros(len(tokens), dtype=torch.bool),
            offsets=offsets,
            owner=torch.arange(len(index)) if owner is None else owner,
            slot=torch.zeros(len(index), dtype=torch.long),
        )


class TextTokenizer:
    """A Hugging Face tokenizer as the core uses it: content first, special tokens by wrapping."""

    def __init__(self, tokenizer: Any) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise CseError(
                "its tokenizer has no fast version",
                where="model.name",
                value=getattr(tokenizer, "name_or_path", None),
                hint="convert it to a tokenizer.json",
            )
        self.hf = tokenizer
        plain = tokenizer("a", add_special_tokens=False)["input_ids"]
        wrapped = tokenizer("a", add_special_tokens=True)["input_ids"]
        start = next(
            (
                place
                for place in range(len(wrapped) - len(plain) + 1)
                if wrapped[place : place + len(plain)] == plain
            ),
            0,
        )
        self.before: list[int] = wrapped[:start]
        self.after: list[int] = wrapped[start + len(plain) :]

    @property
    def special_count(self) -> int:
        """Return the special tokens that wrap a row."""
        return len(self.before) + len(self.after)

    @property
    def mask_token(self) -> str | None:
        """Return the mask token's text, None where there is none."""
        token: str | None = self.hf.mask_token
        return token

    @property
    def mask_id(self) -> int | None:
        """Return the mask token's id, None where there is none."""
        number: int | None = self.hf.mask_token_id
        return number

    @property
    def vocab_size(self) -> int:
        """Return the number of ids."""
        return len(self.hf)

    def table(self, texts: Sequence[str], longest: int | None = None) -> TokenTable:
        """Tokenise texts without special tokens.

        Args:
            texts: The texts.
            longest: Tokens of a text that are kept at most; the tail is cut.
        """
        ids: list[NDArray[np.int32]] = []
        words: list[NDArray[np.int32]] = []
        lengths: list[int] = []
        for start in range(0, len(texts), _TOKENISED_AT_ONCE):
            part = list(texts[start : start + _TOKENISED_AT_ONCE])
            encoded = self.hf(
                part,
                add_special_tokens=False,
                truncation=longest is not None,
                max_length=longest,
                return_attention_mask=False,
                return_token_type_ids=False,
                verbose=False,
            )
            for row in encoded.encodings:
                ids.append(np.asarray(row.ids, dtype=np.int32))
                words.append(
                    np.asarray([-1 if w is None else w for w in row.word_ids], dtype=np.int32)
                )
                lengths.append(len(row.ids))
        flat_ids = np.concatenate(ids) if ids else np.zeros(0, np.int32)
        flat_words = np.concatenate(words) if words else np.zeros(0, np.int32)
        return TokenTable(
            ids=torch.from_numpy(flat_ids),
            word=torch.from_numpy(flat_words),
            offsets=offsets_of(torch.tensor(lengths, dtype=torch.long)),
        )

    def content(
        self, texts: Sequence[str], longest: int | None = None, owner: Tensor | None = None
    ) -> TokenBatch:
        """Return texts as rows of content tokens."""
        return self.table(texts, longest).rows(torch.arange(len(texts)), owner)

    def wrap(
        self, content: TokenBatch, prompt: tuple[str, str] = ("", ""), longest: int | None = None
    ) -> TokenBatch:
        """Put every row between its special tokens and prompt; cut the content's tail, never them.

        Args:
            content: Rows of content tokens.
            prompt: Texts before and after the content.
            longest: Tokens of a wrapped row at most.

        Raises:
            CseError: If special tokens and prompt alone are longer.
        """
        before = self.before + self._prompt_ids(prompt[0])
        after = self._prompt_ids(prompt[1]) + self.after
        added = len(before) + len(after)
        lengths = content.lengths
        if longest is not None:
            if added >= longest:
                raise CseError(
                    f"special tokens and prompt take {added} tokens, nothing is left for the text",
                    where="model.max_length",
                    value=longest,
                    hint=f"use at least {added + 1}",
                )
            lengths = lengths.clamp_max(longest - added)
        kept = ragged_index(content.offsets[:-1], lengths)
        rows = content.rows
        offsets = offsets_of(lengths + added)
        total = int(offsets[-1])
        place = torch.arange(len(kept)) + len(before)
        place += torch.repeat_interleave(torch.arange(rows) * added, lengths)

        def spread(values: Tensor, fill: int) -> Tensor:
            out = torch.full((total,), fill, dtype=torch.long)
            out[place] = values[kept]
            return out

        ids = spread(content.ids, 0)
        for shift, token in enumerate(before):
            ids[offsets[:-1] + shift] = token
        for shift, token in enumerate(reversed(after)):
            ids[offsets[1:] - 1 - shift] = token
        special = torch.ones(total, dtype=torch.bool)
        special[place] = content.special[kept]
        return replace(
            content,
            ids=ids,
            positions=positions_of(offsets),
            source=spread(content.source, -1),
            word=spread(content.word, -1),
            special=special,
            offsets=offsets,
        )

    def _prompt_ids(self, text: str) -> list[int]:
        if not text:
            return []
        return list(self.hf(text, add_special_tokens=False, verbose=False)["input_ids"])
