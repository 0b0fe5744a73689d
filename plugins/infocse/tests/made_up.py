"""Made-up documents whose words say where they stand, and the pairs of a miner."""

from typing import Any

from cse_testkit import make_part

from cse_defaults.texts import Corpus
from tests.fixtures.methods import round_context


def corpus_of(*sizes: int) -> Corpus:
    """Return documents of so many sentences, each with its number in it."""
    names = [f"d{n}" for n, size in enumerate(sizes) for _ in range(size)]
    return Corpus.from_columns(
        {
            "text": [f"word{i} of sentence {i}" for i in range(sum(sizes))],
            "document": names,
            "title": [f"title of {name}" for name in names],
        },
        name="made up",
    )


def mined(name: str, corpus: Corpus, **options: Any) -> Any:
    """Return the pairs of a miner's one round."""
    part = make_part("positives", name, **options)
    found = part.next_round(round_context(corpus))
    assert part.next_round(round_context(corpus)) is None
    return found.pairs


def numbers_in(text: str) -> list[int]:
    """Return the numbers of a text's sentences, in its order."""
    return [int(word[4:]) for word in text.replace("[SEP]", " ").split() if word[:4] == "word"]
