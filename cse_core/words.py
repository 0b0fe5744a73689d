"""Words of a text, whatever its script."""

from __future__ import annotations

import re
from collections.abc import Iterable

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
"""Letters of scripts that are written without spaces between words, as a class of ``re``."""
LETTERS_PER_WORD = 1.5
"""Letters of a word in these scripts, about."""
MAX_WORD_LETTERS = 16
"""Letters from which on a word counts as several, as tokenizers cut it."""
_UNSPACED = re.compile(f"[{UNSPACED}]")
_SPACED = re.compile(f"[^\\s{UNSPACED}]{{1,{MAX_WORD_LETTERS}}}")


def lacks_word_spaces(texts: Iterable[str]) -> bool:
    """Tell whether more than half of the letters are of scripts without spaces (Han, kana, …)."""
    letters = hits = 0
    for text in texts:
        letters += sum(map(str.isalpha, text))
        hits += len(_UNSPACED.findall(text))
    return 2 * hits > letters


def count_words(text: str) -> float:
    """Estimate the words of a text, each stretch of it by its script.

    Between spaces is a word, or several where it is longer than ``MAX_WORD_LETTERS``; in scripts
    without spaces 1.5 letters are one.
    """
    return len(_SPACED.findall(text)) + len(_UNSPACED.findall(text)) / LETTERS_PER_WORD
