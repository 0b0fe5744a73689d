"""Negate texts without a finite verb: captions, headlines, noun phrases."""

from __future__ import annotations

from collections.abc import Sequence

from cse_sncse import lexicon as lex
from cse_sncse import verbs
from cse_sncse.neighbours import ENDS, Neighbours
from cse_sncse.words import Word

SHORT = 4
"""Words of a noun phrase without an article; a longer one may be a headline."""


def place_of_not(words: Sequence[Word], *, nouns: bool = True) -> int | None:
    """Return before which word ``not`` belongs; None where that is uncertain.

    A participle takes it ("a man not climbing a cliff", "two prisoners not released from jail"), a
    headline's infinitive ("the firm not to pay"), else the front of a text in which no word can be
    a verb ("not a red boat").

    Args:
        words: Words and marks of the text.
        nouns: Whether no word of it was found to be perhaps a verb.
    """
    seen = [place for place, word in enumerate(words) if not word.opaque] or list(range(len(words)))
    fragment = _Fragment([words[place] for place in seen])
    front = fragment.low(fragment.first)
    if fragment.asks or front in lex.WH or front in lex.SUBORDINATORS:
        return None
    found = fragment.predicate()
    if found is not None:
        return seen[found]
    return 0 if nouns and fragment.only_nouns() else None


class _Fragment(Neighbours):
    """A text without a finite verb."""

    def predicate(self) -> int | None:
        """Return the place of the first word that says something of the noun before it."""
        place, size = self.first_of_all + 1, len(self.words)
        while place < size:
            word = self.words[place]
            low = word.low
            if not word.is_word or (word.is_capital and not self.shouted):
                place += 1
                continue
            if low == "to" or (low == "about" and self.low(place + 1) == "to"):
                return place if self._infinitive(place) else None
            if self._behind_noun(place):
                if low.endswith("ing") and self._progressive(place):
                    return place
                if verbs.is_participle(low) and self._passive(place):
                    return None if self._another(place) else place
                if low in lex.PREDICATES and self.headline:
                    return None if verbs.is_participle(self.low(place - 1)) else place
            place += 1
        return None

    def _another(self, place: int) -> bool:
        """Return whether a second participle follows, which may be the predicate."""
        for later in range(place + 1, len(self.words)):
            low = self.low(later)
            if not self.words[later].is_word or low in lex.CONJUNCTIONS or low in lex.BOUNDARIES:
                return False
            if low == "as" or self.words[later].is_capital:
                continue
            if verbs.is_participle(low) and self._behind_noun(later) and self._passive(later):
                return True
        return False

    def _behind_noun(self, place: int) -> bool:
        before = place - 1
        while before > 0 and self.low(before).endswith("ly") and lex.is_adverb(self.low(before)):
            before -= 1
        low = self.low(before)
        begins = before == self.first_of_all or self.low(before - 1) in {":", ","}
        if begins and (low in lex.NUMERALS or low[:1].isdigit()):
            return True
        if low in {"one", "others", "some", "many", "several"}:
            return True
        if self.low(before - 1) == "in" and low in lex.ADJECTIVES:
            return True  # "a boy in red jumping"
        return (
            self.words[before].is_word
            and self.noun(before)
            and not lex.is_adverb(low)
            and low not in lex.ADJECTIVES
        )

    def _progressive(self, place: int) -> bool:
        low, after = self.low(place), self.low(place + 1)
        if verbs.base_of_ing(low) is None:
            return False
        object_ = after in lex.DETERMINERS or after in lex.OBJECTS
        if low in lex.NOUNS_IN_ING:
            return object_
        if self._closes(place + 1) or object_:
            return True
        return self.low(place - 1) in lex.PEOPLE or self.low(place - 1) in lex.PLURALS

    def _passive(self, place: int) -> bool:
        low = self.low(place)
        if low in verbs.PAST_ONLY or low in lex.DETERMINERS:
            return False
        if low in verbs.VERBS:
            short = low in lex.SHORT_PARTICIPLES and place + 1 < len(self.words)
            return short and self._closes(place + 1)
        if (
            not self.headline
            and low not in lex.STATES
            and self.low(place + 1) not in {"by", "with"}
        ):
            return False
        return self._closes(place + 1)

    def _closes(self, place: int) -> bool:
        """Return whether what stands here begins no noun phrase."""
        if place >= len(self.words):
            return True
        word = self.words[place]
        return (
            not (word.text[0].isalnum() or word.text in {'"', "“"})
            or word.low in lex.PREPOSITIONS
            or word.low in lex.CONJUNCTIONS
            or word.low in lex.OPENERS
            or word.low in lex.PREDICATES
            or word.low in {"to", "that", "up", "down", "out", "off", "away", "back", "next", "not"}
            or lex.is_adverb(word.low)
        )

    def _infinitive(self, place: int) -> bool:
        before = self.low(place - 1)
        verb = place + (2 if self.low(place) == "about" else 1)
        return (
            (self.headline or self.low(place) == "about")
            and self._behind_noun(place)
            and (self.low(verb) in verbs.VERBS)
            and before not in lex.TAKES_TO
            and not any(word.low in {"for", "how"} for word in self.words[:place])
        )

    def only_nouns(self) -> bool:
        """Return whether no word can be a verb, and the text begins as a noun phrase does."""
        front = self.low(self.first_of_all)
        if self.headline and len(self.words) > SHORT:
            return False
        size = sum(word.is_word for word in self.words)
        phrase = front in lex.FRONTS or (size <= 2 and self.words[self.first_of_all].is_word)
        if not (phrase or size <= 1 or self.joined(size - 2) or self._bare_pair()):
            return False
        if any(word.text in ENDS for word in self.words[:-1]):
            return False
        return not any(self._may_be_verb(place) for place in range(1, len(self.words)))

    def _bare_pair(self) -> bool:
        return len(self.words) <= 4 and self.low(1) == "and"

    def _may_be_verb(self, place: int) -> bool:
        word = self.words[place]
        low = word.low
        if not word.is_word or (word.is_capital and not self.shouted):
            return False
        if low in lex.AUXILIARIES or low.endswith("n't") or low in verbs.PAST_ONLY:
            return True
        before = place - 1
        third = verbs.base_of_third(low)
        if self.low(before) in {"this", "these", "those"} and low in verbs.VERBS:
            return True
        if self.low(before) in lex.ARTICLES or self.low(before) in lex.PREPOSITIONS:
            return False
        pure = {low, third or low} & verbs.VERBS - verbs.NOUN_LIKE
        if pure or (verbs.base_of_past(low) is not None and not self.before_noun(place)):
            return self.low(before) != "to"
        if not (self.words[before].is_word and self.noun(before)):
            return False
        if lex.is_adverb(self.low(before)) or self.low(before) in lex.ADJECTIVES:
            return False
        if third is not None:
            return third not in verbs.NOUNS or self.low(place + 1) in lex.DETERMINERS
        if low in verbs.VERBS and self.plural(before):
            return True
        return verbs.base_of_past(low) is not None and not self.before_noun(place)
