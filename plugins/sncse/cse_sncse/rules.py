"""Negate an English sentence without a model: auxiliaries, do-support, denials undone."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from lemminflect import getAllInflections, getAllLemmas

BE = frozenset("am is are was were 's 're 'm".split())
MODALS = frozenset("can could will would shall should may might must 'll 'd".split())
_AUXILIARIES = BE | MODALS | frozenset("have has had 've do does did".split())
_SUBJECTS = frozenset("i you he she it we they there this that these those who someone".split())
_PLURALS = frozenset("i you we they these those many few others people police".split())
_DETERMINERS = frozenset("a an the my your his her its our their some no 's".split())
_PREPOSITIONS = frozenset(
    "of in on at by for with from into over under about after before between during through to as "
    "against near without within among across behind along around".split()
)
_BEFORE_NOUNS = (_DETERMINERS | _PREPOSITIONS) - _SUBJECTS
_NO_SUBJECT = (_BEFORE_NOUNS | _AUXILIARIES | {"and"}) - {"'s"}
_CLAUSES = frozenset(
    "if when while because although though since until unless once whereas whether that which who "
    "whose whom where what how why".split()
)
_CLAUSES_IN_FRONT = (_CLAUSES | {"as", "after", "before"}) - {"that", "which", "who", "whose"}
_FUNCTION_WORDS = _BEFORE_NOUNS | _CLAUSES | _SUBJECTS | {"and", "or", "up", "down", "out"}
_ADVERBS = frozenset("not never also already always even just often probably still then".split())
_DENIALS = {
    "not": "", "never": "", "no": "", "no longer": "", "nobody": "somebody", "no one": "someone",
    "nothing": "something", "none": "some", "nowhere": "somewhere",
}  # fmt: skip
_SHORT = {f"{verb}n't": verb for verb in _AUXILIARIES} | {"won't": "will", "can't": "can"}
_SHORT |= {"shan't": "shall", "ain't": "is", "cannot": "can"}
_WORD = re.compile(
    r"(?i)\d+(?:[.,:/-]\d+)*(?:st|nd|rd|th)?|[^\W\d_]+?(?=['’](?:s|re|m|ve|ll|d)\b)"
    r"|['’](?:s|re|m|ve|ll|d)\b|[^\W\d_]+(?:[-'’][^\W\d_]+)*|\S"
)
_HIDDEN = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\"[^\"]*\"|“[^”]*”|«[^»]*»")
_UNSURE = re.compile(r"^the more\b|\bnot only\b|\bneither\b|, \w+n['’]t \w+ ?\?", re.IGNORECASE)


class Word(NamedTuple):
    """A word, clitic (``'s``) or mark; ``low`` is in lower case with straight apostrophes."""

    text: str
    low: str
    start: int
    end: int


class Verb(NamedTuple):
    """A word as a finite verb: its place, its tag (AUX, VBD, VBZ, VBP or VB), lemma, certainty."""

    place: int
    tag: str
    lemma: str = ""
    sure: bool = True


def negate(text: str) -> str | None:
    """Return the negated text; None where the rules are not sure how to negate it.

    The finite verb of the first main clause takes ``not`` or do-support, or loses its denial. A
    caption or headline without one has ``not`` before its participle or infinitive; a noun phrase
    has ``Not`` in front. SNCSE (Wang and Dou, 2023), section 3.1, does so by a dependency parse.
    """
    words = split_words(text)
    if not any(word.text[0].isalnum() for word in words) or _UNSURE.search(text):
        return None
    verb = _main_verb(words)
    if verb is not None:
        return negate_verb(text, words, verb)
    title = {word.text[0].isupper() for word in words if len(word.text) > 3} == {True}
    unsure = words[-1].text == "?" or (title and len(words) > 4)
    return None if unsure else negate_fragment(text, words)


def split_words(text: str) -> list[Word]:
    """Return the words that are in no quotes, parentheses or brackets."""
    shown = _HIDDEN.sub(lambda match: " " * len(match.group()), text)
    shown = shown if any(map(str.isalnum, shown)) else text
    words = [(match.group(), *match.span()) for match in _WORD.finditer(shown)]
    return [Word(word, word.lower().replace("’", "'"), *span) for word, *span in words]


@lru_cache(maxsize=2**16)
def _tags(low: str) -> dict[str, str]:
    """Return the tags that a word may have, with the lemma of each; none for function words."""
    lemmas = {} if low in _FUNCTION_WORDS else getAllLemmas(low)
    tags: dict[str, str] = {}
    for lemma, kind in ((lemma, kind) for kind, known in lemmas.items() for lemma in known):
        for tag, forms in getAllInflections(lemma, kind).items():
            if low in forms:
                tags.setdefault(tag, lemma)
    if low.endswith("ed") and "VBD" in tags:
        tags.setdefault("VBN", tags["VBD"])
    return tags


def _is_name(word: Word) -> bool:
    unknown = word.low not in _FUNCTION_WORDS and not _tags(word.low)
    return (unknown and word.text[0].isalnum()) or (word.text[0].isupper() and word.start > 0)


def _is_noun(word: Word) -> bool:
    return word.low in _SUBJECTS or _is_name(word) or bool(_tags(word.low).keys() & {"NN", "NNS"})


def _is_adverb(word: Word) -> bool:
    return word.low in _ADVERBS or (word.low.endswith("ly") and "RB" in _tags(word.low))


def _is_plural(subject: list[Word]) -> bool | None:
    """Check whether a subject is plural, None if unknown; its head is before its preposition."""
    ends = (i for i, word in enumerate(subject) if i and word.low in _PREPOSITIONS)
    head = ([word for word in subject[: next(ends, None)] if _is_noun(word)] or subject)[-1]
    if head.low in _PLURALS or any(word.low == "and" for word in subject):
        return True
    if _is_name(head) and head.low.endswith("s") and len(head.low) > 3:
        return None if head == subject[-1] else False
    return _tags(head.low).get("NNS", head.low) != head.low


def _main_verb(words: list[Word]) -> Verb | None:
    """Return the finite verb of the first main clause: a sure one before the first other one."""
    front = words[0].low in _CLAUSES_IN_FRONT and words[-1].text != "?"
    first = next((i + 1 for i, word in enumerate(words) if front and word.text == ","), 0)
    clauses = int(front and not first)
    unsure: Verb | None = None
    for place, word in enumerate(words[first:], start=first):
        opens = word.low in _CLAUSES and place > 0
        if unsure and (opens or word.text in ",;:–—-.?!" or word.low in {"and", "but"}):
            return unsure
        subject = words[max(first, place - 40) : place]
        noun = place - first > 1 and _tags(words[place - 1].low).keys() & {"NN", "NNS"}
        if opens or (noun and subject[0].low in _DETERMINERS and word.low in _SUBJECTS):
            clauses += 1  # "when he came", "the boats he painted"
        elif word.text in ";:–—" or (word.text == "," and words[first].low in _PREPOSITIONS):
            first = place + 1
        elif (verb := _finite(words, place, subject)) is not None:
            if not clauses and verb.sure:
                return verb
            unsure = unsure or (None if clauses else verb)
            clauses = max(clauses - 1, 0)
    return unsure if unsure is None or words[-1].text in ".!?" or unsure.tag != "VBD" else None


def _finite(words: list[Word], place: int, subject: list[Word]) -> Verb | None:
    """Return the reading of a word as a finite verb behind the words of its subject."""
    word, tags = words[place], _tags(words[place].low)
    if not (tags.keys() & {"VB", "VBD", "VBZ"} or word.low in _AUXILIARIES | _SHORT.keys()):
        return None
    before = next((item for item in reversed(subject) if not _is_adverb(item)), None)
    after = next((item for item in words[place + 1 :] if not _is_adverb(item)), words[-1])
    if _is_auxiliary(word, before, after):
        return Verb(place, "AUX")
    if before is None:
        thing = after.low in (_DETERMINERS | _SUBJECTS) - {"'s"}
        command = "VB" in tags and after != word and (thing or "NN" not in tags)
        return Verb(place, "VB", word.low) if command and word.low not in MODALS else None
    inside = "JJ" in _tags(before.low) and (len(subject) < 2 or subject[-2].low in _NO_SUBJECT)
    if inside or _is_name(word) or before.low in _NO_SUBJECT:
        return None
    pronoun = before.low in _SUBJECTS
    phrase = not pronoun and any("VBG" in _tags(item.low) for item in subject)
    noun = not pronoun and ("NN" in tags or "NNS" in tags)
    if not any(map(_is_noun, subject)) or (phrase and noun):
        return None
    later = _tags(after.low) if after.low not in _AUXILIARIES else {"VBD": ""}
    if "VBD" in tags:
        object_ = after.text[0].isalpha() and after.low not in _PREPOSITIONS | _AUXILIARIES
        sure = pronoun or "VBN" not in tags or (object_ and after != word and before.text != ",")
        aside = phrase or before.text == "," and sum(w.text == "," for w in subject) % 2 == 1
        return Verb(place, "VBD", tags["VBD"], sure) if sure or not aside else None
    plural = before.low in _PLURALS if pronoun else _is_plural(subject)
    compound = noun and ("VBD" in later or ("VB" in later and not _is_name(before)))
    if "VBZ" in tags and not plural and not compound:
        return Verb(place, "VBZ", tags["VBZ"], not noun)
    adjective = not pronoun and tags.keys() & {"JJ", "JJR"}
    base = "VB" in tags and plural is not False and not (adjective or "VBG" in later)
    return Verb(place, "VBP", word.low, not noun) if base else None


def _is_auxiliary(word: Word, before: Word | None, after: Word) -> bool:
    low, tags = word.low, _tags(after.low)
    if low.startswith("'"):
        return before is not None and before.low in _SUBJECTS | _CLAUSES | {"let"}
    starts = before is None or before.low in _CLAUSES | {"and", "but", "so"}
    asks = starts and after.low in _SUBJECTS
    if low in MODALS:
        name = word.text[0].isupper() and not (starts and after.text[0].islower())
        return asks or not (name or (before and before.low in _BEFORE_NOUNS))
    if low in {"do", "does", "did"}:
        return starts or ("VB" in tags and "NN" not in tags)
    has = low in _AUXILIARIES and (asks or "VBN" in tags or after.low == "been")
    return has or low in BE | _SHORT.keys()


def negate_verb(text: str, words: list[Word], verb: Verb) -> str:
    """Return the text with a denial before or beside a verb undone, or with the verb negated."""
    clause = max((i for i, word in enumerate(words[: verb.place]) if word.text == ","), default=0)
    beside = verb.place + (3 if verb.tag == "AUX" else 2)
    for place in range(clause, min(beside, len(words))):
        changed = _without_denial(text, words, place)
        if changed is not None:
            return changed
    word, later = words[verb.place], words[min(verb.place + 1, len(words) - 1)]
    if verb.tag != "AUX":
        support = _cased({"VBD": "did not", "VBZ": "does not"}.get(verb.tag, "do not"), word)
        return f"{text[: word.start]}{support} {verb.lemma}{text[word.end :]}"
    asks = any(item.text == "?" for item in words)
    if (asks and later.low in _SUBJECTS) or later.low in {"also", "still", "better"}:
        return f"{text[: later.end]} not{text[later.end :]}"
    return f"{text[: word.end]}{'' if word.low == 'can' else ' '}not{text[word.end :]}"


def _without_denial(text: str, words: list[Word], place: int) -> str | None:
    """Return the text without the denial at a place; None where there is none."""
    word, later = words[place], words[min(place + 1, len(words) - 1)]
    if word.low in _SHORT:
        return text[: word.start] + _cased(_SHORT[word.low], word) + text[word.end :]
    answer = word.low == "no" and (not later.text[0].isalpha() or later.low in {"doubt", "to"})
    if word.low not in _DENIALS or answer or (place and words[place - 1].low == "or"):
        return None
    pair = f"{word.low} {later.low}"
    new = _DENIALS.get(pair, "some" if word.low == "no" and place else _DENIALS[word.low])
    rest = text[later.end if pair in _DENIALS else word.end :]
    return text[: word.start] + _cased(new + rest if new else rest.lstrip(), word)


def _cased(new: str, word: Word) -> str:
    return new[:1].upper() + new[1:] if word.text[0].isupper() else new


def negate_fragment(text: str, words: list[Word]) -> str:
    """Return a text without a finite verb negated: its denial, participle, infinitive or all."""
    for place, word in enumerate(words[:-1]):
        changed = _without_denial(text, words, place)
        if changed is not None:
            return changed
        tags, later = _tags(word.low), words[place + 1]
        participle = "VBN" in tags and "NN" not in tags and not _is_noun(later)
        verb = participle or "VBG" in tags or (word.low == "to" and "VB" in _tags(later.low))
        if verb and place and _is_noun(words[place - 1]) and word.text[0].islower():
            return f"{text[: word.start]}not {text[word.start :]}"
    first = words[0]
    plain = first.low != "i" and (first.low in _FUNCTION_WORDS or "JJ" in _tags(first.low))
    return f"{text[: first.start]}Not {first.low if plain else first.text}{text[first.end :]}"
