"""The negation of SNCSE's public code, whatever it makes of a sentence."""

from __future__ import annotations

import string
from typing import Any

from cse_sncse.spacy_parse import load_parser

_HELPERS = frozenset("am is was are were can could will would shall should may must might".split())
"""Roots that take ``not`` themselves; any other form of be, have and do takes do-support."""
_DO = {"VBP": "do not", "VBZ": "does not", "VBD": "did not"}


class PublicNegation:
    """Negates texts as ``generate_soft_negative_samples.py`` and ``train_SNCSE.py`` together do.

    Revision faa013e of Sense-GVT/SNCSE. The first script negates each line by its parse, the second
    looks the negations up after it has put " ." behind lines without a final mark: those, and lines
    with spaces around them, are not found and have ``Not `` put in front. (There, a line without
    its mark is found if the same line with " ." is in the data too; here never.)

    Args:
        model: Name or folder of the spaCy pipeline.
        where: Path of the part, for errors.

    Raises:
        CseError: If spaCy or the pipeline is not installed.
    """

    def __init__(self, model: str, *, where: str) -> None:
        self.parser: Any = load_parser(model, where=where, method="code")

    def __call__(self, text: str) -> str | None:
        """Return the negated text; None for a blank one, with which the public code ends."""
        stripped = text.strip()
        if not stripped:
            return None
        marked = stripped[-1] in string.punctuation
        if not marked or stripped != text:
            return f"Not {text}" if marked else f"Not {text} ."
        return negate_published(self.parser(text))


def negate_published(parsed: Any) -> str:
    """Return the negated text, its tokens with a space between each two.

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
