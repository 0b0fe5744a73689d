"""Every text cut into several texts of so many tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cse_core.data.corpus import Corpus
from cse_core.data.tables import text_table
from cse_core.errors import CseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cse_core.tokenization.tokenizer import TextTokenizer

_AT_ONCE = 10_000


def split_texts(
    corpus: Corpus, tokenizer: TextTokenizer, tokens: int, columns: Sequence[str] = ()
) -> Corpus:
    """Return a corpus of the pieces of its texts, which keep their document and title.

    A cut may stand inside a word; the rest of the word is then read as a word of its own.

    Args:
        corpus: The texts.
        tokenizer: What counts tokens; special tokens do not count.
        tokens: Tokens of a piece; the last of a text has those that are left.
        columns: Further columns that the run encodes.

    Raises:
        CseError: If the run encodes another column, since only texts are cut.
    """
    if columns:
        raise CseError(
            f"texts are cut, and the run encodes column {columns[0]} too, which would not fit them",
            where="data.split_tokens",
            value=tokens,
            hint="--set data.split_tokens=none, or a recipe with one column",
        )
    pieces: list[str] = []
    parents: list[int] = []
    whole = corpus.column("text")
    for start in range(0, len(whole), _AT_ONCE):
        texts = list(whole[start : start + _AT_ONCE])
        rows = tokenizer.hf(texts, add_special_tokens=False, verbose=False).encodings
        for place, (text, row) in enumerate(zip(texts, rows, strict=True), start):
            spans = row.offsets
            cuts = [spans[at][0] for at in range(tokens, len(spans), tokens)]
            parts = (
                text[one:other].strip()
                for one, other in zip([0, *cuts], [*cuts, len(text)], strict=True)
            )
            kept = [part for part in parts if part]
            pieces += kept
            parents += [place] * len(kept)
    columns_kept = {"text": pieces} | {
        name: corpus.column(name).take(parents)
        for name in ("document", "title")
        if name in corpus.names
    }
    said = f"{len(whole):,} texts cut into {len(pieces):,} of at most {tokens} tokens"
    return Corpus(
        text_table(columns_kept),
        None if corpus.documents is None else corpus.documents[parents],
        replace(corpus.report, messages=(*corpus.report.messages, said)),
    )
