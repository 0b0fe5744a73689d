"""Negate an English sentence by rules: no model, no draws, the same for the same text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cse_sncse import lexicon as lex
from cse_sncse.clause import main_verb
from cse_sncse.neighbours import inverted
from cse_sncse.readings import FiniteVerb
from cse_sncse.words import Word, sentences, split_words

_DENIAL = re.compile(
    r"\b(?:not|never|no|nor|neither|nobody|nothing|nowhere|cannot)\b|n['’]t\b", re.IGNORECASE
)


def negate(text: str) -> str:
    """Return the negated text.

    A sentence that denies something no longer does: the first ``not``, ``n't``, ``never``, ``no``
    … outside quotes goes. Otherwise the finite verb of the main clause is negated: an auxiliary or
    form of be takes ``not``, another verb takes do-support in its own tense and person, an
    imperative ``do not``. Of several sentences the first that has a verb is changed. A text in
    which no verb is found gets ``Not`` in front. A text without a letter or digit stays.

    SNCSE (Wang and Dou, 2023), section 3.1, does the same by dependency parsing.
    """
    words = split_words(text)
    if not any(word.text[0].isalnum() for word in words):
        return text
    changed = without_negation(text, words)
    if changed is not None:
        return changed
    for sentence in sentences(words):
        verb = main_verb(sentence)
        if verb is not None:
            return negate_verb(text, sentence, verb)
    return prefixed(text, words)


def negate_verb(text: str, words: Sequence[Word], verb: FiniteVerb) -> str:
    """Return the text with its finite verb negated.

    Args:
        text: The text.
        words: Words of the sentence.
        verb: A verb of it.
    """
    word = words[verb.place]
    shouted = word.text.isupper() and len(word.text) > 1
    if verb.form == "auxiliary":
        return _after_auxiliary(text, words, verb.place, shouted)
    if verb.form == "imperative":
        first = "Do not" if word.is_capital else "do not"
        base = word.low
    else:
        first = {"past": "did not", "third": "does not", "base": "do not"}[verb.form]
        first = first.capitalize() if word.is_capital else first
        base = verb.base
    negated = f"{first} {base}"
    return text[: word.start] + (negated.upper() if shouted else negated) + text[word.end :]


def prefixed(text: str, words: Sequence[Word]) -> str:
    """Return the text with ``Not`` in front, its first word small where it needs no capital."""
    first = next((word for word in words if word.is_word), None)
    if first is not None and first.low in lex.FUNCTION_WORDS and not text.isupper():
        text = text[: first.start] + first.text[0].lower() + text[first.start + 1 :]
    start = words[0].start
    return f"{text[:start]}{'NOT' if text.isupper() else 'Not'} {text[start:]}"


def _after_auxiliary(text: str, words: Sequence[Word], place: int, shouted: bool) -> str:
    word = words[place]
    at = word.end
    later = words[place + 1] if place + 1 < len(words) else None
    if later is not None and any(each.text == "?" for each in words) and inverted(words, place):
        short = lex.CONTRACTED.get(word.low)
        if later.low in lex.SUBJECTS:
            at = later.end
        elif short is not None:
            end = short.upper() if shouted else short
            if word.is_capital and not shouted:
                end = end.capitalize()
            return text[: word.start] + end + text[word.end :]
    elif word.low in {"had", "'d"} and later is not None and later.low == "better":
        at = later.end
    gap = "" if at == word.end and word.low == "can" else " "
    return f"{text[:at]}{gap}{'NOT' if shouted else 'not'}{text[at:]}"


# -- sentences that deny something ----------------------------------------------------------------


def without_negation(text: str, words: Sequence[Word]) -> str | None:
    """Return the text without its first negation; None where it has none, or nothing else."""
    if _DENIAL.search(text) is None:
        return None
    changed = _first_undone(text, words)
    return changed if changed is not None and any(map(str.isalnum, changed)) else None


def _first_undone(text: str, words: Sequence[Word]) -> str | None:
    for place, word in enumerate(words):
        if word.opaque:
            continue
        if word.low.endswith("n't"):
            return _without_contraction(text, words, place)
        if word.low == "cannot":
            return text[: word.start + 3] + text[word.end :]
        if word.low in lex.POSITIVE_PRONOUNS:
            return _without_pronoun(text, words, place)
        if word.low == "never" or (word.low == "not" and not _idiom(words, place)):
            return _cut(text, words, place)
        if word.low == "no" and _denies(words, place):
            if words[place + 1].low == "one":
                some = "Someone" if word.is_capital else "someone"
                return text[: word.start] + some + text[words[place + 1].end :]
            last = place + 1 if words[place + 1].low == "longer" else place
            return _cut(text, words, place, last)
    return None


def _without_contraction(text: str, words: Sequence[Word], place: int) -> str:
    word = words[place]
    later = words[place + 1].low if place + 1 < len(words) else ""
    before = [each for each in words[:place] if each.is_word]
    if word.low == "don't" and word.is_capital and not before and later not in lex.SUBJECTS:
        return _cut(text, words, place)
    if word.low == "ain't":
        whom = before[-1].low if before else ""
        plain = "am" if whom == "i" else "are" if whom in {"we", "you", "they"} else "is"
    else:
        plain = lex.SHORTENED.get(word.low, word.low[:-3])
    if word.text.isupper():
        plain = plain.upper()
    elif word.is_capital:
        plain = plain.capitalize()
    return text[: word.start] + plain + text[word.end :]


def _without_pronoun(text: str, words: Sequence[Word], place: int) -> str:
    positive = lex.POSITIVE_PRONOUNS
    pair = words[place].low == "neither"
    for word in reversed(words[place:]):
        if word is words[place] or (pair and word.low == "nor"):
            some = positive[word.low]
            some = some.capitalize() if word.is_capital else some
            text = text[: word.start] + some + text[word.end :]
    return text


def _idiom(words: Sequence[Word], place: int) -> bool:
    """Return whether ``not`` stands in a phrase that denies nothing: not only, or not."""
    after = words[place + 1].low if place + 1 < len(words) else ""
    before = words[place - 1].low if place else ""
    return lex.IDIOMS_OF_NOT.get(after) == "after" or lex.IDIOMS_OF_NOT.get(before) == "before"


def _denies(words: Sequence[Word], place: int) -> bool:
    """Return whether ``no`` is a determiner: neither an answer nor short for number."""
    if place + 1 >= len(words) or (place and words[place - 1].low in {"or", "say", "says", "said"}):
        return False
    after = words[place + 1]
    return after.is_word and after.low not in lex.AFTER_NO and after.low not in lex.CONJUNCTIONS


def _cut(text: str, words: Sequence[Word], first: int, last: int | None = None) -> str:
    """Return the text without some words and one space; a capital letter goes to what follows."""
    last = first if last is None else last
    start, end = words[first].start, words[last].end
    if start and text[start - 1].isspace():
        return text[: start - 1] + text[end:]
    while end < len(text) and text[end].isspace():
        end += 1
    rest = text[end:]
    if words[first].is_capital and rest:
        rest = rest[0].upper() + rest[1:]
    return text[:start] + rest
