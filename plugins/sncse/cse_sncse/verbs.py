"""Forms of English verbs, and the base form of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from cse_sncse.verb_lists import IRREGULAR, NOUNS_FIRST, NOUNS_TOO, REGULAR

_FORMS = [tuple(entry.split()) for entry in IRREGULAR.replace("\n", "").split("|")]
IRREGULAR_PAST: dict[str, str] = {past: base for base, past, _ in _FORMS}
"""Base form of each irregular past form."""
IRREGULAR_PARTICIPLES = frozenset(participle for _, _, participle in _FORMS) | {
    "been", "done", "had", "got", "proven", "shown", "hidden", "beaten",
}  # fmt: skip
VERBS = frozenset(REGULAR.split()) | {base for base, _, _ in _FORMS} | {"be", "have", "do"}
"""Base forms."""
NOUN_LIKE = frozenset(NOUNS_TOO.split())
"""Base forms that may be a noun or an adjective, and whose form in -s may be a plural."""
NOUNS = frozenset(NOUNS_FIRST.split())
"""Those of them that are a noun more often than a verb."""
UNCHANGED = frozenset(base for base, past, _ in _FORMS if base == past)
"""Verbs whose past is their base form."""
BASE_TOO = UNCHANGED | frozenset(IRREGULAR_PAST) & VERBS - {"found", "saw", "lay"}
"""Past forms that are a base form as well."""
PAST_ONLY = frozenset(past for _, past, participle in _FORMS if past != participle) - UNCHANGED
"""Past forms that are no participles."""
_NOT_PAST = frozenset(
    (
        "bed red shed sled need feed seed speed weed breed bleed indeed hundred sacred naked "
        "wicked rugged united exceed proceed succeed embed wed agreed-upon biped beloved "
        "kindred hatred entitled titled untitled crooked aged reed creed greed steed deed heed "
        "one-sided zed ted fred alfred ahmed mohammed ed"
    ).split()
)
PREFIXES = frozenset(
    "re co pre de un dis mis out over under cross self hand double fast short spear test gang body "
    "mass ghost air hard soft spoon force blow dry deep stir pan shot kick jump cold free".split()
)
"""What may stand before the hyphen of a verb."""
_VOWELS = frozenset("aeiou")


def is_participle(low: str) -> bool:
    """Return whether a word can be a past participle."""
    return low in IRREGULAR_PARTICIPLES or base_of_past(low) is not None


@lru_cache(maxsize=2**15)
def base_of_past(low: str) -> str | None:
    """Return the base form of a past form, None where it is none."""
    if low in IRREGULAR_PAST:
        return IRREGULAR_PAST[low]
    if len(low) < 4 or not low.endswith("ed") or low in _NOT_PAST or "-" in low:
        return _of_prefixed(low, base_of_past)
    stem = low[:-2]
    if not any(letter in "aeiouy" for letter in stem):
        return None
    doubled = len(stem) > 2 and stem[-1] == stem[-2]
    candidates = [stem, stem + "e"]
    if doubled:
        candidates.append(stem[:-1])
    if stem.endswith("i"):
        candidates.append(stem[:-1] + "y")
    known = [each for each in candidates if each in VERBS]
    if stem + "e" in VERBS:
        return stem + "e"
    if low.startswith("un") and not known:
        return None  # "uncooked", an adjective
    return known[0] if known else _guess(stem, doubled)


@lru_cache(maxsize=2**15)
def base_of_third(low: str, *, known: bool = True) -> str | None:
    """Return the base form of a form in -s, None where it is none.

    Args:
        low: The word.
        known: Whether only verbs of the list count.
    """
    if len(low) < 3 or not low.endswith("s") or low.endswith("ss") or "-" in low:
        return _of_prefixed(low, base_of_third)
    candidates = [low[:-1]]
    if low.endswith("ies") and len(low) > 4:
        candidates.insert(0, low[:-3] + "y")
    if low.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        candidates.append(low[:-2])
    for each in candidates:
        if each in VERBS:
            return each
    if known:
        return None
    return candidates[-1] if low.endswith(("xes", "ches", "shes", "sses")) else candidates[0]


@lru_cache(maxsize=2**15)
def base_of_ing(low: str) -> str | None:
    """Return the known verb of a form in -ing, None where it is none."""
    if len(low) < 5 or not low.endswith("ing"):
        return None
    stem = low[:-3]
    candidates = [stem, stem + "e"]
    if stem[-1] == stem[-2]:
        candidates.append(stem[:-1])
    if stem.endswith("y"):
        candidates.append(stem[:-1] + "ie")
    return next((each for each in candidates if each in VERBS), None)


def _of_prefixed(low: str, base_of: Callable[[str], str | None]) -> str | None:
    """Return the base form of a verb with a hyphen: "co-founded", "re-elects"."""
    prefix, hyphen, rest = low.rpartition("-")
    base = base_of(rest) if hyphen and prefix in PREFIXES else None
    return None if base is None else f"{prefix}-{base}"


def _guess(stem: str, doubled: bool) -> str:
    """Return the likely base form of an unknown verb, given what -ed follows."""
    if stem.endswith("i"):
        return stem[:-1] + "y"
    if doubled:
        return stem if stem[-1] in "lsfz" else stem[:-1]
    before = stem[-2:-1]
    if stem[-1] in "vcus" or (stem[-1] == "z" and before in _VOWELS):
        return stem + "e"
    if stem.endswith(("at", "ut", "ag", "dg", "ng", "rg", "bl", "dl", "gl", "pl", "tl", "kl")):
        return stem if stem.endswith(("eat", "oat", "out", "ng")) else stem + "e"
    one_vowel = before in _VOWELS and stem[-3:-2] not in _VOWELS
    if one_vowel and stem[-1] in "rkmdp" and len(stem) > 2 and before != "e":
        return stem + "e"
    return stem
