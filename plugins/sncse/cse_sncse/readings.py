"""What each word of an English clause can be, by word lists and its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cse_sncse import lexicon as lex
from cse_sncse import verbs
from cse_sncse.words import Word

Form = Literal["auxiliary", "past", "third", "base", "imperative"]


@dataclass(frozen=True)
class FiniteVerb:
    """A finite verb.

    Attributes:
        place: Its index among the sentence's words.
        form: What it is.
        base: Base form, where it is no auxiliary.
        sure: Whether its neighbours leave no other reading; one that is not sure gives way to a
            sure one behind it.
    """

    place: int
    form: Form
    base: str = ""
    sure: bool = True


ADVERBS_IN_A_ROW = 5
"""Adverbs in a row that are passed over, and words that may stand before an imperative."""
QUOTES = frozenset('"“«')
"""Marks that open a quotation; one stands for the whole, which may be a subject."""


class Readings:
    """A sentence's words, and what each of them can be.

    Args:
        words: The words and marks.

    Attributes:
        first: Place of the first word.
        main: Place where the main clause begins, behind a clause or phrase at the front.
        closed: Place of the last finite verb of a relative clause that was passed over.
    """

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = words
        self.shouted = all(word.text.isupper() for word in words if word.is_word)
        self.asks = any(word.text == "?" for word in words)
        self.first = next((i for i, word in enumerate(words) if word.is_word), 0)
        self.comma = self.next_comma(-1)
        self.main = self._after_opener()
        self.closed = len(words)

    def _after_opener(self) -> int:
        """Return where the main clause begins, behind a clause or phrase at the front."""
        if not self.words or self.low(self.first) not in lex.OPENERS:
            return 0
        if self.comma is None or len(self.words) - self.comma <= 2:
            return 0
        return self.comma + 1

    # -- neighbours -----------------------------------------------------------------------------

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
        ):
            place -= 1
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

    # -- what a word can be -----------------------------------------------------------------------

    def finite(self, place: int, start: int) -> FiniteVerb | None:
        """Return a word as a finite verb; None where it can be none.

        Args:
            place: Its place.
            start: Where the clause begins.
        """
        word = self.words[place]
        if not (word.is_word or word.low.startswith("'")):
            return None
        if word.is_capital and place > max(start, self.first) and not self.shouted:
            return None  # a name
        auxiliary = self._auxiliary(place)
        if auxiliary is not None:
            return auxiliary
        if word.low in lex.AUXILIARIES or word.low in lex.NOT_FINITE or "-" in word.text:
            return self._imperative(place) if word.low == "be" else None
        return self._imperative(place) or self._past(place, start) or self._present(place)

    def _auxiliary(self, place: int) -> FiniteVerb | None:
        low, before, after = self.low(place), self.low(place - 1), self.low(self.after(place))
        verb = FiniteVerb(place, "auxiliary")
        if before == "to":
            return None
        if low in lex.CLITICS or (low == "'s" and before in lex.BEFORE_S):
            return verb
        if low in lex.BE:
            return None if low == "am" and before[:1].isdigit() else verb
        if low in lex.MODALS:
            noun = before in lex.ARTICLES or before in lex.ADJECTIVES or before in {"in", "of"}
            dated = low == "may" and after[:1].isdigit()
            name = low in {"will", "may"} and place == self.first and self._names(place + 1)
            return None if noun or dated or name else verb
        if low in lex.HAVE:
            if after in {"been", "better"} or self._turned(place):
                return verb
            if verbs.is_participle(after) and after not in lex.DETERMINERS:
                return verb
            form: Form = "past" if low == "had" else "third" if low == "has" else "base"
            return FiniteVerb(place, form, "have")
        if low in lex.DO:
            if after in verbs.VERBS or (self._turned(place) and not self._asks_who_did(place)):
                return verb
            if low == "do" and place == self.first:
                return FiniteVerb(place, "imperative", "do")
            form = "past" if low == "did" else "third" if low == "does" else "base"
            return FiniteVerb(place, form, "do")
        return None

    def _names(self, place: int) -> bool:
        return place < len(self.words) and self.words[place].is_capital and self.low(place) != "i"

    def _turned(self, place: int) -> bool:
        """Return whether an auxiliary stands before its subject, as questions have it."""
        return self.asks and inverted(self.words, place)

    def _asks_who_did(self, place: int) -> bool:
        """Return whether a form of do is a question's only verb: "who did the work?"."""
        rest = self.words[place + 1 : place + 2 + 2 * ADVERBS_IN_A_ROW]
        return self.low(place - 1) == "who" and not any(
            word.low in verbs.VERBS for word in rest[1:]
        )

    def _imperative(self, place: int) -> FiniteVerb | None:
        low = self.low(place)
        if low not in verbs.VERBS or self.asks or self.low(place + 1) == "'s":
            return None
        lead = self.words[self.first : place] if place - self.first <= ADVERBS_IN_A_ROW else ()
        polite = bool(lead) and all(
            lex.is_adverb(word.low) or word.low == "please" for word in lead if word.is_word
        )
        clause = place == self.main and place > 0
        if place != self.first and not polite and not clause:
            return None
        after = self.low(place + 1)
        sure = (
            after in lex.OBJECTS
            or after in lex.DETERMINERS
            or (place == self.first and after in {"", ".", "!"} and len(self.words) <= 2)
            or (polite and place != self.first)
            or low == "be"
        )
        return FiniteVerb(place, "imperative", low, sure)

    def _past(self, place: int, start: int) -> FiniteVerb | None:
        low = self.low(place)
        base = verbs.base_of_past(low)
        if base is None:
            return None
        before = self.before(place)
        subject = self.low(before)
        if subject in lex.SUBJECTS or subject in lex.SINGULAR_SUBJECTS - {"this", "that"}:
            return FiniteVerb(place, "past", base)
        if place == max(start, self.first) or before < start:
            return None
        alone = subject in lex.NUMBERS or (subject == "this" and before == self.first)
        if alone and self._has_object(place):
            return FiniteVerb(place, "past", base)
        behind = place > self.closed and not self._before_noun(place)
        if subject in lex.DETERMINERS or subject in lex.PREPOSITIONS or subject in lex.NOT_FINITE:
            return None
        if subject in lex.ADJECTIVES and not behind:
            return None
        noun = subject in lex.MODALS and self._auxiliary(before) is None
        if subject in lex.AUXILIARIES and not noun and not (behind and before < place - 1):
            return None
        if low in verbs.UNCHANGED or self._inside_noun_phrase(before, place):
            return FiniteVerb(place, "past", base, sure=False)
        if low in verbs.PAST_ONLY:
            return FiniteVerb(place, "past", base)
        apart = self.words[before].text in {",", ";", ":", "–", "—", "-"}
        listed = subject in lex.CONJUNCTIONS
        if apart or listed or self._participle(place):
            return FiniteVerb(place, "past", base, sure=False)
        return FiniteVerb(place, "past", base)

    def _has_object(self, place: int) -> bool:
        after = self.words[place + 1] if place + 1 < len(self.words) else None
        return after is not None and (
            after.is_capital
            or after.low in lex.DETERMINERS
            or after.low in lex.OBJECTS
            or after.low in lex.PREPOSITIONS
        )

    def _inside_noun_phrase(self, before: int, place: int) -> bool:
        """Return whether a past form may stand before a noun: "an ancient drove road"."""
        return self.low(before - 1) in lex.DETERMINERS and self._before_noun(place)

    def _before_noun(self, place: int) -> bool:
        after = place + 1
        return (
            after < len(self.words)
            and self._noun(after)
            and not lex.is_adverb(self.low(after))
            and self.low(after) not in lex.OBJECTS
        )

    def _participle(self, place: int) -> bool:
        """Return whether a past form may be a participle: "the house built in 1990 fell"."""
        after = self.low(place + 1)
        return after in lex.BEHIND_PARTICIPLE and not lex.is_adverb(self.low(place - 1))

    def _present(self, place: int) -> FiniteVerb | None:
        low, before = self.low(place), self.before(place)
        subject = self.low(before)
        pronoun = subject not in {"this", "that", "one", "each"} or (
            subject in {"this", "that"} and self._has_object(place)
        )
        if subject in lex.SINGULAR_SUBJECTS and pronoun:
            base = verbs.base_of_third(low, known=subject not in {"he", "she", "it"})
            if base is not None:
                return FiniteVerb(place, "third", base)
        if subject in lex.PLURAL_SUBJECTS - {"these", "those"} and low in verbs.VERBS:
            return FiniteVerb(place, "base", low)
        inserted = subject == "," and self.comma is not None and self.comma < before
        if before < 0 or not (inserted or self._noun(before)):
            return None
        after = self.low(place + 1)
        if self._starts_verb(self.after(place)):
            return None
        sure = after in lex.OBJECTS or after in lex.ARTICLES
        base = verbs.base_of_third(low, known=after not in {"him", "them", "me", "us"})
        plural = subject in lex.PLURALS or (
            subject.endswith("s") and not subject.endswith(("ss", "us", "is"))
        )
        apart = before < place - 1 or self.words[before].is_capital
        if base is not None and (not plural or apart or sure):
            return FiniteVerb(place, "third", base, sure)
        if low in verbs.VERBS and low not in verbs.IRREGULAR_PAST and (plural or sure):
            return FiniteVerb(place, "base", low, sure)
        return None

    def _noun(self, place: int) -> bool:
        word = self.words[place]
        if word.text in QUOTES or word.text[0].isdigit():
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

    def _starts_verb(self, place: int) -> bool:
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
