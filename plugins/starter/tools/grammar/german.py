"""German sentences from meanings: verb-second main clauses, verb-final subordinate clauses.

The perfect tense keeps every verb to one form, its participle, at the end of the clause.
"""

from __future__ import annotations

from grammar.draws import Draws
from grammar.meaning import Event, Fact, Sentence, State

_CONTRACTIONS = {" von dem ": " vom ", " zu dem ": " zum ", " zu der ": " zur "}


def _agent(event: Event, case: str) -> str:
    if event.surname is None:
        return format(event.agent, case)
    return f"{event.agent.german} {event.surname}"


def _place(clause: Event | State) -> list[str]:
    result = [clause.place.german] if clause.place is not None else []
    if clause.city is not None:
        result.append(f"in {clause.city.german}")
    return result


def _middle(event: Event) -> list[str]:
    """Return what stands between subject and participle, but for object, time and negation."""
    result = []
    if event.manner is not None:
        result.append(event.manner.german)
    if event.amount is not None and event.number is not None:
        result.append(event.amount.german.format(n=event.number[2]))
    return result + _place(event)


def _tail(clause: Event | State) -> str:
    result = ""
    if isinstance(clause, Event) and clause.purpose is not None:
        result += f", {clause.purpose.german}"
    if clause.reason is not None:
        result += f", weil {clause.reason.german}"
    return result


def _parts(clause: Event | State, passive: bool) -> tuple[str, str, list[str], str]:
    """Return finite verb, subject, middle field, and what closes the clause."""
    time = [clause.time.german] if clause.time is not None else []
    negation = ["nicht"] if clause.negated else []
    if isinstance(clause, State):
        middle = time + _place(clause) + negation
        return "war", format(clause.thing, "nom"), middle, clause.quality.german
    participle = clause.verb.german
    if passive:
        middle = time + [f"von {_agent(clause, 'dat')}"] + _middle(clause) + negation
        plural = clause.thing.gender == "p"
        finite = "wurden" if plural else "wurde"
        return finite, format(clause.thing, "nom"), middle, participle
    middle = [format(clause.thing, "acc")] + time + _middle(clause) + negation
    return "hat", _agent(clause, "nom"), middle, participle


def _main(clause: Event | State | Fact, front: str | None, passive: bool) -> str:
    """Return a main clause; `front` takes the first place and moves the subject behind the verb."""
    if isinstance(clause, Fact):
        text = clause.frame.german.format(a=clause.first, b=clause.second)
        return text if front is None else f"{front} gilt: {text[0].upper()}{text[1:]}"
    finite, subject, middle, closing = _parts(clause, passive)
    start = [subject, finite] if front is None else [front, finite, subject]
    return " ".join([*start, *middle, closing]) + _tail(clause)


def _sub(conjunction: str, clause: Event | State, passive: bool) -> str:
    """Return a subordinate clause with its finite verb last."""
    finite, subject, middle, closing = _parts(clause, passive)
    if conjunction == "nachdem" and finite == "hat":
        finite = "hatte"
    if conjunction == "nachdem" and finite in ("wurde", "wurden"):
        closing, finite = f"{closing} worden", "waren" if finite == "wurden" else "war"
    return " ".join([conjunction, subject, *middle, closing, finite]) + _tail(clause)


def german(sentence: Sentence, draws: Draws) -> str:
    """Return the sentence in German, with capital and full stop."""
    passive, order = draws.chance(0.3), draws.chance(0.5)
    first, second = sentence.first, sentence.second
    front = sentence.opener.german if sentence.opener is not None else None
    if sentence.source is not None and (order or second is not None or isinstance(first, Fact)):
        front = f"laut {sentence.source}"
    if second is not None and not isinstance(first, Fact):
        if sentence.link == "then":
            text = f"{_main(first, front, passive)}, {_sub('bevor', second, False)}"
            if order and front is None:
                text = f"{_sub('nachdem', first, passive)}, {_inverted(second)}"
        else:
            text = f"{_main(second, front, passive)}, {_sub('während', first, False)}"
    elif sentence.source is not None and front is None and not isinstance(first, Fact):
        text = f"{sentence.source} berichtete, {_sub('dass', first, passive)}"
    elif isinstance(first, Fact) or front is not None or not order or first.time is None:
        text = _main(first, front, passive)
    else:
        text = _time_first(first, first.time.german, passive)
    for long, short in _CONTRACTIONS.items():
        text = text.replace(long, short)
    return text[0].upper() + text[1:] + "."


def _inverted(clause: Event | State) -> str:
    """Return a main clause whose first place a subordinate clause before it has taken."""
    finite, subject, middle, closing = _parts(clause, False)
    return " ".join([finite, subject, *middle, closing]) + _tail(clause)


def _time_first(clause: Event | State, time: str, passive: bool) -> str:
    finite, subject, middle, closing = _parts(clause, passive)
    middle.remove(time)
    return " ".join([time, finite, subject, *middle, closing]) + _tail(clause)
