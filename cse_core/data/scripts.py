"""Scripts that are written without spaces between words, in which words cannot be counted."""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"  # Han
)


def lacks_word_spaces(texts: Iterable[str]) -> bool:
    """Tell whether more than half of the letters belong to such a script (Han, kana, Thai, …)."""
    letters = found = 0
    for text in texts:
        letters += sum(map(str.isalpha, text))
        found += len(_UNSPACED.findall(text))
    return 2 * found > letters
