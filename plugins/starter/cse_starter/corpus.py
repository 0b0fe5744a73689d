"""The starter corpus: synthetic documents with titles, parallel German, and graded pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from cse_starter.draws import Draws
from cse_starter.english import Wording, english
from cse_starter.german import german
from cse_starter.lexicon import Topic, common, topics
from cse_starter.meaning import Cast, draw_sentence
from cse_starter.pairs import ScoredPair, graded_pairs

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


@cache
def _documents(seed: int, count: int) -> tuple[Document, ...]:
    seen: set[str] = set()
    result = []
    for index in range(count):
        topic = topics()[index % len(topics())]
        draws = Draws(f"document {seed} {index}")
        length = draws.between(40, 70) if index % LONG_EVERY == 0 else draws.between(8, 22)
        result.append(_document(f"{topic.name}-{index:04d}", topic, length, draws, seen))
    return tuple(result)


class StarterCorpus:
    """Synthetic texts of a seeded grammar: for trying things, not for measuring progress.

    Args:
        seed: Seed of all draws; the default is the corpus that the toolkit's own numbers are from.
        documents: How many documents to make.
    """

    def __init__(self, seed: int = 0, documents: int = DOCUMENTS) -> None:
        """Remember the seed; nothing is generated before it is asked for."""
        self.seed = seed
        self.count = documents

    def documents(self) -> tuple[Document, ...]:
        """Return the documents, generated once in a process."""
        return _documents(self.seed, self.count)

    def rows(self) -> Iterator[dict[str, str]]:
        """Yield one row a sentence in document order: text, document, title, fraternal (German)."""
        for document in self.documents():
            for text, fraternal in document.sentences:
                yield {
                    "text": text,
                    "document": document.name,
                    "title": document.title,
                    "fraternal": fraternal,
                }

    def pairs(self, split: str) -> list[ScoredPair]:
        """Return the graded pairs of a split.

        Their meanings (which action is done to which thing) occur in no row, in whatever words.

        Raises:
            ValueError: If `split` is not dev or test.
        """
        if split not in ("dev", "test"):
            raise ValueError(f"split must be dev or test, not {split!r}")
        return graded_pairs(split, self.seed)
