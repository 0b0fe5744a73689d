"""Texts to ragged tokens: content, then prompts and special tokens around it, cut to a length."""

from __future__ import annotations

import copy
import json
import re
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from tokenizers import __version__
from tokenizers.processors import Sequence as SequenceOfProcessors
from tokenizers.processors import TemplateProcessing
from torch import Tensor

from cse_core.errors import CseError
from cse_core.types import TokenBatch, offsets_of, positions_of, ragged_index

_PROMPT = -2
"""Word of a token that belongs to the prompt of the tokenizer."""
_SPACE = re.compile(r"\s")
_CHARACTERS = 10
"""Of a token that is kept, about twice as many as it has in most texts."""


def _start(text: str, tokens: int) -> str:
    """Return as much of a text as so many tokens need, as far as a word's end."""
    end = _SPACE.search(text, _CHARACTERS * tokens)
    return text if end is None else text[: end.start()]


class TextTokenizer:
    """A Hugging Face tokenizer as the core uses it: content first, special tokens by wrapping.

    Attributes:
        hf: The Hugging Face tokenizer.
        before: Ids of the special tokens before a row's content; ``after`` of those behind it.
        special_count: How many they are.
        prompt: What stands before each text, read with it as one text; special in the tokens.
        longest: Content tokens that a run keeps of a text, for another model; None: the run's own.
    """

    longest: int | None = None

    def __init__(self, tokenizer: Any, prompt: str = "") -> None:
        if not getattr(tokenizer, "is_fast", False):
            what = "its tokenizer has no fast version"
            hint = "convert it to a tokenizer.json"
            raise CseError(
                what, where="model.name", value=getattr(tokenizer, "name_or_path", None), hint=hint
            )
        self.hf, self.prompt = tokenizer, prompt
        self._prompts: dict[str, list[int]] = {}
        self._others: dict[str, TextTokenizer] = {}
        self._find_special_tokens()

    def with_prompt(self, prompt: str | None) -> TextTokenizer:
        """Return this tokenizer with another prompt, one object for each; None keeps its own."""
        if prompt is None or prompt == self.prompt:
            return self
        if prompt not in self._others:
            self._others[prompt] = copy.copy(self)
            self._others[prompt].prompt = prompt
        return self._others[prompt]

    @property
    def unknown_id(self) -> int | None:
        """The id of the token for what the vocabulary lacks."""
        number: int | None = self.hf.unk_token_id
        return number

    def _find_special_tokens(self) -> None:
        tokenizer = self.hf
        plain = tokenizer("a", add_special_tokens=False)["input_ids"]
        wrapped = tokenizer("a", add_special_tokens=True)["input_ids"]
        count = len(plain)
        places = range(len(wrapped) - count + 1)
        start = next((at for at in places if wrapped[at : at + count] == plain), 0)
        self.before: list[int] = wrapped[:start]
        self.after: list[int] = wrapped[start + count :]
        self.special_count = len(self.before) + len(self.after)

    def end_rows(self, where: str) -> None:
        """Let every row end with the end token, where none of the tokenizer's own ends it.

        The tokenizer itself is changed, so that a saved one does the same. ``where`` is what asks
        for it, which the error of a tokenizer without such a token names.
        """
        if self.after:
            return
        end = self.hf.eos_token
        if end is None:
            hint = "set eos_token in tokenizer_config.json, or name another pooler"
            raise CseError("the tokenizer has no end token to put there", where=where, hint=hint)
        added = TemplateProcessing(
            single=f"$A {end}", pair=f"$A $B {end}", special_tokens=[(end, self.hf.eos_token_id)]
        )
        backend = self.hf.backend_tokenizer
        present = [] if backend.post_processor is None else [backend.post_processor]
        backend.post_processor = SequenceOfProcessors([*present, added])
        self._find_special_tokens()

    def content(self, texts: Sequence[str], longest: int | None = None) -> TokenBatch:
        """Tokenise texts into rows of content, on all cores; row i has owner i.

        Of a text at most ``longest`` tokens are kept.
        """
        ids, words, lengths = array("i"), array("i"), array("q")
        for row in self._encodings([self.prompt + text for text in texts], longest):
            ids.fromlist(row.ids)
            lengths.append(len(row))
            word_ids = row.word_ids
            if None in word_ids:
                word_ids = [-1 if word is None else word for word in word_ids]
            if self.prompt:
                ends = (end for _, end in row.offsets)
                word_ids = [
                    _PROMPT if end <= len(self.prompt) else word
                    for end, word in zip(ends, word_ids, strict=True)
                ]
            words.fromlist(word_ids)
        word = torch.from_numpy(np.asarray(words)).long()
        offsets = offsets_of(torch.from_numpy(np.asarray(lengths)))
        positions, prompt = positions_of(offsets), word == _PROMPT
        return TokenBatch(
            ids=torch.from_numpy(np.asarray(ids)).long(),
            positions=positions,
            source=positions.masked_fill(prompt, -1),
            word=word.clamp_min(-1),
            special=prompt,
            offsets=offsets,
            owner=torch.arange(len(texts)),
            slot=torch.zeros(len(texts), dtype=torch.long),
        )

    def state(self) -> str:
        """Write down the tokenizer's own file, the library's version and the sides of its cuts."""
        try:
            state = json.loads(self.hf.backend_tokenizer.to_str())
        except Exception as error:  # the library raises nothing more exact
            raise ValueError(str(error)) from None
        state.update(truncation=None, padding=None)  # every call sets them
        about = __version__, self.hf.truncation_side, bool(self.hf.split_special_tokens)
        return repr((*about, json.dumps(state, sort_keys=True)))

    def cuts(self, texts: Sequence[str], tokens: int) -> list[list[int]]:
        """List where pieces of ``tokens`` tokens begin in each text, and where it ends."""
        rows = self.hf(list(texts), add_special_tokens=False, verbose=False).encodings
        return [
            [0, *(begin for begin, _ in row.offsets[tokens::tokens]), len(text)]
            for text, row in zip(texts, rows, strict=True)
        ]

    def _encodings(self, texts: list[str], longest: int | None) -> list[Any]:
        """Encode texts with the tokenizer itself.

        Calling the Hugging Face tokenizer does the same and then copies every row into lists that
        nobody reads, in one thread.
        """
        backend = self.hf.backend_tokenizer
        backend.no_padding()
        if longest is None:
            backend.no_truncation()
        else:
            backend.enable_truncation(longest, direction=self.hf.truncation_side)
        backend.encode_special_tokens = self.hf.split_special_tokens
        starts = texts
        if longest is not None and self.hf.truncation_side == "right":
            starts = [_start(text, longest) for text in texts]
        rows = cast(list[Any], backend.encode_batch(starts, add_special_tokens=False))
        # The last word of a start may have other tokens than it has in the text.
        unsure = [
            place
            for place, (start, row) in enumerate(zip(starts, rows, strict=True))
            if len(start) < len(texts[place])
            and (len(row) != longest or row.offsets[-1][1] > start.rfind(" "))
        ]
        again = backend.encode_batch([texts[place] for place in unsure], add_special_tokens=False)
        for place, row in zip(unsure, again, strict=True):
            rows[place] = row
        return rows

    def wrap(
        self, content: TokenBatch, prompt: tuple[str, str] = ("", ""), longest: int | None = None
    ) -> TokenBatch:
        """Put every row between its special tokens and prompt; cut the content alone.

        It is cut on the tokenizer's ``truncation_side``: at its tail, or of some its head.

        ``prompt`` are the texts before and after; a wrapped row has at most ``longest`` tokens,
        which must be more than special tokens and prompt take.
        """
        before = self.before + self.prompt_ids(prompt[0])
        after = self.prompt_ids(prompt[1]) + self.after
        added = len(before) + len(after)
        first, lengths = content.offsets[:-1], content.lengths
        if longest is not None:
            if added >= longest:
                raise CseError(
                    f"special tokens and prompt take {added} tokens, nothing is left for the text",
                    where="model.max_length",
                    value=longest,
                    hint=f"use at least {added + 1}",
                )
            lengths = lengths.clamp_max(longest - added)
            if self.hf.truncation_side == "left":
                first = first + content.lengths - lengths
        kept = ragged_index(first, lengths)
        offsets = offsets_of(lengths + added)
        total = int(offsets[-1])
        place = torch.arange(len(kept)) + len(before)
        place += torch.repeat_interleave(torch.arange(content.rows) * added, lengths)

        def spread(values: Tensor, fill: int) -> Tensor:
            out = torch.full((total,), fill, dtype=values.dtype)
            out[place] = values[kept]
            return out

        ids = spread(content.ids, 0)
        for shift, token in enumerate(before):
            ids[offsets[:-1] + shift] = token
        for shift, token in enumerate(reversed(after)):
            ids[offsets[1:] - 1 - shift] = token
        return replace(
            content,
            ids=ids,
            positions=positions_of(offsets),
            source=spread(content.source, -1),
            word=spread(content.word, -1),
            special=spread(content.special, 1),
            offsets=offsets,
        )

    def prompt_ids(self, text: str) -> list[int]:
        """Return the ids of a prompt's text, tokenised once."""
        if text not in self._prompts:
            made = self.hf(text, add_special_tokens=False, verbose=False) if text else {}
            self._prompts[text] = list(made.get("input_ids", ()))
        return self._prompts[text]
