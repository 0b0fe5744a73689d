"""Words of closed classes: auxiliaries, pronouns, determiners, prepositions, conjunctions."""

from __future__ import annotations


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


BE = _set("am is are was were")
HAVE = _set("have has had")
DO = _set("do does did")
MODALS = _set("can could may might must shall should will would ought")
AUXILIARIES = BE | HAVE | DO | MODALS
CLITICS = _set("'re 'm 've 'll 'd")
"""Clitics that are always an auxiliary; ``'s`` may be a possessive."""
NOT_FINITE = _set("be been being having doing")

CONTRACTED = {
    "is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't",
    "do": "don't", "does": "doesn't", "did": "didn't",
    "have": "haven't", "has": "hasn't", "had": "hadn't",
    "can": "can't", "could": "couldn't", "will": "won't", "would": "wouldn't",
    "should": "shouldn't", "must": "mustn't",
}  # fmt: skip
"""Negated auxiliaries that may stand before a subject."""
SHORTENED = {"can't": "can", "won't": "will", "shan't": "shall"}
"""Negated auxiliaries that are more than the auxiliary and n't."""
POSITIVE_PRONOUNS = {
    "nobody": "somebody", "nothing": "something", "nowhere": "somewhere",
    "neither": "either", "nor": "or",
}  # fmt: skip
"""Negative words and what stands in their place."""

SUBJECTS = _set("i you he she it we they there")
PLURAL_SUBJECTS = _set("i you we they these those")
SINGULAR_SUBJECTS = _set(
    "he she it this that who which everyone everybody someone somebody one each everything "
    "something"
)
OBJECTS = _set("me him her it us them you yourself yourselves myself this that these those")
BEFORE_S = _set("he she it that there here what who where how when why this one everyone let")
"""Words behind which ``'s`` is an auxiliary."""
DETERMINERS = _set(
    "a an the my your his her its our their this that these those some any every each no another "
    "whose both all many much few several most more various such 's first second third last own "
    "same other only two three four five six seven eight nine ten"
)
NUMBERS = _set("two three four five six seven eight nine ten all both others")
ARTICLES = _set("a an the my your his her its our their every no 's")
PREPOSITIONS = _set(
    "of in on at by for from with to into onto over under between among through during about "
    "against near per via upon within without toward towards across along behind beside besides "
    "beyond despite except inside outside than like as amid around above below until since"
)
BEHIND_PARTICIPLE = _set("by in on at from for with as of")
CONJUNCTIONS = _set("and or but nor yet so plus")
ADJECTIVES = _set(
    "new old young big small large great good bad high low long short early late main major minor "
    "local national public private free full final common general special recent current former "
    "many few red blue green black white brown golden german french english american british "
    "european international social political military different important own strong true real "
    "official different excited various tin"
)
ADVERBS = _set(
    "also often always usually still then now soon later once just even again sometimes ever never "
    "already thus therefore however there here first twice both all perhaps maybe almost rather "
    "only further together instead otherwise not"
)
DEGREES = _set("most more very quite so too less")
"""Words that go with the adverb behind them."""
PLACES = _set("here there then now")
"""Adverbs that end a group of an auxiliary and its participles."""
NOT_ADVERBS = _set("family only italy july supply apply reply assembly italy rely belly bully fly")
"""Words that end in -ly and are no adverbs of manner."""
PLURALS = _set("people men women children police feet teeth mice geese cattle fish sheep")
TURNING = _set("bear go keep steer swing turn veer")
"""Verbs behind which ``left`` is a direction."""
WH = _set("who what when where why how which whom whose")
RELATIVES = _set("who which whom whose where when while because if although though unless whereas")
OPENERS = _set(
    "if when while although though because since after before as unless until whereas once "
    "whenever wherever despite during following"
)
"""Words that open a clause or phrase which a comma ends, before the main clause."""
IDIOMS_OF_NOT = {
    "only": "after", "least": "after", "or": "before", "if": "before", "why": "before",
}  # fmt: skip
"""Neighbours of ``not`` with which it denies nothing: not only, not least, or not, if not."""
AFTER_NO = _set("less fewer later other matter sooner doubt")
"""Words behind ``no`` in phrases that deny nothing."""
FUNCTION_WORDS = (
    SUBJECTS | OBJECTS | DETERMINERS | PREPOSITIONS | CONJUNCTIONS | OPENERS | WH | ADVERBS
) - {"i"}
"""Words that need no capital letter inside a sentence."""


def is_adverb(low: str) -> bool:
    """Return whether a word may stand between a subject and its verb."""
    return low in ADVERBS or (len(low) > 4 and low.endswith("ly") and low not in NOT_ADVERBS)
