"""The starter corpus: size, shape, determinism, and pairs that the corpus never tells."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import time

import pytest
from cse_starter.corpus import WORDS, StarterCorpus
from cse_starter.draws import Draws
from cse_starter.english import inflect
from cse_starter.lexicon import Noun, Phrase, Topic, topics
from cse_starter.meaning import hearts
from cse_starter.pairs import COUNTS, DETAIL_SCORES, REWORDING

CHECKSUM = "564c6c59dbabe85e4f3db144f899da63571b0a6bd36eefb440d080be2af40863"


@pytest.fixture(scope="module")
def corpus() -> StarterCorpus:
    return StarterCorpus()


@pytest.fixture(scope="module")
def rows(corpus: StarterCorpus) -> list[dict[str, str]]:
    return list(corpus.rows())


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def test_rows_are_many_distinct_and_of_five_to_sixty_words(rows: list[dict[str, str]]) -> None:
    texts = [row["text"] for row in rows]
    assert len(texts) >= 20_000
    assert len(set(texts)) == len(texts)
    lengths = [len(text.split()) for text in texts]
    assert (min(lengths), max(lengths)) >= (5, 50)
    assert max(lengths) <= 60
    assert WORDS == (5, 60)
    assert sum(length < 10 for length in lengths) > 1000
    assert sum(length > 40 for length in lengths) > 500


def test_rows_have_every_column_and_document_order(rows: list[dict[str, str]]) -> None:
    assert all(set(row) == {"text", "document", "title", "fraternal"} for row in rows)
    assert all(value.strip() for row in rows for value in row.values())
    order = list(dict.fromkeys(row["document"] for row in rows))
    changes = 1 + sum(
        one["document"] != two["document"] for one, two in zip(rows, rows[1:], strict=False)
    )
    assert changes == len(order), "the sentences of a document must follow one another"


def test_documents_cover_the_topics_and_some_are_long(corpus: StarterCorpus) -> None:
    documents = corpus.documents()
    assert len({document.topic for document in documents}) == len(topics()) >= 12
    assert len({document.name for document in documents}) == len(documents)
    assert sum(len(document.sentences) >= 40 for document in documents) >= 40
    assert len({document.title for document in documents}) > 0.98 * len(documents)


def test_sentences_are_written_as_sentences(rows: list[dict[str, str]]) -> None:
    for row in rows:
        for text in (row["text"], row["fraternal"]):
            assert text[0].isupper() and text.endswith("."), text
            assert not re.search(r"[{}|/]|  | ,|\.\.|None", text), text


def test_german_is_german_and_keeps_names_and_cities(rows: list[dict[str, str]]) -> None:
    articles = {"der", "die", "das", "den", "dem"}
    finite = {"hat", "hatte", "war", "waren", "wurde", "wurden"}
    with_article = sum(bool(words(row["fraternal"]) & articles) for row in rows)
    with_verb = sum(bool(words(row["fraternal"]) & finite) for row in rows)
    assert with_article > 0.97 * len(rows)
    assert with_verb > 0.85 * len(rows)  # the lasting facts are in the present tense
    for name in ("Okafor", "Lindqvist", "Tanaka", "Hamburg", "Oslo"):
        for row in rows:
            if name in row["text"]:
                assert name in row["fraternal"], row


@pytest.mark.parametrize("topic", topics(), ids=lambda topic: topic.name)
def test_a_topic_has_several_hundred_words_and_complete_groups(topic: Topic) -> None:
    entries: list[Noun | Phrase] = [
        *topic.agents,
        *topic.verbs,
        *topic.states,
        *topic.places,
        *topic.manners,
    ]
    entries += [*topic.reasons, *topic.purposes, *topic.facts]
    entries += [noun for group in topic.groups.values() for noun in group]
    forms = [form for entry in entries for form in entry.forms]
    vocabulary = {word for form in forms for word in words(form)}
    assert len(vocabulary) > 230
    assert all(word.group in topic.groups for word in (*topic.verbs, *topic.states, *topic.manners))
    assert all(set(fact.groups) <= set(topic.groups) for fact in topic.facts)
    assert all(len(group) >= 10 for group in topic.groups.values())
    assert all(len(noun.forms) > 1 for group in topic.groups.values() for noun in group)
    for noun in topic.agents:
        assert noun.gender in "mfnw"
        if noun.gender == "w":
            assert noun.oblique != noun.german, noun.german


def test_hearts_of_the_splits_do_not_meet() -> None:
    for topic in topics():
        parts = [hearts(topic, split) for split in ("train", "dev", "test")]
        for word in parts[0]:
            things = [thing for part in parts for thing in part[word]]
            assert len(things) == len(set(things))
            assert all(len(part[word]) >= 2 for part in parts)


def test_no_row_tells_what_a_pair_tells(corpus: StarterCorpus, rows: list[dict[str, str]]) -> None:
    """Look for the held-out action and object in the words of short rows."""
    held_out = set()
    for topic in topics():
        for split in ("dev", "test"):
            for verb in topic.verbs:
                for thing in hearts(topic, split)[verb]:
                    for form in verb.forms:
                        past, participle, gerund = inflect(form)
                        for name in thing.forms:
                            held_out |= {f"{past} the {name}", f"{gerund} the {name}"}
                            held_out |= {f"the {name} was {participle} by"}
    agents = "|".join(sorted({form for t in topics() for a in t.agents for form in a.forms}))
    pattern = re.compile(rf"^The (?:{agents}) (.+)\.$")
    found = [row for row in rows if (match := pattern.match(row["text"])) and match[1] in held_out]
    known = {
        f"{inflect(form)[0]} the {name}"
        for topic in topics()
        for verb in topic.verbs
        for thing in hearts(topic, "train")[verb]
        for form in verb.forms
        for name in thing.forms
    }
    for row in found:  # a wording that two different meanings share is not a leak
        match = pattern.match(row["text"])
        assert match is not None and match[1] in known, row


def test_pairs_are_many_disjoint_and_scored_by_kind(
    corpus: StarterCorpus, rows: list[dict[str, str]]
) -> None:
    printed = {row["text"] for row in rows}
    sides: dict[str, set[str]] = {}
    for split in ("dev", "test"):
        pairs = corpus.pairs(split)
        assert len(pairs) == sum(COUNTS.values()) >= 1000
        sides[split] = {pair[side] for pair in pairs for side in ("sentence1", "sentence2")}
        assert not sides[split] & printed
        for kind, count in COUNTS.items():
            scores = {pair["score"] for pair in pairs if pair["subset"] == kind}
            assert sum(pair["subset"] == kind for pair in pairs) == count
            fixed = {"paraphrase": {5.0}, "negated": {2.0}, "same-topic": {1.0}, "unrelated": {0.0}}
            assert scores == fixed.get(kind, set(DETAIL_SCORES.values()))
        assert all(pair["sentence1"] != pair["sentence2"] for pair in pairs)
    assert not sides["dev"] & sides["test"]


def test_word_overlap_does_not_give_the_score_away(corpus: StarterCorpus) -> None:
    overlap: dict[str, list[float]] = {kind: [] for kind in COUNTS}
    for pair in corpus.pairs("test"):
        one, two = words(pair["sentence1"]), words(pair["sentence2"])
        overlap[pair["subset"]].append(len(one & two) / len(one | two))
    mean = {kind: sum(values) / len(values) for kind, values in overlap.items()}
    assert set(REWORDING) == {"paraphrase", "detail", "negated"}
    assert mean["paraphrase"] < mean["detail"] + 0.1, "5 must not stand out by shared words"
    assert mean["paraphrase"] < mean["negated"] + 0.1
    high = sum(value > 0.3 for value in overlap["negated"] + overlap["detail"])
    low = sum(value < 0.3 for value in overlap["paraphrase"])
    assert high > 0.3 * (COUNTS["negated"] + COUNTS["detail"])
    assert low > 0.3 * COUNTS["paraphrase"]


def test_pairs_refuse_an_unknown_split(corpus: StarterCorpus) -> None:
    with pytest.raises(ValueError, match="'train'"):
        corpus.pairs("train")


def _digest(corpus: StarterCorpus) -> str:
    content = [list(corpus.rows()), corpus.pairs("dev"), corpus.pairs("test")]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


def test_output_is_the_same_everywhere(corpus: StarterCorpus) -> None:
    assert _digest(corpus) == CHECKSUM, "the corpus changed: put the new sum here, say so in README"


def test_output_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "import hashlib, json; from cse_starter.corpus import StarterCorpus;"
        "c = StarterCorpus(documents=30);"
        "print(hashlib.sha256(json.dumps([list(c.rows()), c.pairs('dev')]).encode()).hexdigest())"
    )
    sums = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(sums) == 1


def test_another_seed_gives_another_corpus() -> None:
    one, two = (list(StarterCorpus(seed, documents=20).rows()) for seed in (0, 1))
    assert {row["text"] for row in one} != {row["text"] for row in two}


def test_generation_is_quick() -> None:
    start = time.process_time()
    corpus = StarterCorpus(seed=7)
    list(corpus.rows()), corpus.pairs("dev"), corpus.pairs("test")
    assert time.process_time() - start < 10


def test_draws_keep_to_their_bounds() -> None:
    draws = Draws("bounds")
    assert {draws.between(2, 4) for _ in range(100)} == {2, 3, 4}
    assert sorted(draws.shuffled(range(9))) == list(range(9))
    assert draws.other("ab", "a") == "b"
    assert len(set(draws.some(range(9), 4))) == 4


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("slice", ("sliced", "sliced", "slicing")),
        ("cut up", ("cut up", "cut up", "cutting up")),
        ("dry", ("dried", "dried", "drying")),
        ("trim", ("trimmed", "trimmed", "trimming")),
        ("write about", ("wrote about", "written about", "writing about")),
        ("play", ("played", "played", "playing")),
    ],
)
def test_verbs_are_inflected(verb: str, forms: tuple[str, str, str]) -> None:
    assert inflect(verb) == forms
