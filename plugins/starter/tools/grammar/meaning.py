"""Meanings: what a sentence says, apart from the words, and how meanings are drawn.

The heart of a meaning is an action and its object (or a quality and its bearer). Each such heart
belongs to one split for good, so that what the graded pairs say is said nowhere in the corpus, in
whatever words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from grammar.draws import Draws
from grammar.lexicon import FactFrame, Noun, Phrase, Topic, Word, common

Number = tuple[str, str, str]
SPLITS = ("train", "dev", "test")
NEGATED = 0.06


@dataclass(frozen=True)
class Event:
    """Somebody did something to a thing."""

    verb: Word
    thing: Noun
    agent: Noun
    surname: str | None = None
    time: Phrase | None = None
    place: Phrase | None = None
    city: Phrase | None = None
    manner: Word | None = None
    amount: Phrase | None = None
    number: Number | None = None
    purpose: Phrase | None = None
    reason: Phrase | None = None
    negated: bool = False


@dataclass(frozen=True)
class State:
    """A thing had a quality."""

    quality: Word
    thing: Noun
    time: Phrase | None = None
    place: Phrase | None = None
    city: Phrase | None = None
    reason: Phrase | None = None
    negated: bool = False


@dataclass(frozen=True)
class Fact:
    """Two things stand in a lasting relation that only this topic has."""

    frame: FactFrame
    first: Noun
    second: Noun


Clause = Event | State | Fact


@dataclass(frozen=True)
class Sentence:
    """One or two clauses, perhaps reported by somebody.

    `link` is "then" (the first clause came first) or "while".
    """

    first: Clause
    second: Event | None = None
    link: str = "then"
    source: str | None = None
    opener: Phrase | None = None


@dataclass(frozen=True)
class Cast:
    """What the sentences of a document have in common; empty fields leave all open."""

    agents: tuple[Noun, ...]
    things: tuple[Noun, ...] = ()
    city: Phrase | None = None
    surnames: tuple[str, ...] = ()


@cache
def hearts(topic: Topic, split: str) -> dict[Word | FactFrame, tuple[Noun, ...]]:
    """Return, for each verb, quality and fact of a topic, the things it may have in a split.

    Of the things of a group, two belong to dev, two to test and the others to train; which, is
    drawn again for each verb.
    """
    result: dict[Word | FactFrame, tuple[Noun, ...]] = {}
    words: list[Word | FactFrame] = [*topic.verbs, *topic.states, *topic.facts]
    for word in words:
        group = word.groups[0] if isinstance(word, FactFrame) else word.group
        draws = Draws(f"hearts {topic.name} {word.german}")
        things = draws.shuffled(topic.groups[group])
        result[word] = tuple({"dev": things[:2], "test": things[2:4], "train": things[4:]}[split])
    return result


def _thing(word: Word | FactFrame, topic: Topic, split: str, cast: Cast, draws: Draws) -> Noun:
    allowed = hearts(topic, split)[word]
    wanted = [thing for thing in cast.things if thing in allowed]
    return draws.one(wanted or allowed)


def draw_event(topic: Topic, split: str, cast: Cast, draws: Draws, fullness: float) -> Event:
    """Draw an event; `fullness` (0-1) says how much is said about it."""
    shared = common()
    verb = draws.one(topic.verbs)
    manners = [manner for manner in topic.manners if manner.group == verb.group]
    shown = draws.chance
    amount = draws.one(shared.amounts) if shown(fullness * 0.6) else None
    return Event(
        verb=verb,
        thing=_thing(verb, topic, split, cast, draws),
        agent=draws.one(cast.agents or topic.agents),
        surname=draws.one(cast.surnames or shared.surnames) if shown(0.25) else None,
        time=draws.one(shared.times) if shown(0.2 + fullness * 0.5) else None,
        place=draws.one(topic.places) if shown(fullness * 0.8) else None,
        city=(cast.city or draws.one(shared.cities)) if shown(fullness * 0.3) else None,
        manner=draws.one(manners) if shown(fullness * 0.7) else None,
        amount=amount,
        number=draws.one(shared.numbers) if amount is not None else None,
        purpose=draws.one(topic.purposes) if shown(fullness * 0.5) else None,
        reason=draws.one(topic.reasons) if shown(fullness * 0.7) else None,
        negated=shown(NEGATED),
    )


def draw_state(topic: Topic, split: str, cast: Cast, draws: Draws, fullness: float) -> State:
    """Draw a state; `fullness` (0-1) says how much is said about it."""
    shared = common()
    quality = draws.one(topic.states)
    shown = draws.chance
    return State(
        quality=quality,
        thing=_thing(quality, topic, split, cast, draws),
        time=draws.one(shared.times) if shown(0.5) else None,
        place=draws.one(topic.places) if shown(fullness) else None,
        city=(cast.city or draws.one(shared.cities)) if shown(fullness * 0.4) else None,
        reason=draws.one(topic.reasons) if shown(fullness) else None,
        negated=shown(NEGATED),
    )


def draw_fact(topic: Topic, split: str, cast: Cast, draws: Draws) -> Fact:
    """Draw a fact of the topic."""
    frame = draws.one(topic.facts)
    first = _thing(frame, topic, split, cast, draws)
    return Fact(frame, first, draws.other(topic.groups[frame.groups[1]], first))


def draw_sentence(topic: Topic, split: str, cast: Cast, draws: Draws) -> Sentence:
    """Draw a sentence for a document."""
    shared = common()
    kind = draws.below(100)
    source = draws.one(shared.surnames) if draws.chance(0.1) else None
    opener = draws.one(shared.openers) if source is None and draws.chance(0.08) else None
    fullness = draws.one((0.0, 0.3, 0.5, 0.8, 1.0))
    if kind < 8:
        return Sentence(draw_fact(topic, split, cast, draws), source=source)
    if kind < 24:
        state = draw_state(topic, split, cast, draws, fullness)
        return Sentence(state, source=source, opener=opener)
    event = draw_event(topic, split, cast, draws, fullness)
    if kind < 76:
        return Sentence(event, source=source, opener=opener)
    event = replace(event, purpose=None, negated=False)
    second = replace(draw_event(topic, split, cast, draws, fullness * 0.7), negated=False)
    return Sentence(event, second, draws.one(("then", "while")), source, opener)
