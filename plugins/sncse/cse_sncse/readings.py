"""What each word of an English clause can be, by word lists and its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cse_sncse import lexicon as lex
from cse_sncse import verbs
from cse_sncse.neighbours import ADVERBS_IN_A_ROW, Neighbours

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


class Readings(Neighbours):
    """A sentence's words, and what each of them can be."""

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
            name = low in {"will", "may"} and place == self.first and self.names(place + 1)
            return None if noun or dated or name else verb
        if low in lex.HAVE:
            if after in {"been", "better"} or self.turned(place):
                return verb
            if verbs.is_participle(after) and after not in lex.DETERMINERS:
                return verb
            form: Form = "past" if low == "had" else "third" if low == "has" else "base"
            return FiniteVerb(place, form, "have")
        if low in lex.DO:
            if after in verbs.VERBS or (self.turned(place) and not self._asks_who_did(place)):
                return verb
            if low == "do" and place == self.first:
                return FiniteVerb(place, "imperative", "do")
            form = "past" if low == "did" else "third" if low == "does" else "base"
            return FiniteVerb(place, form, "do")
        return None

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
            or self.turns_left(place)
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
        if low in verbs.UNCHANGED or self.inside_noun_phrase(before, place):
            return FiniteVerb(place, "past", base, sure=False)
        if low in verbs.PAST_ONLY:
            return FiniteVerb(place, "past", base)
        apart = self.words[before].text in {",", ";", ":", "–", "—", "-"}
        listed = subject in lex.CONJUNCTIONS
        if apart or listed or self._participle(place):
            return FiniteVerb(place, "past", base, sure=False)
        return FiniteVerb(place, "past", base)

    def _participle(self, place: int) -> bool:
        """Return whether a past form may be a participle: "the house built in 1990 fell"."""
        after = self.low(place + 1)
        return after in lex.BEHIND_PARTICIPLE and not lex.is_adverb(self.low(place - 1))

    def _present(self, place: int) -> FiniteVerb | None:
        low, before = self.low(place), self.before(place)
        subject = self.low(before)
        pronoun = subject not in {"this", "that", "one", "each"} or (
            subject in {"this", "that"} and self.has_object(place)
        )
        if subject in lex.SINGULAR_SUBJECTS and pronoun:
            base = verbs.base_of_third(low, known=subject not in {"he", "she", "it"})
            if base is not None:
                return FiniteVerb(place, "third", base)
        if subject in lex.PLURAL_SUBJECTS - {"these", "those"} and low in verbs.VERBS:
            return FiniteVerb(place, "base", low)
        inserted = subject == "," and self.comma is not None and self.comma < before
        if before < 0 or not (inserted or self.noun(before)):
            return None
        after = self.low(place + 1)
        left = self.turns_left(place)
        if self.starts_verb(self.after(place)) and not left:
            return None
        sure = after in lex.OBJECTS or after in lex.ARTICLES
        base = verbs.base_of_third(low, known=after not in {"him", "them", "me", "us"})
        plural = subject in lex.PLURALS or (
            subject.endswith("s") and not subject.endswith(("ss", "us", "is"))
        )
        apart = before < place - 1 or self.words[before].is_capital
        if base is not None and (not plural or apart or sure):
            return FiniteVerb(place, "third", base, sure or left)
        plural = plural or self.joined(before)
        if low in verbs.VERBS and low not in verbs.IRREGULAR_PAST and (plural or sure):
            return FiniteVerb(place, "base", low, sure or left)
        return None
