"""Negate an English sentence by rules: no model, no draws, the same for the same text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cse_sncse import lexicon as lex
from cse_sncse.clause import main_verb
from cse_sncse.denials import first_negation, undone, without_main_negation
from cse_sncse.fragments import place_of_not
from cse_sncse.neighbours import inverted
from cse_sncse.readings import FiniteVerb
from cse_sncse.words import Word, sentences, split_words

_APART = re.compile(r"\w ['’] ?(?:s|t|re|m|ve|ll|d)\b")
"""A contraction taken to pieces, of which it is not clear what it was."""
_TAG = re.compile(
    r", (?:\w+n['’]t|do|does|did|is|are|was|were|can|will|would|have|has|had) \w+ ?\?\s*$"
)
"""A question behind a statement, which must change with it."""
_THE_MORE = re.compile(r"the (?:more|less|\w+er)\b.*,? the (?:more|less|\w+er)\b", re.IGNORECASE)
"""Two clauses that grow with each other."""


def negate(text: str) -> str | None:
    """Return the negated text; None where the rules are not sure how to negate it.

    The finite verb of the main clause is negated: an auxiliary or form of be takes ``not``, another
    verb takes do-support in its own tense and person, an imperative ``do not``. Where the main
    clause denies something, its first ``not``, ``n't``, ``never``, ``no`` … goes instead. Of
    several sentences the first that has a verb is changed. In a text without a finite verb a
    participle takes ``not`` ("A man not climbing a cliff"); a noun phrase has ``Not`` in front.

    SNCSE (Wang and Dou, 2023), section 3.1, does the same by dependency parsing.
    """
    words = split_words(text)
    if not any(word.text[0].isalnum() for word in words) or _unclear(text):
        return None
    for sentence in sentences(words):
        reading = main_verb(sentence)
        if reading.verb is None and reading.certain:
            continue
        if in_title_case(sentence):
            return None
        if reading.verb is None:
            return _verbless(text, words, nouns=False)
        return _main_clause(text, sentence, reading.verb) if reading.certain else None
    return _verbless(text, words)


def _unclear(text: str) -> bool:
    """Return whether a text has a form that the rules do not know."""
    if ("'" in text or "’" in text) and _APART.search(text) is not None:
        return True
    return ("?" in text and _TAG.search(text) is not None) or _THE_MORE.match(text) is not None


def _main_clause(text: str, words: Sequence[Word], verb: FiniteVerb) -> str | None:
    denied, changed = without_main_negation(text, words, verb)
    return changed if denied else negate_verb(text, words, verb)


def _verbless(text: str, words: Sequence[Word], *, nouns: bool = True) -> str | None:
    denial = first_negation(text, words)
    if denial is not None and len(words) > 2:
        if not nouns:
            return None
        before = words[denial - 1].text if denial else ":"
        goes = words[denial].low == "not" or before in {":", "-", "–", "—"}
        return undone(text, words, denial) if goes else None
    if in_title_case(words):
        return None
    place = place_of_not(words, nouns=nouns)
    if place is None:
        return None
    if place == 0:
        return prefixed(text, words)
    start = words[place].start
    return f"{text[:start]}{'NOT' if text.isupper() else 'not'} {text[start:]}"


def in_title_case(words: Sequence[Word]) -> bool:
    """Return whether a text has capitals on all words but the smallest, as some headlines have."""
    if any(word.text in {".", "?", "!"} for word in words[-2:]):
        return False
    large = [w for w in words if w.is_word and w.low not in lex.FUNCTION_WORDS and len(w.text) > 1]
    capital = len(large) > 3 and all(word.is_capital for word in large)
    return capital and not all(word.text.isupper() for word in large)


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
    start = words[_scope(words, verb.place)].start if verb.form != "imperative" else word.start
    between = text[start : word.start]
    if shouted:
        first, base = first.upper(), base.upper()
    return f"{text[:start]}{first} {between}{base}{text[word.end :]}"


def _scope(words: Sequence[Word], place: int) -> int:
    """Return where ``did not`` stands: before adverbs of manner, "did not quickly leave"."""
    first = place
    while first > 1:
        low = words[first - 1].low
        manner = low.endswith("ly") and lex.is_adverb(low) and low not in lex.TEMPORAL
        if not (manner or low in lex.SCOPED) or not words[first - 2].is_word:
            break
        first -= 1
    return place if words[first - 1].low in lex.DEGREES else first


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
    asks = later is not None and any(each.text == "?" for each in words)
    before = words[place - 1] if place else None
    turned = before is None or not before.is_word or before.low in lex.WH | lex.CONJUNCTIONS
    if asks and turned and later is not None and later.low in lex.SUBJECTS:
        at = later.end
    elif asks and later is not None and inverted(words, place):
        short = lex.CONTRACTED.get(word.low)
        if later.low in lex.SUBJECTS:
            at = later.end
        elif short is not None:
            end = short.upper() if shouted else short
            if word.is_capital and not shouted:
                end = end.capitalize()
            return text[: word.start] + end + text[word.end :]
    elif later is not None and (
        later.low in lex.EPISTEMIC or (later.low == "also" and word.low not in lex.MODALS)
    ):
        at = later.end
    elif word.low in {"had", "'d"} and later is not None and later.low == "better":
        at = later.end
    gap = "" if at == word.end and word.low == "can" else " "
    return f"{text[:at]}{gap}{'NOT' if shouted else 'not'}{text[at:]}"
