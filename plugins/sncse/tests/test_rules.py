"""The rules of negation on sentences of every kind, written for this test."""

import random

from cse_sncse.rules import negate

CASES = {
    "auxiliaries and modals": [
        ("The dog is barking.", "The dog is not barking."),
        ("She had already left.", "She had not already left."),
        ("It was built in 1905, by a carpenter.", "It was not built in 1905, by a carpenter."),
        ("She can swim well.", "She cannot swim well."),
        ("He's tired.", "He's not tired."),
        ("It’s raining.", "It’s not raining."),
        ("In May 2010 he died.", "In May 2010 he did not die."),
        ("Will Smith is an actor.", "Will Smith is not an actor."),
        ("He found a can of paint.", "He did not find a can of paint."),
    ],
    "do-support": [
        ("He went home.", "He did not go home."),
        ("They stopped the car.", "They did not stop the car."),
        ("She studies law.", "She does not study law."),
        ("Dogs bark at night.", "Dogs do not bark at night."),
        ("Mary and John love music.", "Mary and John do not love music."),
        ("I like tea.", "I do not like tea."),
        ("He has a dog.", "He does not have a dog."),
        ("John's dog barked loudly.", "John's dog did not bark loudly."),
        ("Open the door.", "Do not open the door."),
    ],
    "questions": [
        ("Is it raining?", "Is it not raining?"),
        ("What did she say?", "What did she not say?"),
        ("Who came?", "Who did not come?"),
        ("How to paint a boat?", None),
        ("You like it, don't you?", None),
    ],
    "clauses": [
        ("If it is raining, we stay at home.", "If it is raining, we do not stay at home."),
        ("When the war ended he returned.", "When the war ended he did not return."),
        ("The man who was here left.", "The man who was here did not leave."),
        ("The house built in 1990 fell.", "The house built in 1990 did not fall."),
        ("The boats he painted are red.", "The boats he painted are not red."),
        ("The Demons, led by Dupuy, played well.", "The Demons, led by Dupuy, did not play well."),
        ('"They are late," Anna said.', '"They are late," Anna did not say.'),
        ("Anna (who is ill) left.", "Anna (who is ill) did not leave."),
        ("The road to the towns ends here.", "The road to the towns does not end here."),
    ],
    "denials": [
        ("It isn't cold.", "It is cold."),
        ("He won't come.", "He will come."),
        ("She doesn’t like it.", "She does like it."),
        ("You cannot park here.", "You can park here."),
        ("He never came back.", "He came back."),
        ("There is no evidence.", "There is some evidence."),
        ("No dogs barked.", "Dogs barked."),
        ("Nobody came.", "Somebody came."),
        ("He no longer works here.", "He works here."),
        ("No, he left.", "No, he did not leave."),
        ("He wrote it in No. 5 Baker Street.", "He did not write it in No. 5 Baker Street."),
        ("She asked whether or not he knew.", "She did not ask whether or not he knew."),
        ("If you can't come, we wait.", "If you can't come, we do not wait."),
        ("He is not only late but wet.", None),
    ],
    "no finite verb": [
        ("A dog chasing a cat", "A dog not chasing a cat"),
        ("Audi to buy a motorcycle maker", "Audi not to buy a motorcycle maker"),
        ("10 killed in road accident", "10 not killed in road accident"),
        ("A red boat", "Not a red boat"),
        ("Storm Sinks Three Ferries In Malta", None),
        ("", None), ("...", None),
    ],
    "spaces and marks stay": [
        ("  He  went   home .  ", "  He  did not go   home .  "),
        ("It was late;he left", "It was not late;he left"),
        ("Mr. Smith was late. He is sorry.", "Mr. Smith was not late. He is sorry."),
    ],
}  # fmt: skip


def test_sentences_of_every_kind() -> None:
    pairs = [pair for kind in CASES.values() for pair in kind]
    found = [(text, negate(text)) for text, _ in pairs]
    assert [each for each in found if each not in pairs] == []


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
