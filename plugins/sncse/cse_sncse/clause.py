"""Find the finite verb of an English sentence's main clause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cse_sncse import lexicon as lex
from cse_sncse import verbs
from cse_sncse.neighbours import ADVERBS_IN_A_ROW, QUOTES
from cse_sncse.readings import FiniteVerb, Readings, may_be_finite
from cse_sncse.words import Word

LOOK_AHEAD = 16
"""Words behind a verb among which a second one is looked for."""


@dataclass(frozen=True)
class Reading:
    """What a sentence was read as.

    Attributes:
        verb: The finite verb of its main clause; None where there is none.
        certain: Whether no other reading is left.
    """

    verb: FiniteVerb | None
    certain: bool


def main_verb(words: Sequence[Word]) -> Reading:
    """Return the finite verb of the main clause, and whether it is certain.

    A subordinate clause at the front is passed over, relative clauses too, and what stands in
    quotes or parentheses, unless nothing else has a verb.
    """
    reading = Reading(None, certain=True)
    for opaque in (False, True):
        if not opaque and not any(word.opaque for word in words):
            continue
        seen = [
            place
            for place, word in enumerate(words)
            if opaque or not word.opaque or (word.text in QUOTES and not words[place - 1].opaque)
        ]
        if seen:
            clause = Clause([words[place] for place in seen])
            reading = clause.find(clause.main)
            if reading.verb is None and clause.main:
                reading = clause.find(0)
            if reading.verb is not None:
                verb = replace(reading.verb, place=seen[reading.verb.place])
                return Reading(verb, reading.certain)
    return reading


class Clause(Readings):
    """A sentence, and the search for its main clause's verb."""

    def find(self, start: int) -> Reading:
        """Return the first finite verb from ``start`` that belongs to no relative clause."""
        self.closed = len(self.words)
        self.passive: FiniteVerb | None = None
        first: FiniteVerb | None = None
        unsure: list[FiniteVerb] = []
        pending, place, size = 0, start, len(self.words)
        front = self.low(self.first)
        if start == 0 and not self.asks and front in lex.SUBORDINATORS | lex.WH:
            if self.low(self.first + 1) in lex.AUXILIARIES:
                pass  # a question without its mark
            elif front in lex.WH - {"when"} or self.low(self.first + 1) not in lex.SUBJECTS:
                return Reading(None, certain=False)
            else:
                pending, place = 1, self.first + 1
        if front == "all" and self.low(self.first + 1) in lex.SUBJECTS:
            pending, place = 1, self.first + 1
        while place < size:
            if unsure and self._ends(place, unsure):
                break
            low = self.words[place].low
            if low in lex.OPENING and self._opens_relative(place, start):
                if unsure:
                    break
                comma = self.next_comma(place) if self.low(place - 1) == "," else None
                if comma is None and not self._has_no_verb(place):
                    pending += 1
                place = place + 1 if comma is None else comma
                continue
            if low in lex.SUBJECTS_OF_CLAUSES and not unsure and self._contact(place, start):
                pending += 1
            verb = self.finite(place, start) if may_be_finite(low) else None
            if verb is not None and verb.form == "past" and self._passive(verb):
                self.passive, verb = verb, None
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
                return self._decide(verb, unsure, start)
            else:
                behind = None if unsure else self._behind_participle(verb, start)
                if behind is not None:
                    return Reading(behind, certain=True)
                unsure.append(verb)
        strong = [verb for verb in unsure if not verb.weak]
        if strong:
            one = strong[0]
            if self._participial(one) or self._to_come(one.place):
                return Reading(None, certain=False)
            others = all(self._gives_way(verb, one) for verb in strong[1:])
            bare = one.form == "past" and self._joined(one.place)
            noun = one.form == "past" and unsure[0].weak
            return Reading(one, others and not bare and not noun)
        if len(unsure) == 1 and self._alone(unsure[0], start):
            return Reading(unsure[0], certain=True)
        if unsure:
            return Reading(None, certain=False)
        fronted = self.low(self.first) in lex.PREPOSITIONS or lex.is_adverb(self.low(self.first))
        return Reading(first, first is None or fronted)

    def _decide(self, verb: FiniteVerb, unsure: Sequence[FiniteVerb], start: int) -> Reading:
        """Return the main verb, given the first sure one and those before it that are not."""
        strong = [each for each in unsure if not each.weak]
        if not strong:
            apart = self.passive is not None and any(
                word.text in ",;:" or word.low in lex.JOINING or word.low == "as"
                for word in self.words[self.passive.place + 1 : verb.place]
            )
            if apart:
                return Reading(None, certain=False)
            listed = any(
                word.text == ","
                for each in unsure
                for word in self.words[each.place + 1 : verb.place]
            )
            return Reading(verb, not listed and not self._another_behind(verb, start))
        if self._joined(verb.place):
            return Reading(strong[0], len({each.form for each in strong}) == 1)
        last = strong[-1]
        between = self.words[last.place + 1 : verb.place]
        joined = any(word.low in lex.JOINING or word.text in ";:" for word in between)
        if all(each.form == "past" for each in strong):
            return Reading(verb, not joined)
        return Reading(verb, verb.place == last.place + 1 and verb.form != "auxiliary")

    def _another_behind(self, verb: FiniteVerb, start: int) -> bool:
        """Return whether a second finite verb follows in the same clause, so that one is wrong."""
        if verb.form in {"auxiliary", "imperative"} or verb.base in lex.REPORTING:
            return False
        for place in range(verb.place + 1, min(len(self.words), verb.place + LOOK_AHEAD)):
            low = self.words[place].low
            if low in lex.CLOSING or not (low[0].isalpha() or low in lex.CLITICS or low == "'s"):
                return False
            other = self.finite(place, start) if may_be_finite(low) else None
            if other is not None and other.sure and other.form in {"auxiliary", "third", "past"}:
                return other.form != "past" or self.low(place) in verbs.PAST_ONLY
        return False

    def _to_come(self, place: int) -> bool:
        """Return whether a headline's infinitive stands before a verb: "PM to visit arms fair"."""
        return self.headline and any(
            self.low(each) == "to" and self.low(each + 1) in verbs.VERBS for each in range(1, place)
        )

    def _gives_way(self, verb: FiniteVerb, first: FiniteVerb) -> bool:
        """Return whether a verb that is not sure leaves another before it the main one."""
        if first.form == "past" or verb.form == "past":
            return self._listed(verb) or (verb.form == "past" and first.form != "past")
        between = self.words[first.place + 1 : verb.place]
        return any(word.low in lex.PREPOSITIONS for word in between)

    def _alone(self, verb: FiniteVerb, start: int) -> bool:
        """Return whether a sentence with its mark has no other verb: "the story centers on it"."""
        if self.headline or self.asks or self.words[-1].text != ".":
            return False
        before = self.words[start : verb.place]
        return self.low(verb.place + 1) in lex.BEHIND_PARTICIPLE and not any(
            word.low in lex.PREPOSITIONS or word.low in lex.CONJUNCTIONS for word in before
        )

    def _listed(self, verb: FiniteVerb) -> bool:
        """Return whether a past form follows a comma or conjunction, as those of a list do."""
        before = self.before(verb.place)
        return verb.form == "past" and (
            self.words[before].text == "," or self.low(before) in lex.CONJUNCTIONS
        )

    def _ends(self, place: int, unsure: Sequence[FiniteVerb]) -> bool:
        """Return whether the clause of a verb that is not sure ends here."""
        if all(verb.form == "past" for verb in unsure):
            return False
        low = self.low(place)
        return (
            low in lex.BOUNDARIES
            or low in {":", ";", "–", "—"}
            or (low == "as" and not self.words[place - 1].low == "such")
        )

    def _passive(self, verb: FiniteVerb) -> bool:
        """Return whether a past form of a headline is rather a participle."""
        low = self.low(verb.place)
        return (
            self.headline
            and low not in verbs.PAST_ONLY
            and verb.base not in lex.INTRANSITIVE
            and not self.has_object_noun(verb.place)
            and self.low(self.before(verb.place)) not in lex.SUBJECTS
        )

    def _participial(self, verb: FiniteVerb) -> bool:
        """Return whether the only verb of a caption is rather a participle."""
        if verb.form != "past" or self.low(verb.place) in verbs.PAST_ONLY:
            return False
        bare = verb.base in lex.TRANSITIVE and not self.has_object_noun(verb.place)
        return bare or self.low(self.first_of_all) in lex.FRONTS_OF_CAPTIONS

    def _has_no_verb(self, place: int) -> bool:
        """Return whether a relative word opens no clause: "when built", "while on tour"."""
        after = self.low(place + 1)
        return self.low(place) in lex.OPENERS and (
            after.endswith("ing")
            or after in lex.PREPOSITIONS
            or (verbs.is_participle(after) and after not in lex.DETERMINERS)
        )

    def _contact(self, place: int, start: int) -> bool:
        """Return whether a clause without its pronoun begins: "the books he wrote are lost"."""
        if place <= max(start, self.first) + 1:
            return False
        before = self.words[place - 1]
        front = self.low(max(start, self.first))
        return (
            before.text.islower()
            and before.low not in lex.TIMES
            and before.low not in verbs.VERBS - verbs.NOUN_LIKE
            and not lex.is_adverb(before.low)
            and self.noun(place - 1)
            and front not in lex.PREPOSITIONS
            and not lex.is_adverb(front)
        )

    def _opens_relative(self, place: int, start: int) -> bool:
        low = self.low(place)
        if place <= max(start, self.first):
            return False
        if low == "as":
            return self.low(place + 1) in lex.SUBJECTS
        if low in {"what", "how", "whatever"} and not self.asks:
            return True
        if low == "that":
            before, after = self.low(place - 1), self.low(place + 1)
            if after in lex.TIMES or lex.is_adverb(before):
                return False
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

    def _joined(self, place: int) -> bool:
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
