"""The tokenizer: a file of the library tokenizers, without special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import __version__

from cse_core.errors import CseError
from cse_core.protocols import Tokenizer
from cse_core.types import TokenBatch, offsets_of, positions_of, ragged_index


class StaticTokenizer(Tokenizer):
    """Words and pieces of a text; no token stands before or behind them.

    Args:
        hf: The tokenizer.
        prompt: Text before each text; its tokens are special.
        unknown: Id of a token that is left out, as model2vec leaves unknown words out.
    """

    longest: int | None = None

    def __init__(self, hf: FastTokenizer, prompt: str = "", unknown: int | None = None) -> None:
        self.hf, self.prompt, self.unknown = hf, prompt, unknown
        self.before: list[int] = []
        self.after: list[int] = []
        self.special_count = 0
        hf.no_padding()

    @property
    def unknown_id(self) -> int | None:
        """The id of the token for what the vocabulary lacks, where it is kept."""
        token = getattr(self.hf.model, "unk_token", None)
        return self.hf.token_to_id(token) if token and self.unknown is None else None

    @staticmethod
    def read(file: Path) -> FastTokenizer:
        """Read a ``tokenizer.json``.

        Raises:
            CseError: If it is missing or damaged.
        """
        try:
            return FastTokenizer.from_file(str(file))
        except Exception as error:  # the library raises nothing more exact
            what = f"{file.name} cannot be read: {error}"
            hint = "copy the whole model folder again"
            raise CseError(what, where="model.name", value=str(file.parent), hint=hint) from None

    def with_prompt(self, prompt: str | None) -> StaticTokenizer:
        """Give the tokenizer another prompt; None keeps its own."""
        if prompt in (None, self.prompt):
            return self
        return StaticTokenizer(self.hf, prompt or "", self.unknown)

    def end_rows(self, where: str) -> None:
        """Refuse: it has no end token.

        Raises:
            CseError: Always.
        """
        raise CseError("a static model has no end token to put there", where=where,
                       hint="name the pooler mean")  # fmt: skip

    def content(self, texts: Sequence[str], longest: int | None = None) -> TokenBatch:
        """Tokenise texts into rows; row i has owner i, at most ``longest`` tokens are kept."""
        if longest is None:
            self.hf.no_truncation()
        else:
            self.hf.enable_truncation(longest)
        encode = self.hf.encode_batch if self.prompt else self.hf.encode_batch_fast
        rows = encode([self.prompt + text for text in texts], add_special_tokens=False)
        ids = torch.tensor([token for row in rows for token in row.ids], dtype=torch.long)
        words = [-1 if word is None else word for row in rows for word in row.word_ids]
        offsets = offsets_of(torch.tensor([len(row) for row in rows], dtype=torch.long))
        word, place = torch.tensor(words, dtype=torch.long), positions_of(offsets)
        prompt = torch.zeros(len(ids), dtype=torch.bool)
        if self.prompt:
            ends = [end for row in rows for _, end in row.offsets]
            prompt = torch.tensor(ends, dtype=torch.long) <= len(self.prompt)
        owner = torch.arange(len(rows))
        batch = TokenBatch(
            ids=ids,
            positions=place,
            source=place.masked_fill(prompt, -1),
            word=word.masked_fill(prompt, -1),
            special=prompt,
            offsets=offsets,
            owner=owner,
            slot=torch.zeros_like(owner),
        )
        return batch if self.unknown is None else batch.keep_tokens(ids != self.unknown)

    def wrap(
        self, content: TokenBatch, prompt: tuple[str, str] = ("", ""), longest: int | None = None
    ) -> TokenBatch:
        """Cut rows to ``longest`` tokens, and put the texts of a prompt around them."""
        ids = [torch.tensor(self.prompt_ids(text), dtype=torch.long) for text in prompt]
        around = sum(map(len, ids))
        most = content.lengths if longest is None else content.lengths.clamp_max(longest - around)
        if longest is not None and around >= longest:
            what = f"the prompt takes {around} tokens, nothing is left for the text"
            hint = f"use at least {around + 1}"
            raise CseError(what, where="model.max_length", value=longest, hint=hint)
        cut = content.take_tokens(ragged_index(content.offsets[:-1], most), most)
        return cut if not around else _around(cut, *ids)

    def prompt_ids(self, text: str) -> list[int]:
        """Tokenise the text of a prompt."""
        return list(self.hf.encode(text, add_special_tokens=False).ids) if text else []

    def state(self) -> str:
        """Write down the file, the version of its library and what is left out."""
        return repr((__version__, self.unknown, self.hf.to_str()))

    def cuts(self, texts: Sequence[str], tokens: int) -> list[list[int]]:
        """List where pieces of ``tokens`` tokens begin in each text, and where it ends."""
        self.hf.no_truncation()
        rows = self.hf.encode_batch(list(texts), add_special_tokens=False)
        return [
            [0, *(begin for begin, _ in row.offsets[tokens::tokens]), len(text)]
            for text, row in zip(texts, rows, strict=True)
        ]


def _around(rows: TokenBatch, before: torch.Tensor, after: torch.Tensor) -> TokenBatch:
    """Put the tokens of a prompt around each row."""
    count, lengths = rows.rows, rows.lengths
    source = torch.split(torch.arange(len(rows.ids)), lengths.tolist())
    first, last = len(rows.ids), len(rows.ids) + len(before)
    index = torch.cat(
        [torch.cat([torch.arange(first, last), piece, torch.arange(last, last + len(after))])
         for piece in source] or [torch.empty(0, dtype=torch.long)]
    )  # fmt: skip
    extra = len(before) + len(after)
    nothing = torch.full((extra,), -1)
    whole = replace(
        rows,
        ids=torch.cat([rows.ids, before, after]),
        source=torch.cat([rows.source, nothing]),
        word=torch.cat([rows.word, nothing]),
        special=torch.cat([rows.special, nothing < 0]),
        labels=None,
    )
    return whole.take_tokens(index, lengths + extra if count else lengths)
