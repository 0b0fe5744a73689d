"""Every text cut into several texts of so many tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from cse_core.data.corpus import Corpus
from cse_core.data.tables import text_table
from cse_core.errors import CseError
from cse_core.tokenization.tokenizer import AT_ONCE, TextTokenizer


def split_texts(
    corpus: Corpus, tokenizer: TextTokenizer, tokens: int, columns: Sequence[str] = ()
) -> Corpus:
    """Return a corpus of the pieces of its texts, which keep their document and title.

    A piece has so many tokens, special ones not counted; the last of a text has those left. A cut
    may stand inside a word; the rest of the word is then read as a word of its own.

    Raises:
        CseError: If the run encodes further ``columns``, since only texts are cut.
    """
    if columns:
        raise CseError(
            f"texts are split, but column {columns[0]}, which this run also encodes, is not",
            where="data.split_tokens",
            value=tokens,
            hint="--set data.split_tokens=none, or a recipe with one column",
        )
    pieces: list[str] = []
    parents: list[int] = []
    whole = corpus.column("text")
    for start in range(0, len(whole), AT_ONCE):
        texts = list(whole[start : start + AT_ONCE])
        rows = tokenizer.hf(texts, add_special_tokens=False, verbose=False).encodings
        for place, (text, row) in enumerate(zip(texts, rows, strict=True), start):
            cuts = [0, *(begin for begin, _ in row.offsets[tokens::tokens]), len(text)]
            kept = [part for one, two in pairwise(cuts) if (part := text[one:two].strip())]
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
