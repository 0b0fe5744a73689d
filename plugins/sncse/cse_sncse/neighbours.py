"""What stands beside each word of an English sentence, by word lists."""

from __future__ import annotations

from collections.abc import Sequence

from cse_sncse import lexicon as lex
from cse_sncse import verbs
from cse_sncse.words import Word

ADVERBS_IN_A_ROW = 5
"""Adverbs in a row that are passed over, and words that may stand before an imperative."""
NAMES_IN_A_ROW = 5
"""Words of a name that are passed over."""
QUOTES = frozenset('"“«')
"""Marks that open a quotation; one stands for the whole, which may be a subject."""


ENDS = frozenset(".!?…:;")
"""Marks that end a sentence."""
HEADLINES_LACK = lex.SUBJECTS | {"a", "an", "the"}
"""Words that headlines leave out."""


class Neighbours:
    """A sentence's words, and what stands beside each of them.

    Args:
        words: The words and marks.

    Attributes:
        first: Place of the first word.
        headline: Whether it is written as headlines are.
        main: Place where the main clause begins, behind a clause or phrase at the front.
        closed: Place of the last finite verb of a relative clause that was passed over.
    """

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = words
        self.shouted = all(word.text.isupper() for word in words if word.is_word)
        self.asks = any(word.text == "?" for word in words)
        self.first = next((i for i, word in enumerate(words) if word.is_word), 0)
        self.first_of_all = next((i for i, w in enumerate(words) if w.text[0].isalnum()), 0)
        self.comma = self.next_comma(-1)
        self.headline = self._is_headline()
        self.main = self._after_opener()
        self.closed = len(words)

    def _after_opener(self) -> int:
        """Return where the main clause begins, behind a clause or phrase at the front."""
        if not self.words or self.low(self.first) not in lex.OPENERS:
            return 0
        if self.low(self.first) in lex.SUBORDINATORS:
            then = next((i for i, word in enumerate(self.words) if word.low == "then"), None)
            if then is not None and (self.comma is None or then <= self.comma + 1):
                return then + 1
        comma = self.comma
        while comma is not None and self.low(comma + 1) in lex.OPENERS:
            comma = self.next_comma(comma)
        if comma is None or len(self.words) - comma <= 2:
            return 0
        return comma + 1

    def _is_headline(self) -> bool:
        """Return whether a text has neither an end mark nor articles and pronouns."""
        words = self.words
        if len(words) < 3 or any(word.text in ".!?…" for word in words[-2:]):
            return False
        lower = words[self.first_of_all].text[0].islower()
        plain = any(
            word.low in HEADLINES_LACK and not (len(word.text) > 1 and word.text.isupper())
            for word in words
        )
        return not lower and not plain

    def plural(self, place: int) -> bool:
        """Return whether a noun looks like a plural."""
        low = self.low(place)
        return low in lex.PLURALS or (
            low.endswith("s") and low != "'s" and not low.endswith(("ss", "us", "is"))
        )

    def headless(self, place: int) -> bool:
        """Return whether no noun phrase goes on behind a word."""
        after = place + 1
        return after >= len(self.words) or not self.noun(after)

    def has_direct_object(self, place: int) -> bool:
        """Return whether a determiner, a pronoun, a name or a number stands behind a verb."""
        after = self.words[place + 1] if place + 1 < len(self.words) else None
        return after is not None and (
            after.is_capital
            or after.low in lex.DETERMINERS
            or after.low in lex.OBJECTS
            or after.text[0].isdigit()
            or after.text in QUOTES
        )

    def has_object_noun(self, place: int) -> bool:
        """Return whether an object stands behind a verb, a bare noun too."""
        after = place + 1
        return self.has_direct_object(place) or (
            after < len(self.words)
            and self.before_noun(place)
            and not (self.low(after) in lex.OPENERS or self.low(after) in lex.PREDICATES)
            and not verbs.is_participle(self.low(after))
        )

    def low(self, place: int) -> str:
        """Return a word in lower case; nothing outside the sentence."""
        return self.words[place].low if 0 <= place < len(self.words) else ""

    def before(self, place: int) -> int:
        """Return the place before, adverbs passed over; -1 at the front."""
        first = max(place - ADVERBS_IN_A_ROW, 0)
        place -= 1
        while place >= first and (
            lex.is_adverb(self.low(place))
            or (self.low(place) in lex.DEGREES and lex.is_adverb(self.low(place + 1)))
            or (self.low(place) == "longer" and self.low(place - 1) == "no")
        ):
            place -= 2 if self.low(place) == "longer" else 1
        return place

    def after(self, place: int) -> int:
        """Return the place behind, adverbs passed over."""
        last = min(place + ADVERBS_IN_A_ROW, len(self.words))
        place += 1
        while place < last and lex.is_adverb(self.low(place)):
            place += 1
        return place

    def next_comma(self, place: int) -> int | None:
        """Return the place of the first comma behind a place, None where there is none."""
        for later in range(place + 1, len(self.words)):
            if self.words[later].text == ",":
                return later
        return None

    def names(self, place: int) -> bool:
        """Return whether a word may begin a name."""
        inside = 0 <= place < len(self.words)
        return inside and self.words[place].is_capital and self.low(place) != "i"

    def acronym(self, place: int) -> bool:
        """Return whether a word is written in capitals where others are not: "US"."""
        inside = 0 <= place < len(self.words) and not self.shouted
        return inside and len(self.words[place].text) > 1 and self.words[place].text.isupper()

    def turned(self, place: int) -> bool:
        """Return whether an auxiliary stands before its subject, as questions have it."""
        return self.asks and inverted(self.words, place)

    def has_object(self, place: int) -> bool:
        """Return whether what stands behind a verb may be its object, or be about it."""
        after = self.words[place + 1] if place + 1 < len(self.words) else None
        return after is not None and (
            after.is_capital
            or after.low in lex.DETERMINERS
            or after.low in lex.OBJECTS
            or after.low in lex.PREPOSITIONS
        )

    def inside_noun_phrase(self, before: int, place: int) -> bool:
        """Return whether a past form may stand before a noun: "an ancient drove road"."""
        return self.low(before - 1) in lex.DETERMINERS and self.before_noun(place)

    def before_noun(self, place: int) -> bool:
        """Return whether a noun may stand right behind a word."""
        after = place + 1
        return (
            after < len(self.words)
            and self.noun(after)
            and not lex.is_adverb(self.low(after))
            and self.low(after) not in lex.OBJECTS
        )

    def noun(self, place: int) -> bool:
        """Return whether a word may be a noun: whether it is of no closed class."""
        word = self.words[place]
        if word.text in QUOTES or word.text[0].isdigit() or self.acronym(place):
            return True
        return word.is_word and not (
            word.low in lex.DETERMINERS
            or word.low in lex.PREPOSITIONS
            or word.low in lex.CONJUNCTIONS
            or word.low in lex.AUXILIARIES
            or word.low in lex.NOT_FINITE
            or word.low in lex.OPENERS
            or word.low in lex.WH
            or (word.low in lex.ADJECTIVES and not word.is_capital)
            or word.low in {"not", "to"}
        )

    def joined(self, place: int) -> bool:
        """Return whether a noun ends a subject of two: "Mary and John", "a boy and a girl"."""
        first, named = place, self.names(place) and not self.shouted
        while named and self.names(first - 1) and place - first < NAMES_IN_A_ROW:
            first -= 1
        if self.low(first - 1) in lex.DETERMINERS:
            first, named = first - 1, True
        # Two bare nouns are often one before a third: "health and safety work".
        return named and self.low(first - 1) == "and" and first > 1 and self.noun(first - 2)

    def turns_left(self, place: int) -> bool:
        """Return whether ``left`` behind a word is where to, and no verb: "turn left"."""
        low, object_ = self.low(place), self.low(place + 2)
        if self.low(place + 1) != "left" or object_ in lex.DETERMINERS or object_ in lex.OBJECTS:
            return False
        return low in lex.TURNING or verbs.base_of_third(low) in lex.TURNING

    def starts_verb(self, place: int) -> bool:
        """Return whether a word may be a finite verb or a participle."""
        low = self.low(place)
        return (
            low in lex.AUXILIARIES
            or low in verbs.PAST_ONLY
            or (verbs.is_participle(low) and low not in lex.DETERMINERS)
        )


def inverted(words: Sequence[Word], place: int) -> bool:
    """Return whether nothing, or only a wh-phrase, stands before an auxiliary."""
    before = [word.low for word in words[:place] if word.is_word]
    if before and before[0] in {"and", "but", "so"}:
        before = before[1:]
    return not before or (before[0] in lex.WH and len(before) <= 4)
