"""Words of an English text with their places, so that all else of it stays as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_WORD = re.compile(
    r"\d+(?:[.,:/]\d+)*(?:st|nd|rd|th|s)?\b"  # numbers, ordinals, ratios
    r"|(?:[^\W\d_]\.){2,}"  # U.S., a.m.
    r"|[^\W\d_]+(?:[-'’][^\W\d_]+)*"
    r"|\S"
)
_MARKS = re.compile(r"[\"“«(\[]")
_CLITIC = re.compile(r"(.+)(['’](?:s|re|m|ve|ll|d))", re.IGNORECASE | re.DOTALL)
_PAIRS = {'"': '"', "“": "”", "«": "»", "(": ")", "[": "]"}
_ENDS = frozenset(".!?…")
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st mt jr sr vs etc no vol fig gen col lt sgt rev hon capt cf al approx dept "
    "jan feb mar apr jun jul aug sep sept oct nov dec co corp inc ltd ca pp".split()
)


@dataclass(slots=True)
class Word:
    """A word, a clitic (``'s``, ``'ll``; ``n't`` stays with its verb) or a punctuation mark.

    Attributes:
        text: As it stands.
        low: In lower case, apostrophes straight.
        start: Place of its first character in the text.
        end: Place behind its last character.
        opaque: Whether it stands in double quotes, parentheses or brackets.
    """

    text: str
    low: str
    start: int
    end: int
    opaque: bool = False

    @property
    def is_word(self) -> bool:
        """Return whether it begins with a letter."""
        return self.text[0].isalpha()

    @property
    def is_capital(self) -> bool:
        """Return whether it begins with a capital letter."""
        return self.text[0].isupper()


def split_words(text: str) -> list[Word]:
    """Return the words and marks of a text, in order."""
    spans: list[tuple[int, int]] = []
    clitics = "'" in text or "’" in text
    for match in _WORD.finditer(text):
        start, end = match.span()
        clitic = _CLITIC.fullmatch(match.group()) if clitics else None
        if clitic is None:
            spans.append((start, end))
        else:
            middle = start + len(clitic.group(1))
            spans += [(start, middle), (middle, end)]
    low = text.lower().replace("’", "'")
    if len(low) != len(text):  # a letter whose small form is two
        low = "".join(each.lower() if len(each.lower()) == 1 else each for each in text)
    words = [Word(text[start:end], low[start:end], start, end) for start, end in spans]
    if _MARKS.search(text):
        for word, hidden in zip(words, _opaque(text, spans), strict=True):
            word.opaque = hidden
    return words


def _opaque(text: str, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Return which words stand between a pair of marks; a mark without its partner opens none."""
    hidden = [False] * len(spans)
    open_marks: list[tuple[str, int]] = []
    for place, (start, end) in enumerate(spans):
        mark = text[start:end]
        if open_marks and mark == open_marks[-1][0]:
            _, first = open_marks.pop()
            if not open_marks:
                hidden[first : place + 1] = [True] * (place + 1 - first)
        elif mark in _PAIRS and len(open_marks) < 8:
            open_marks.append((_PAIRS[mark], place))
    return hidden


def sentences(words: Sequence[Word]) -> list[list[Word]]:
    """Return the words of each sentence; a full stop behind an abbreviation ends none."""
    found: list[list[Word]] = [[]]
    for place, word in enumerate(words):
        found[-1].append(word)
        if word.text not in _ENDS or word.opaque or place + 1 == len(words):
            continue
        before, after = words[max(place - 1, 0)], words[place + 1]
        short = before.low in _ABBREVIATIONS or (len(before.text) == 1 and before.is_capital)
        if (
            after.start > word.end
            and not after.text[0].islower()
            and not (word.text == "." and short)
        ):
            found.append([])
    return found
