"""The documents of the starter texts: a cast of nouns for each, and sentences about it."""

from __future__ import annotations

from dataclasses import dataclass

from grammar.draws import Draws
from grammar.english import Wording, english
from grammar.german import german
from grammar.lexicon import Topic, common, topics
from grammar.meaning import Cast, draw_sentence

DOCUMENTS = 1400
LONG_EVERY = 25
WORDS = (5, 60)


@dataclass(frozen=True)
class Document:
    """A synthetic article.

    Attributes:
        name: Identifier, unique in the corpus, such as `cooking-0012`.
        topic: Name of its topic.
        title: English title.
        sentences: Its sentences in order, English and German.
    """

    name: str
    topic: str
    title: str
    sentences: tuple[tuple[str, str], ...]


def _title(topic: Topic, cast: Cast, draws: Draws) -> str:
    wording = Wording(draws)
    things = [wording.say(thing.forms) for thing in cast.things[:2]]
    city = cast.city.forms[0] if cast.city is not None else ""
    agent = wording.say(cast.agents[0].forms)
    heading = draws.one(topic.headings)
    title = draws.one(
        (
            f"{heading}: {things[0]} and {things[1]} in {city}",
            f"The {agent} of {city} and the {things[0]}",
            f"{things[0]} and {things[1]}: what the {agent} of {city} knew",
            f"{heading}: the {agent} {cast.surnames[0]} and the {things[0]}",
        )
    )
    return title[0].upper() + title[1:]


def _document(name: str, topic: Topic, count: int, draws: Draws, seen: set[str]) -> Document:
    shared = common()
    groups = list(topic.groups.values())
    cast = Cast(
        agents=tuple(draws.some(topic.agents, 4)),
        things=tuple(thing for group in groups for thing in draws.some(group, 4)),
        city=draws.one(shared.cities),
        surnames=tuple(draws.some(shared.surnames, 3)),
    )
    title = _title(topic, cast, draws)
    sentences: list[tuple[str, str]] = []
    while len(sentences) < count:
        meaning = draw_sentence(topic, "train", cast, draws)
        text = english(meaning, Wording(draws))
        if text in seen or not WORDS[0] <= text.count(" ") + 1 <= WORDS[1]:
            continue
        seen.add(text)
        sentences.append((text, german(meaning, draws)))
    return Document(name, topic.name, title, tuple(sentences))


def documents(seed: int = 0, count: int = DOCUMENTS) -> list[Document]:
    """Return documents, no two sentences of which are equal; equal seeds give equal documents."""
    seen: set[str] = set()
    result = []
    for index in range(count):
        topic = topics()[index % len(topics())]
        draws = Draws(f"document {seed} {index}")
        length = draws.between(40, 70) if index % LONG_EVERY == 0 else draws.between(8, 22)
        result.append(_document(f"{topic.name}-{index:04d}", topic, length, draws, seen))
    return result
