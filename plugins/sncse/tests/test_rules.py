"""The rules of negation on sentences of every kind, written for this test."""

import random
from pathlib import Path

from cse_sncse.rules import negate

CASES = Path(__file__).with_name("negations.tsv")
"""Kind, sentence and its negation, ``-`` where there is none."""


def test_sentences_of_every_kind() -> None:
    cases = [line.split("\t")[1:] for line in CASES.read_text("utf-8").splitlines()]
    assert len(cases) == 56
    found = [[text, negate(text) or "-"] for text, _ in cases]
    assert [each for each in found if each not in cases] == []


WORDS = (
    "he dog dogs is was went said that who which if , . \" ( ) not no never can't open the a old "
    "red in by had has do did does will ? let 's and walked paints to be"
).split()
LETTERS = "aeinostNO'’\"“”(). ,?!-5"
ANY = range(0x3000), range(0x3000, 0xD800), range(0xE000, 0x110000)


def test_any_text_is_taken_and_none_is_its_own_negation() -> None:
    draws = random.Random(0)
    for count in range(1000):
        text = " ".join(draws.choices(WORDS, k=draws.randint(0, 14)))
        if count % 2:
            letters = [*LETTERS, *(chr(draws.choice(draws.choice(ANY))) for _ in range(14))]
            text = "".join(draws.choices(letters, k=draws.randint(0, 14)))
        negated = negate(text)
        assert negated == negate(text) != text, text
        if not any(letter.isalnum() for letter in text):
            assert negated is None, text
