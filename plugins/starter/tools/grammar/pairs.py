"""Graded pairs of sentences: how similar two meanings are, on a scale of 0 to 5.

The score follows from how the second meaning was made from the first, never from the words.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict

from grammar.draws import Draws
from grammar.english import Wording, english
from grammar.lexicon import Topic, common, topics
from grammar.meaning import Cast, Event, Sentence, draw_event, hearts

COUNTS = {"paraphrase": 320, "detail": 160, "negated": 80, "same-topic": 320, "unrelated": 320}
# How eagerly a pair is reworded, drawn for each pair: 0 keeps every wording, 1 changes all it can.
REWORDING = {
    "paraphrase": (0.3, 0.5, 0.7, 0.9),
    "detail": (0.3, 0.5, 0.7),
    "negated": (0.3, 0.5, 0.7),
}
DETAIL_SCORES = {"number": 3.8, "time": 3.6, "place": 3.5, "city": 3.4, "object": 3.0}


class ScoredPair(TypedDict):
    """Two sentences, how similar they are (0-5), and the kind of the pair."""

    sentence1: str
    sentence2: str
    score: float
    subset: str


def _draw(topic: Topic, split: str, draws: Draws) -> Sentence:
    """Draw a plain affirmative sentence about one event or two."""
    fullness = draws.one((0.3, 0.5, 0.7, 1.0))
    first = replace(draw_event(topic, split, Cast(()), draws, fullness), negated=False)
    if draws.chance(0.85):
        return Sentence(first)
    second = replace(draw_event(topic, split, Cast(()), draws, fullness / 2), negated=False)
    return Sentence(replace(first, purpose=None), second, draws.one(("then", "while")))


def _event(sentence: Sentence) -> Event:
    event = sentence.first
    assert isinstance(event, Event)
    return event


def _changed(sentence: Sentence, topic: Topic, split: str, draws: Draws) -> tuple[Sentence, str]:
    """Return the sentence with one detail of its first event replaced, and which."""
    shared, event = common(), _event(sentence)
    present = ["object"]
    present += ["number", "number"] if event.number is not None else []
    present += ["time"] if event.time is not None else []
    present += ["place"] if event.place is not None else []
    present += ["city"] if event.city is not None else []
    detail = draws.one(present)
    if detail == "number":
        event = replace(event, number=draws.other(shared.numbers, event.number))
    elif detail == "time":
        event = replace(event, time=draws.other(shared.times, event.time))
    elif detail == "place":
        event = replace(event, place=draws.other(topic.places, event.place))
    elif detail == "city":
        event = replace(event, city=draws.other(shared.cities, event.city))
    else:
        event = replace(event, thing=draws.other(hearts(topic, split)[event.verb], event.thing))
    return replace(sentence, first=event), detail


def _same_topic(sentence: Sentence, topic: Topic, split: str, draws: Draws) -> Sentence:
    """Draw another event of the topic: other action, other thing, other people."""
    known = _event(sentence)
    while True:
        other = _draw(topic, split, draws)
        event = _event(other)
        if event.verb is not known.verb and event.thing is not known.thing:
            return other


def _unrelated(sentence: Sentence, topic: Topic, split: str, draws: Draws) -> Sentence:
    """Draw an event of another topic; in half of the cases time, city, name and number agree."""
    known = _event(sentence)
    other = _draw(draws.other(topics(), topic), split, draws)
    if draws.chance(0.5):
        return other
    event = replace(
        _event(other),
        time=known.time,
        city=known.city,
        surname=known.surname,
        amount=known.amount,
        number=known.number,
    )
    return replace(other, first=event)


def _pair(kind: str, topic: Topic, split: str, draws: Draws) -> ScoredPair:
    sentence = _draw(topic, split, draws)
    wording = Wording(draws)
    text = english(sentence, wording)
    keep = wording.reworded(0.0)
    if kind in REWORDING:
        keep = wording.reworded(draws.one(REWORDING[kind]))
    if kind == "paraphrase":
        score, second = 5.0, sentence
    elif kind == "detail":
        second, detail = _changed(sentence, topic, split, draws)
        score = DETAIL_SCORES[detail]
    elif kind == "negated":
        score, second = 2.0, replace(sentence, first=replace(_event(sentence), negated=True))
    elif kind == "same-topic":
        score, second = 1.0, _same_topic(sentence, topic, split, draws)
        keep = keep if draws.chance(0.5) else Wording(draws)
    else:
        score, second = 0.0, _unrelated(sentence, topic, split, draws)
    return {
        "sentence1": text,
        "sentence2": english(second, keep),
        "score": score,
        "subset": kind,
    }


def graded_pairs(split: str, seed: int = 0) -> list[ScoredPair]:
    """Return the pairs of `dev` or `test`, shuffled; equal seeds give equal pairs."""
    draws = Draws(f"pairs {split} {seed}")
    seen: set[tuple[str, str]] = set()
    result: list[ScoredPair] = []
    for kind, count in COUNTS.items():
        made = 0
        while made < count:
            pair = _pair(kind, draws.one(topics()), split, draws)
            key = (pair["sentence1"], pair["sentence2"])
            if key[0] != key[1] and key not in seen:
                seen.add(key)
                result.append(pair)
                made += 1
    return draws.shuffled(result)
