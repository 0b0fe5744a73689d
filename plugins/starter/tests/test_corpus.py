"""The starter texts: those of the grammar, well formed, and pairs that no row says."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cse_starter.corpus import StarterCorpus

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from grammar.documents import WORDS, documents  # noqa: E402
from grammar.english import inflect  # noqa: E402
from grammar.lexicon import Noun, Phrase, topics  # noqa: E402
from grammar.meaning import hearts  # noqa: E402
from grammar.pairs import COUNTS, DETAIL_SCORES  # noqa: E402
from make_texts import made  # noqa: E402

CHECKSUM = "564c6c59dbabe85e4f3db144f899da63571b0a6bd36eefb440d080be2af40863"
Texts = dict[str, list[Any]]


@pytest.fixture(scope="module")
def texts() -> Texts:
    corpus = StarterCorpus()
    return {"rows": [*corpus.rows()], "dev": corpus.pairs("dev"), "test": corpus.pairs("test")}


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def test_they_are_what_the_grammar_makes(texts: Texts) -> None:
    content = json.dumps([*texts.values()], ensure_ascii=False).encode()
    assert hashlib.sha256(content).hexdigest() == CHECKSUM, "another corpus: say so in README"
    assert made() == texts
    one, other = ([each.sentences for each in documents(seed, 20)] for seed in (0, 1))
    assert not {*one} & {*other}


def test_rows_are_sentences_with_every_column_in_document_order(texts: Texts) -> None:
    rows = texts["rows"]
    assert len({row["text"] for row in rows}) == len(rows) >= 20_000
    lengths = Counter(len(row["text"].split()) for row in rows)
    assert (min(lengths), max(lengths)) == WORDS == (5, 60)
    for row in rows:
        assert [*row] == ["text", "document", "title", "fraternal"] and row["title"].strip()
        for text in (row["text"], row["fraternal"]):
            assert text[0].isupper() and text.endswith("."), text
            assert not re.search(r"[{}|/]|  | ,|\.\.|None", text), text
    order = [row["document"] for row in rows]
    changes = 1 + sum(one != two for one, two in zip(order, order[1:], strict=False))
    sizes = Counter(order)
    assert changes == len(sizes) == 1400 and sum(size >= 40 for size in sizes.values()) >= 40
    assert len({row["title"] for row in rows}) > 0.98 * len(sizes)


def test_german_is_german_and_keeps_names_and_cities(texts: Texts) -> None:
    rows, articles = texts["rows"], {"der", "die", "das", "den", "dem"}
    assert sum(bool(words(row["fraternal"]) & articles) for row in rows) > 0.97 * len(rows)
    for name in ("Okafor", "Lindqvist", "Tanaka", "Hamburg", "Oslo"):
        assert all(name in row["fraternal"] for row in rows if name in row["text"])


def test_topics_are_complete() -> None:
    assert len(topics()) >= 12
    for topic in topics():
        entries: list[Noun | Phrase] = [*topic.agents, *topic.verbs, *topic.states, *topic.places]
        entries += [*topic.manners, *topic.reasons, *topic.purposes, *topic.facts]
        entries += [noun for group in topic.groups.values() for noun in group]
        assert len({word for each in entries for form in each.forms for word in words(form)}) > 230
        for word in (*topic.verbs, *topic.states, *topic.manners):
            assert word.group in topic.groups, word
        assert all(set(fact.groups) <= set(topic.groups) for fact in topic.facts)
        for group in topic.groups.values():
            assert len(group) >= 10 and all(len(noun.forms) > 1 for noun in group)
        for noun in topic.agents:
            assert noun.gender in "mfn" or noun.oblique != noun.german, noun.german


def test_no_row_says_what_a_pair_says(texts: Texts) -> None:
    """Look for the held-out action and object in the words of short rows."""
    said: dict[str, set[str]] = {split: set() for split in ("train", "dev", "test")}
    for topic in topics():
        parts = {split: hearts(topic, split) for split in said}
        for word in parts["train"]:
            things = [thing for part in parts.values() for thing in part[word]]
            assert len(things) == len(set(things)) and all(
                len(p[word]) >= 2 for p in parts.values()
            )
        for split, part in parts.items():
            for verb in topic.verbs:
                for name in (form for thing in part[verb] for form in thing.forms):
                    said[split] |= {f"{inflect(form)[0]} the {name}" for form in verb.forms}
    agents = "|".join(sorted({form for t in topics() for a in t.agents for form in a.forms}))
    pattern = re.compile(rf"^The (?:{agents}) (.+)\.$")
    found = {match[1] for row in texts["rows"] if (match := pattern.match(row["text"]))}
    assert len(found & said["train"]) > 100
    # a wording that two different meanings share is not a leak
    assert not (found & (said["dev"] | said["test"])) - said["train"]


def test_pairs_are_many_disjoint_and_scored_by_kind(texts: Texts) -> None:
    printed = {row["text"] for row in texts["rows"]}
    fixed = {"paraphrase": {5.0}, "negated": {2.0}, "same-topic": {1.0}, "unrelated": {0.0}}
    sides = {}
    for split in ("dev", "test"):
        pairs = texts[split]
        sides[split] = {pair[side] for pair in pairs for side in ("sentence1", "sentence2")}
        assert Counter(pair["subset"] for pair in pairs) == COUNTS
        for kind in COUNTS:
            scores = {pair["score"] for pair in pairs if pair["subset"] == kind}
            assert scores == fixed.get(kind, set(DETAIL_SCORES.values()))
        assert all(pair["sentence1"] != pair["sentence2"] for pair in pairs)
    assert not sides["dev"] & sides["test"] and not (sides["dev"] | sides["test"]) & printed
    with pytest.raises(ValueError, match="'train'"):
        StarterCorpus().pairs("train")


def test_word_overlap_does_not_give_the_score_away(texts: Texts) -> None:
    overlap: dict[str, list[float]] = {kind: [] for kind in COUNTS}
    for pair in texts["test"]:
        one, two = words(pair["sentence1"]), words(pair["sentence2"])
        overlap[pair["subset"]].append(len(one & two) / len(one | two))
    mean = {kind: sum(values) / len(values) for kind, values in overlap.items()}
    assert mean["paraphrase"] < min(mean["detail"], mean["negated"]) + 0.1
    high = sum(value > 0.3 for value in overlap["negated"] + overlap["detail"])
    low = sum(value < 0.3 for value in overlap["paraphrase"])
    assert high > 0.3 * (COUNTS["negated"] + COUNTS["detail"])
    assert low > 0.3 * COUNTS["paraphrase"]


def test_verbs_are_inflected() -> None:
    for verb, *forms in (
        ("slice", "sliced", "sliced", "slicing"),
        ("cut up", "cut up", "cut up", "cutting up"),
        ("dry", "dried", "dried", "drying"),
        ("trim", "trimmed", "trimmed", "trimming"),
        ("write about", "wrote about", "written about", "writing about"),
        ("play", "played", "played", "playing"),
    ):
        assert [*inflect(verb)] == forms
