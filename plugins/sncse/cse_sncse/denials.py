"""Sentences that deny something: which negation is the main clause's, and the text without it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cse_sncse import lexicon as lex
from cse_sncse.readings import FiniteVerb
from cse_sncse.words import Word

_DENIAL = re.compile(
    r"\b(?:not|never|no|nor|neither|nobody|nothing|nowhere|none|cannot|[a-z]{2,6}nt)\b|n['’]t\b",
    re.IGNORECASE,
)


def first_negation(text: str, words: Sequence[Word]) -> int | None:
    """Return the place of the first word that denies something; None where none does."""
    if _DENIAL.search(text) is None:
        return None
    return next(_negations(words, 0, len(words)), None)


def without_negation(text: str, words: Sequence[Word]) -> str | None:
    """Return the text without its first negation; None where it has none, or nothing else."""
    place = first_negation(text, words)
    return None if place is None else undone(text, words, place)


def without_main_negation(
    text: str, words: Sequence[Word], verb: FiniteVerb
) -> tuple[bool, str | None]:
    """Return whether the main clause denies something, and the text without that negation.

    The negation of the verb is taken first, then one of its subject, then one behind the verb
    before the next clause. Where a negation is left of which it is not clear what it denies, the
    text is None.

    Args:
        text: The text.
        words: Words of the sentence.
        verb: The finite verb of its main clause.
    """
    if _DENIAL.search(text) is None:
        return False, None
    at = verb.place
    end = _end_of_group(words, at)
    if any(words[p].low == "not" and _idiom(words, p) == "only" for p in range(at, end)):
        return True, None
    if words[at].low in lex.DENIED or words[at].low.endswith("n't"):
        return True, _mended(undone(text, words, at), words, at)
    first = at
    while first > 0 and (lex.is_adverb(words[first - 1].low) or words[first - 1].low == "longer"):
        first -= 1
    if first > 0 and words[first].low == "longer":
        first -= 1
    place = next(_negations(words, first, end), None)
    if place is None:
        place = _of_subject(words, at)
    if place is None:
        place = next(_negations(words, end, _end_of_clause(words, end)), None)
        if place is not None and any(
            words[p].low in lex.JOINING or words[p].text in ",;" for p in range(end, place)
        ):
            return True, None
    if place is None:
        return _unclear(words, end), None
    return True, _mended(undone(text, words, place), words, place)


def _unclear(words: Sequence[Word], end: int) -> bool:
    """Return whether a ``no`` of another kind stands in the main clause: "little to no"."""
    return any(words[p].low == "no" and words[p - 1].low == "to" for p in range(end, len(words)))


def _mended(text: str | None, words: Sequence[Word], place: int) -> str | None:
    """Return a text without its negation, with ``some`` for ``any``.

    None where a word is left that wants the negation: "not yet", "not … either".
    """
    if text is None:
        return None
    end = _end_of_clause(words, place + 1)
    rest = {word.low for word in words[place + 1 : end]}
    after = words[place + 1].low if place + 1 < len(words) else ""
    pairs = zip(words[place + 1 : end], words[place + 2 : end], strict=False)
    at_all = any(one.low == "at" and two.low == "all" for one, two in pairs)
    if at_all or rest & lex.POLAR or after in lex.BEHIND_NOT:
        return None
    plain = next((word for word in words[place + 1 : end] if word.low in lex.SOME), None)
    if plain is None:
        return text
    old = re.compile(rf"\b{plain.text}\b")
    head = text[: words[place].start]
    return head + old.sub(lex.SOME[plain.low], text[words[place].start :], count=1)


def _of_subject(words: Sequence[Word], at: int) -> int | None:
    """Return the place of a negation of the subject of a verb: "no dog", "neither of them"."""
    start = 0
    for place in range(at - 1, -1, -1):
        if words[place].low in lex.BOUNDARIES or words[place].text in ",;:":
            start = place + 1
            break
    for place in _negations(words, start, at):
        if words[place].low in lex.SUBJECTS_DENIED or place == start:
            return place
    return None


def _end_of_group(words: Sequence[Word], place: int) -> int:
    """Return the place behind a verb, its adverbs and a subject pronoun of a question."""
    place += 1
    while place < len(words) and (
        lex.is_adverb(words[place].low)
        or (words[place].low in lex.SUBJECTS and not words[place - 1].text == ",")
        or words[place].low in lex.NOT_FINITE
    ):
        place += 1
    return place


def _end_of_clause(words: Sequence[Word], place: int) -> int:
    while place < len(words):
        word = words[place]
        if word.low in lex.BOUNDARIES or word.text in ";:":
            break
        finite = word.low in lex.HELPERS or word.low.endswith("n't")
        if finite and words[place - 1].low != "to" and word.low != "'s":
            break
        if word.low in lex.SUBJECTS and words[place - 1].is_word:
            break
        place += 1
    return place


def _negations(words: Sequence[Word], first: int, last: int) -> Iterator[int]:
    """Yield the places of words outside quotes that deny something."""
    for place in range(first, last):
        word = words[place]
        low = word.low
        if word.opaque:
            continue
        if (
            low.endswith("n't")
            or low in lex.DENIED
            or low in lex.POSITIVE_PRONOUNS
            or low == "never"
            or (low == "not" and _idiom(words, place) is None)
            or (low == "no" and _determines(words, place))
        ):
            yield place


def undone(text: str, words: Sequence[Word], place: int) -> str | None:
    """Return the text without the negation at a place; None where nothing else is left."""
    word = words[place]
    if word.low == "n't":
        changed = _without_split(text, words, place)
    elif word.low.endswith("n't") or word.low in lex.DENIED:
        changed = _without_contraction(text, words, place)
    elif word.low in lex.POSITIVE_PRONOUNS:
        changed = _without_pronoun(text, words, place)
    elif word.low == "no" and words[place + 1].low == "one":
        some = "Someone" if word.is_capital else "someone"
        changed = text[: word.start] + some + text[words[place + 1].end :]
    else:
        article = _article(words, place) if word.low == "no" else None
        if article is not None:
            article = article.capitalize() if word.is_capital else article
            return text[: word.start] + article + text[word.end :]
        last = place + 1 if word.low == "no" and words[place + 1].low == "longer" else place
        changed = _cut(text, words, place, last)
    return changed if any(map(str.isalnum, changed)) else None


def _article(words: Sequence[Word], place: int) -> str | None:
    """Return what stands in the place of ``no`` before a noun that cannot stand alone."""
    phrase = []
    for word in words[place + 1 : place + 4]:
        if not word.is_word or word.low in lex.PREPOSITIONS | lex.AUXILIARIES | lex.CONJUNCTIONS:
            break
        phrase.append(word.low)
    alone = any(low in lex.MASS or low in lex.PLURALS or low in {"longer", "one"} for low in phrase)
    if not phrase or alone or any(low.endswith("s") and low[-2:] != "ss" for low in phrase):
        return None
    if place and words[place - 1].low in lex.BE - {"am"} and "there" not in _two(words, place):
        return "an" if phrase[0][0] in "aeiou" else "a"
    return "some"


def _two(words: Sequence[Word], place: int) -> tuple[str, ...]:
    return tuple(word.low for word in words[max(place - 3, 0) : place])


def _without_contraction(text: str, words: Sequence[Word], place: int) -> str:
    word = words[place]
    later = words[place + 1].low if place + 1 < len(words) else ""
    before = [each for each in words[:place] if each.is_word]
    led = not before or all(each.low in lex.LEADING for each in before)
    if word.low == "don't" and led and later not in lex.SUBJECTS:
        return _cut(text, words, place)
    if word.low == "ain't":
        whom = before[-1].low if before else ""
        plain = "am" if whom == "i" else "are" if whom in {"we", "you", "they"} else "is"
    else:
        plain = lex.DENIED.get(word.low, word.low[:-3])
    if word.low == "cannot":
        return text[: word.start + 3] + text[word.end :]
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


def _idiom(words: Sequence[Word], place: int) -> str | None:
    """Return the word with which ``not`` denies nothing: not only, or not; None where it denies."""
    after = words[place + 1].low if place + 1 < len(words) else ""
    before = words[place - 1].low if place else ""
    if lex.IDIOMS_OF_NOT.get(after) == "after":
        return after
    return before if lex.IDIOMS_OF_NOT.get(before) == "before" else None


def _determines(words: Sequence[Word], place: int) -> bool:
    """Return whether ``no`` is a determiner: neither an answer nor short for number."""
    if place + 1 >= len(words) or (place and words[place - 1].low in lex.BEFORE_NO):
        return False
    after = words[place + 1]
    return after.is_word and after.low not in lex.AFTER_NO and after.low not in lex.CONJUNCTIONS


def _without_split(text: str, words: Sequence[Word], place: int) -> str:
    """Return the text without ``n't`` that stands apart: "do n't", "ca n't"."""
    word, helper = words[place], words[place - 1]
    whole = lex.DENIED.get(helper.low + word.low)
    if place and whole is not None:
        whole = whole.capitalize() if helper.is_capital else whole
        return text[: helper.start] + whole + text[word.end :]
    return _cut(text, words, place)


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
