"""Negate a sentence by spaCy's dependency parse."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cse_core.errors import CseError
from cse_sncse import lexicon as lex
from cse_sncse.denials import without_negation
from cse_sncse.options import NO_SPACY, WITHOUT_SPACY
from cse_sncse.readings import FiniteVerb, Form
from cse_sncse.rules import negate_verb, prefixed
from cse_sncse.words import split_words

_FORMS: dict[str, Form] = {"VBD": "past", "VBZ": "third", "VBP": "base"}
_UNUSED = ("ner", "senter", "textcat")


def load_parser(model: str, *, where: str, method: str = "spacy") -> Any:
    """Load a spaCy pipeline.

    Args:
        model: Name or folder of the pipeline.
        where: Path of the part, for errors.
        method: The method that needs it, for errors.

    Raises:
        CseError: If spaCy or the pipeline is not installed.
    """
    try:
        spacy: Any = import_module("spacy")
    except ImportError:
        raise CseError(
            NO_SPACY, where=f"{where}.method", value=method, hint=WITHOUT_SPACY
        ) from None
    try:
        return spacy.load(model, exclude=list(_UNUSED))
    except OSError:
        raise CseError(
            "spaCy has no pipeline of this name",
            where=f"{where}.spacy_model",
            value=model,
            hint=f"python -m spacy download {model}, or use method rules",
        ) from None


class SpacyNegation:
    """Negates texts by the parse of a spaCy pipeline.

    A negation goes, as with the rules. Otherwise the root's first auxiliary takes ``not``, or the
    root where it is one; a finite root takes do-support by its tag and lemma; else ``Not`` stands
    in front. SNCSE's public code is ``cse_sncse.public_code``.

    Args:
        model: Name or folder of the pipeline.
        where: Path of the part, for errors.

    Raises:
        CseError: If spaCy or the pipeline is not installed.
    """

    def __init__(self, model: str, *, where: str) -> None:
        self.parser: Any = load_parser(model, where=where)

    def __call__(self, text: str) -> str:
        """Return the negated text."""
        return negate_parsed(text, self.parser(text)) if text.strip() else text


def negate_parsed(text: str, parsed: Any) -> str:
    """Return the negated text.

    Args:
        text: The text.
        parsed: Its parse: tokens with ``text``, ``idx``, ``dep_``, ``tag_``, ``lemma_``, ``head``.
    """
    words = split_words(text)
    if not any(word.text[0].isalnum() for word in words):
        return text
    changed = without_negation(text, words)
    if changed is not None:
        return changed
    places = {word.start: place for place, word in enumerate(words)}
    root = next((token for token in parsed if token.dep_ == "ROOT"), None)
    if root is not None:
        helpers = [
            token
            for token in parsed
            if token.dep_ in ("aux", "auxpass")
            and token.head.idx == root.idx
            and token.tag_ != "TO"
        ]
        token = helpers[0] if helpers else root
        place = places.get(token.idx)
        if place is not None:
            verb = _finite(token, place, helper=bool(helpers))
            if verb is not None:
                return negate_verb(text, words, verb)
    return prefixed(text, words)


def _finite(token: Any, place: int, *, helper: bool) -> FiniteVerb | None:
    if helper or token.tag_ == "MD" or token.text.lower() in lex.BE:
        return FiniteVerb(place, "auxiliary")
    if token.tag_ in _FORMS:
        return FiniteVerb(place, _FORMS[token.tag_], token.lemma_)
    if token.tag_ == "VB":
        return FiniteVerb(place, "imperative", token.lemma_)
    return None
