"""Find the finite verb of an English sentence's main clause."""

from __future__ import annotations

from collections.abc import Sequence

from cse_sncse import lexicon as lex
from cse_sncse import verbs
from cse_sncse.neighbours import ADVERBS_IN_A_ROW, QUOTES
from cse_sncse.readings import FiniteVerb, Readings
from cse_sncse.words import Word


def main_verb(words: Sequence[Word]) -> FiniteVerb | None:
    """Return the finite verb of the main clause; None where none is recognised.

    A subordinate clause at the front is passed over, relative clauses too, and what stands in
    quotes or parentheses, unless nothing else has a verb.
    """
    for opaque in (False, True):
        if not opaque and not any(word.opaque for word in words):
            continue
        seen = [
            place
            for place, word in enumerate(words)
            if opaque or not word.opaque or (word.text in QUOTES and not words[place - 1].opaque)
        ]
        if seen:
            clause = _Clause([words[place] for place in seen])
            found = clause.find(clause.main) or clause.find(0)
            if found is not None:
                return FiniteVerb(seen[found.place], found.form, found.base, found.sure)
    return None


class _Clause(Readings):
    """A sentence, and the search for its main clause's verb."""

    def find(self, start: int) -> FiniteVerb | None:
        """Return the first finite verb from ``start`` that belongs to no relative clause."""
        self.closed = len(self.words)
        first: FiniteVerb | None = None
        unsure: FiniteVerb | None = None
        pending, place, size = 0, start, len(self.words)
        while place < size:
            if self._opens_relative(place, start):
                if unsure is not None:
                    break
                comma = self.next_comma(place) if self.low(place - 1) == "," else None
                if comma is None:
                    pending += 1
                place = place + 1 if comma is None else comma
                continue
            verb = self.finite(place, start)
            if verb is None:
                place += 1
                continue
            first = first or verb
            if verb.form == "auxiliary" or pending:
                place = self._behind_group(place)
            else:
                place += 1
            if pending:
                pending -= 1
                self.closed = place
            elif verb.sure:
                coordinated = unsure is not None and self._coordinated(verb.place)
                return unsure if coordinated else verb
            elif unsure is None:
                behind = self._behind_participle(verb, start)
                if behind is not None:
                    return behind
                unsure = verb
        return unsure or first

    def _opens_relative(self, place: int, start: int) -> bool:
        low = self.low(place)
        if place <= max(start, self.first):
            return False
        if low == "that":
            before = self.low(place - 1)
            return before not in lex.PREPOSITIONS and before not in {",", "and", "or", "but"}
        if low in lex.RELATIVES:
            return not (self.asks and self._only_wh(place))
        return False

    def _behind_participle(self, verb: FiniteVerb, start: int) -> FiniteVerb | None:
        """Return the verb behind commas around a participle: "the team, led by Anna, won".

        Args:
            verb: A past form that may be the participle.
            start: Where the clause begins.

        Returns:
            The first finite verb right behind a later comma; None where there is none, or the
            comma before the past form rather ends a group: "Anna, a painter, lived here".
        """
        opening = self.before(verb.place)
        if verb.form != "past" or self.words[opening].text != ",":
            return None
        commas = sum(word.text == "," for word in self.words[start:opening])
        front = self.low(max(start, self.first))
        comma = self.next_comma(start - 1) or 0
        if commas and (front in lex.PREPOSITIONS or lex.is_adverb(front)):
            commas -= 1  # the comma behind a phrase at the front: "In 1990, the team, led by …"
        elif commas and lex.is_adverb(self.low(comma - 1)):
            commas -= 1  # "Two years later, the team, led by …"
        if commas % 2 and self.low(verb.place + 1) != "by":
            return None
        closing = self.next_comma(verb.place)
        while closing is not None:
            place = self.after(closing)
            found = self.finite(place, start) if place < len(self.words) else None
            if found is not None and not (found.form == "past" and self.low(place + 1) == "by"):
                return found
            closing = self.next_comma(closing)
        return None

    def _only_wh(self, place: int) -> bool:
        return place <= ADVERBS_IN_A_ROW and all(
            word.low in lex.WH or not word.is_word for word in self.words[:place]
        )

    def _coordinated(self, place: int) -> bool:
        before = self.before(place)
        return self.low(before) in lex.CONJUNCTIONS

    def _behind_group(self, place: int) -> int:
        """Return the place behind an auxiliary or verb and the participles that go with it."""
        place += 1
        while self.low(place) in lex.NOT_FINITE or (
            lex.is_adverb(self.low(place)) and self.low(place) not in lex.PLACES
        ):
            place += 1
        low = self.low(place)
        if verbs.is_participle(low) or low.endswith("ing") or low in verbs.VERBS:
            place += 1
        return place
