"""What each word of an English clause can be, by word lists and its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from cse_sncse import lexicon as lex
from cse_sncse import verbs
from cse_sncse.neighbours import ADVERBS_IN_A_ROW, Neighbours

LONGEST_DATE = 5
"""Words of a date at the front: "On 3 May 1990"."""

Form = Literal["auxiliary", "past", "third", "base", "imperative"]


@dataclass(frozen=True)
class FiniteVerb:
    """A finite verb.

    Attributes:
        place: Its index among the sentence's words.
        form: What it is.
        base: Base form, unless it is an auxiliary.
        sure: Whether its neighbours leave no other reading; one that is not sure gives way to a
            sure one behind it.
        weak: Whether it is rather a noun, and a verb only where the sentence has no other.
    """

    place: int
    form: Form
    base: str = ""
    sure: bool = True
    weak: bool = False


@lru_cache(maxsize=2**16)
def may_be_finite(low: str) -> bool:
    """Return whether a word can be a finite verb anywhere."""
    if not (low[0].isalpha() or low[0] == "'"):
        return False
    return (
        low in lex.HELPERS
        or low in lex.NOT_FINITE
        or low in verbs.VERBS
        or low.endswith(("s", "n't"))
        or verbs.base_of_past(low) is not None
    )


class Readings(Neighbours):
    """A sentence's words, and what each of them can be."""

    def finite(self, place: int, start: int) -> FiniteVerb | None:
        """Return a word as a finite verb; None where it can be none.

        Args:
            place: Its place.
            start: Where the clause begins.
        """
        word = self.words[place]
        if not may_be_finite(word.low):
            return None
        if word.is_capital and place > max(start, self.first) and not self.shouted:
            return None  # a name
        auxiliary = self._auxiliary(place)
        if auxiliary is not None:
            return auxiliary
        if word.low in lex.AUXILIARIES or word.low in lex.NOT_FINITE:
            return self._imperative(place) if word.low == "be" else None
        return self._imperative(place) or self._past(place, start) or self._present(place)

    def _auxiliary(self, place: int) -> FiniteVerb | None:
        low, before = self.low(place), self.low(place - 1)
        if low not in lex.HELPERS and not low.endswith("n't"):
            return None
        after = self.low(self.after(place))
        verb = FiniteVerb(place, "auxiliary")
        if before == "to" or low == "n't":
            return None
        if low == "lets":
            return verb if place == self.first else None
        if low in lex.CLITICS or (low == "'s" and before in lex.BEFORE_S):
            own = before == "it" and self.low(place - 2) in lex.PREPOSITIONS  # "in it's mouth"
            return None if own else verb
        if low in lex.DENIED or low.endswith("n't"):
            return verb
        if low in lex.BE:
            return None if low == "am" and before[:1].isdigit() else verb
        if low in lex.MODALS:
            noun = self.low(place + 1) in {"", "."} and before not in lex.SUBJECTS
            noun = (
                noun or before in lex.ARTICLES or before in lex.ADJECTIVES or before in {"in", "of"}
            )
            dated = low == "may" and after[:1].isdigit()
            noun = noun and not (self.asks and low == "will")
            name = low in {"will", "may"} and place == self.first and self.names(place + 1)
            return None if noun or dated or name else verb
        if low in lex.HAVE:
            if after in {"been", "better"} or self.turned(place):
                return verb
            if verbs.is_participle(after) and after not in lex.DETERMINERS:
                return verb
            if after in lex.PREPOSITIONS and self._perfect(place):
                return verb
            form: Form = "past" if low == "had" else "third" if low == "has" else "base"
            return FiniteVerb(place, form, "have")
        if low in lex.DO:
            if after in verbs.VERBS or (self.turned(place) and not self._asks_who_did(place)):
                return verb
            if after in {"", ".", ","} and before in lex.SUBJECTS:
                return verb
            if low == "do" and place == self.first:
                return FiniteVerb(place, "imperative", "do")
            form = "past" if low == "did" else "third" if low == "does" else "base"
            return FiniteVerb(place, form, "do")
        return None

    def _perfect(self, place: int) -> bool:
        """Return whether a participle follows a phrase: "had in 1990 begun"."""
        return any(
            verbs.is_participle(word.low) and word.low not in lex.DETERMINERS
            for word in self.words[place + 3 : place + 5]
        )

    def _asks_who_did(self, place: int) -> bool:
        """Return whether a form of do is a question's only verb: "who did the work?"."""
        rest = self.words[place + 1 : place + 2 + 2 * ADVERBS_IN_A_ROW]
        return self.low(place - 1) == "who" and not any(
            word.low in verbs.VERBS for word in rest[1:]
        )

    def _imperative(self, place: int) -> FiniteVerb | None:
        low = self.low(place)
        if (
            low not in verbs.VERBS
            or low in lex.POLITE
            or self.asks
            or self.low(place + 1) in {"'s", ","}
        ):
            return None
        lead = self.words[self.first : place] if place - self.first <= ADVERBS_IN_A_ROW else ()
        polite = bool(lead) and all(
            lex.is_adverb(word.low) or word.low in lex.POLITE for word in lead if word.is_word
        )
        clause = place == self.main and place > 0
        if place != self.first and not polite and not clause:
            return None
        after = self.low(place + 1)
        short = place == self.first and after in {"", ".", "!"} and len(self.words) <= 2
        sure = (
            after in lex.OBJECTS
            or (after in lex.DETERMINERS and not after[:-2].isdigit())
            or short
            or any(word.low == "please" for word in lead)
            or (polite and place != self.first and low not in verbs.NOUN_LIKE)
            or low == "be"
            or self.turns_left(place)
        )
        if sure:
            return FiniteVerb(place, "imperative", low)
        named = self.names(place + 1) and not self.shouted
        if low in verbs.NOUN_LIKE or self.headline or named or after == "of":
            return None
        return FiniteVerb(place, "imperative", low, sure=not self._verb_like(place + 1))

    def _verb_like(self, place: int) -> bool:
        low = self.low(place)
        return self.starts_verb(place) or verbs.base_of_third(low) is not None

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
        if alone and self.has_object(place):
            return FiniteVerb(place, "past", base)
        behind = place > self.closed and not self.before_noun(place)
        if subject in lex.DETERMINERS or subject in lex.PREPOSITIONS or subject in lex.NOT_FINITE:
            return None
        if subject in lex.ADJECTIVES and not behind:
            return None
        noun = subject in lex.MODALS and self._auxiliary(before) is None
        if subject in lex.AUXILIARIES and not noun and not (behind and before < place - 1):
            return None
        if self.low(before).endswith("n't") or self.low(before) in lex.DENIED:
            return None
        apart = self.words[before].text in {",", ";", ":", "–", "—", "-"}
        listed = subject in lex.CONJUNCTIONS
        dated = self.words[before].text[0].isdigit() and place - start <= LONGEST_DATE
        if dated and self.low(max(start, self.first)) in lex.PREPOSITIONS:
            return None  # a date
        if self.inside_noun_phrase(before, place):
            return FiniteVerb(place, "past", base, sure=False)
        if low in verbs.UNCHANGED:
            named = self.names(before) and not self.headline
            singular = not (apart or listed or (self.plural(before) and not named))
            return FiniteVerb(place, "past", base, sure=singular and self.has_direct_object(place))
        if low in verbs.PAST_ONLY:
            return FiniteVerb(place, "past", base)
        state = low in lex.STATES and self.low(self.first_of_all) in lex.FRONTS_OF_CAPTIONS
        if (state or base in lex.TRANSITIVE) and not self.has_object_noun(place):
            return FiniteVerb(place, "past", base, sure=False)
        if any(word.low == "with" for word in self.words[max(start, place - 5) : place]):
            return FiniteVerb(place, "past", base, sure=False)
        if self._auxiliary_behind(place):
            return FiniteVerb(place, "past", base, sure=False)
        if apart or listed or self._participle(place):
            return FiniteVerb(place, "past", base, sure=False)
        return FiniteVerb(place, "past", base)

    def _auxiliary_behind(self, place: int) -> bool:
        """Return whether a finite verb follows at once: "the man seated is playing"."""
        after = self.after(place)
        low = self.low(after)
        return low in lex.BE or low in lex.MODALS or low in lex.HAVE

    def _participle(self, place: int) -> bool:
        """Return whether a past form may be a participle: "the house built in 1990 fell"."""
        after = self.low(place + 1)
        if after == "by":
            return True
        return after in lex.BEHIND_PARTICIPLE and not lex.is_adverb(self.low(place - 1))

    def _present(self, place: int) -> FiniteVerb | None:
        low, before = self.low(place), self.before(place)
        third = low.endswith("s")
        if low not in verbs.VERBS and (not third or low in lex.FUNCTION_WORDS):
            return None
        subject = "" if self.acronym(before) else self.low(before)
        pronoun = subject not in {"this", "that", "one", "each"} or (
            subject in {"this", "that"} and (self.has_object(place) or before < place - 1)
        )
        if third and subject in lex.SINGULAR_SUBJECTS and pronoun:
            base = verbs.base_of_third(low, known=subject not in {"he", "she", "it"})
            if base is not None:
                return FiniteVerb(place, "third", base)
        if subject in lex.PLURAL_SUBJECTS - {"these", "those"} and low in verbs.VERBS:
            return FiniteVerb(place, "base", low)
        if low in lex.PREPOSITIONS or low in lex.PARTICLES or subject in lex.OBJECTS:
            return None
        inserted = subject == "," and self.comma is not None and self.comma < before
        counted = not third and self._counts(before)
        if before < 0 or not (inserted or counted or self.noun(before)):
            return None
        return self._third(place, before) if third else self._base(place, before)

    def _third(self, place: int, before: int) -> FiniteVerb | None:
        low, subject, after = self.low(place), self.low(before), self.low(place + 1)
        base = verbs.base_of_third(low)
        if subject in verbs.VERBS and self.low(before - 1) == "to":
            return None  # the object of an infinitive
        left = self.turns_left(place)
        if base is not None and base not in verbs.NOUN_LIKE:
            doubt = self.starts_verb(self.after(place)) and after in lex.AUXILIARIES
            return None if doubt else FiniteVerb(place, "third", base)
        if self.starts_verb(self.after(place)) and not left:
            return None
        sure = after in lex.OBJECTS or after in lex.ARTICLES
        apart = before < place - 1
        if base is None:
            return self._unknown(place, subject, after)
        if not sure and not left and base in verbs.NOUNS and not self._acts(subject, place):
            weak = not apart or self.low(place - 1) in lex.ADJECTIVES
            return FiniteVerb(place, "third", base, sure=False, weak=weak)
        if not self.plural(before) or apart or self.words[before].is_capital or sure:
            return FiniteVerb(place, "third", base, sure or left or apart)
        return None

    def _acts(self, subject: str, place: int) -> bool:
        after = self.low(place + 1)
        named = self.names(self.before(place)) and not self.shouted
        named = named and not subject.endswith(lex.ENDS_OF_PEOPLES)
        if self.headline:
            if self.has_direct_object(place) and after not in lex.DAYS:
                return True
            phrase = after in lex.PARTICLES or (named and after in {"to", "for"})
            return subject in lex.PEOPLE or phrase
        alone = after in {"", "."} or after in lex.PREPOSITIONS
        object_ = self.has_direct_object(place)
        return subject in lex.PEOPLE or object_ or after in {"to", "that"} or (named and alone)

    def _unknown(self, place: int, subject: str, after: str) -> FiniteVerb | None:
        """Return an unknown word in -s as a verb, where it can be hardly anything else."""
        low = self.low(place)
        nominal = low.endswith(lex.ENDS_OF_NOUNS) or low in lex.NO_VERBS
        if nominal or subject.endswith("s") or "-" in low:
            return None
        base = verbs.base_of_third(low, known=False)
        if base is None or len(low) < 4:
            return None
        if after in lex.OBJECTS - {"this", "that", "these", "those"}:
            return FiniteVerb(place, "third", base)
        if after in lex.ARTICLES or (after in lex.DIRECTIONS and subject in lex.PEOPLE):
            return FiniteVerb(place, "third", base, sure=False)
        return None

    def _base(self, place: int, before: int) -> FiniteVerb | None:
        low, subject, after = self.low(place), self.low(before), self.low(place + 1)
        left = self.turns_left(place)
        if self.starts_verb(self.after(place)) and not left and low not in lex.LINKING:
            return None
        sure = after in lex.OBJECTS or after in lex.ARTICLES
        if low in verbs.IRREGULAR_PAST and low not in verbs.BASE_TOO:
            return None
        moved = after in {"higher", "lower", "flat"} or after[:1].isdigit()
        if low in lex.NEED_OBJECT and not (sure or (moved and low in {"open", "close"})):
            return None
        pure = low not in verbs.NOUN_LIKE
        plural = self.plural(before) or self.joined(before) or (pure and self._counts(before))
        if pure and (plural or subject in lex.COLLECTIVES):
            return FiniteVerb(place, "base", low)
        if plural or (sure and subject not in lex.ADJECTIVES):
            agent = subject.endswith(lex.ENDS_OF_AGENTS) or subject in lex.PLURALS
            weak = not plural or (
                low in verbs.NOUNS and not (agent or sure or moved or self.headless(place))
            )
            sure = left or (sure and plural)
            return FiniteVerb(place, "base", low, sure, weak=weak and not left)
        if pure and self.headline and self.words[before].is_capital:
            return FiniteVerb(place, "base", low, sure=False)
        return None

    def _counts(self, place: int) -> bool:
        """Return whether a number is the subject: "three die"."""
        return place == self.first_of_all and (
            self.low(place) in lex.NUMERALS - {"one"} or self.low(place).isdigit()
        )
