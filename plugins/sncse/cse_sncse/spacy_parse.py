"""Negate a sentence by spaCy's dependency parse, as SNCSE does."""

from __future__ import annotations

import string
from importlib import import_module
from typing import Any

from cse_core.errors import CseError
from cse_sncse.rules import BE, Verb, negate_fragment, negate_verb, split_words

_UNUSED = ("ner", "senter", "textcat")
_DO = {"VBP": "do not", "VBZ": "does not", "VBD": "did not"}
_HELPERS = frozenset("am is was are were can could will would shall should may might must".split())
"""Roots to which the public code adds ``not``; other forms of be, have and do get do-support."""


class SpacyNegation:
    """Negates texts by the parse of a spaCy pipeline.

    Args:
        model: Name or folder of the pipeline.
        method: ``spacy`` negates the root of the parse; ``code`` is what the public code makes of
            it (Sense-GVT/SNCSE, revision faa013e, with faults included).
        where: Path of the part, for errors.

    Raises:
        CseError: If the pipeline is not installed.
    """

    def __init__(self, model: str, *, method: str, where: str) -> None:
        try:
            self.parser: Any = import_module("spacy").load(model, exclude=list(_UNUSED))
        except OSError:
            raise CseError(
                "spaCy has no pipeline of this name",
                where=f"{where}.spacy_model",
                value=model,
                hint=f"python -m spacy download {model}, or use method rules",
            ) from None
        self.method = method

    def __call__(self, text: str) -> str | None:
        """Return the negated text; None for a blank one."""
        stripped = text.strip()
        if not stripped:
            return None
        if self.method == "spacy":
            return negate_parsed(text, self.parser(text))
        # The code adds " ." to lines without a final mark before it looks their negations up, so
        # it does not find those, nor lines with spaces around them.
        marked = stripped[-1] in string.punctuation
        if not marked or stripped != text:
            return f"Not {text}" if marked else f"Not {text} ."
        return negate_published(self.parser(text))


def negate_parsed(text: str, parsed: Any) -> str | None:
    """Return the text with its root negated; None for a text without a letter or digit.

    A denial beside the root is undone. Otherwise the root's first auxiliary takes ``not``, or the
    root where it is one; a finite root takes do-support by its tag and lemma; a text without a
    finite root is negated as the rules do.

    Args:
        text: The text.
        parsed: Its parse: tokens with ``text``, ``idx``, ``dep_``, ``tag_``, ``lemma_``, ``head``.
    """
    words = split_words(text)
    if not any(word.text[0].isalnum() for word in words):
        return None
    root = next((token for token in parsed if token.dep_ == "ROOT"), None)
    helpers = [
        token
        for token in parsed
        if token.dep_ in ("aux", "auxpass") and token.head.idx == root.idx and token.tag_ != "TO"
    ]
    token = helpers[0] if helpers else root
    for place, word in enumerate(words):
        if token is not None and word.start <= token.idx < word.end:
            helper = bool(helpers) or token.tag_ == "MD" or token.text.lower() in BE
            if helper or token.tag_ in {*_DO, "VB"}:
                return negate_verb(
                    text, words, Verb(place, "AUX" if helper else token.tag_, token.lemma_)
                )
    return negate_fragment(text, words)


def negate_published(parsed: Any) -> str:
    """Return the text negated as the public code does, its tokens with a space between each two.

    The first ``not``, in small letters, goes. Otherwise the first auxiliary takes ``not`` if it
    stands before the root, of whichever clause it is; else the root does if it is a modal or a form
    of be, or takes do-support by its tag; else ``Not`` stands in front. ``n't`` denies nothing.

    Args:
        parsed: The parse: tokens with ``text``, ``dep_``, ``tag_``, ``lemma_``.
    """
    tokens = list(parsed)
    words = [token.text for token in tokens]
    if "not" in words:
        words.remove("not")
        return " ".join(words)
    deciding = {"aux", "auxpass", "ROOT"}
    place = next((i for i, token in enumerate(tokens) if token.dep_ in deciding), None)
    if place is None:
        return " ".join(["Not", *words])
    token = tokens[place]
    if token.dep_ != "ROOT" or token.text.lower() in _HELPERS:
        words[place] += " not"
    elif token.tag_ in _DO:
        words[place] = f"{_DO[token.tag_]} {token.lemma_}"
    else:
        words.insert(0, "Not")
    return " ".join(words)
