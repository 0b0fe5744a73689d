"""What SNCSE's public code makes of a sentence, on parses made by hand."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest
from cse_sncse import plugin
from cse_sncse.public_code import PublicNegation, negate_published
from cse_testkit import compose, make_part

from cse_core.errors import CseError


@dataclass
class Token:
    """A token of a parse, as spaCy's."""

    text: str
    dep_: str
    tag_: str = ""
    lemma_: str = ""


def parse(*words: str) -> list[Token]:
    """Return a parse of ``text/dependency/tag/lemma``."""
    return [Token(*word.split("/")) for word in words]


@pytest.mark.parametrize(
    ("words", "negated"),
    [
        # The first not goes, wherever it is; the tokens are joined with spaces.
        (
            ["He/nsubj", "came/ROOT/VBD/come", ",/punct", "not/neg", "she/conj", "./punct"],
            "He came , she .",
        ),
        (["Not/neg", "red/ROOT/JJ/red"], "Not Not red"),
        # n't denies nothing.
        (
            ["He/nsubj", "did/aux/VBD/do", "n't/neg/RB/not", "go/ROOT/VB/go", "./punct"],
            "He did not n't go .",
        ),
        # The auxiliary of a relative clause, before the root.
        (
            ["Men/nsubj", "who/nsubjpass", "are/auxpass", "paid/relcl", "work/ROOT/VBP/work"],
            "Men who are not paid work",
        ),
        # An auxiliary behind the root does not count.
        (
            ["He/nsubj", "says/ROOT/VBZ/say", "it/nsubj", "will/aux/MD/will", "rain/ccomp"],
            "He does not say it will rain",
        ),
        # "to" is an auxiliary too.
        (["To/aux/TO/to", "win/csubj", "is/ROOT/VBZ/be", "good/acomp"], "To not win is good"),
        (["It/nsubj", "IS/ROOT/VBZ/be", "red/acomp"], "It IS not red"),
        (["He/nsubj", "has/ROOT/VBZ/have", "it/dobj"], "He does not have it"),
        (["He/nsubj", "went/ROOT/VBD/go"], "He did not go"),
        (["Open/ROOT/VB/open", "it/dobj"], "Not Open it"),
        (["A/det", "boat/ROOT/NN/boat"], "Not A boat"),
        (["A/det"], "Not A"),
    ],
)
def test_a_parse(words: list[str], negated: str) -> None:
    assert negate_published(parse(*words)) == negated


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A module in spaCy's place, whose parses have a root in each first word; what it parsed."""
    seen: list[str] = []

    def parser(text: str) -> list[Token]:
        seen.append(text)
        return [Token(word, "dep", "NN", word) for word in text.split()]

    module = ModuleType("spacy")
    module.__spec__ = ModuleSpec("spacy", None)
    module.load = lambda name, exclude: parser  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spacy", module)
    return seen


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("He is not here.", "He is here."),
        ("He is not here", "Not He is not here ."),
        ('He is not "here"', 'He is "here"'),
        ("He is not here. ", "Not He is not here. "),
        ("He is not here…", "Not He is not here… ."),
    ],
)
def test_lines_without_a_final_mark_are_not_found(
    text: str, negated: str, loaded: list[str]
) -> None:
    """What is asked for has " ." behind it, what was negated has not."""
    assert PublicNegation("mine", where="aug.negation")(text) == negated
    assert loaded == ([text] if not negated.startswith("Not") else [])


def test_blank_lines_have_no_soft_negative(loaded: list[str]) -> None:
    assert PublicNegation("mine", where="aug.negation")("  ") is None


def test_it_is_a_method_of_the_augmenter(loaded: list[str]) -> None:
    compose(recipe="sncse", sets=["aug.negation.method=code"])
    part = make_part("aug", "negation", method="code")
    view: Any = None
    assert part(["It is not red.", "Red"], None, view, None) == ["It is red.", "Not Red ."]


def test_without_spacy_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(CseError, match="spaCy is not installed") as caught:
        make_part("aug", "negation", method="code")
    assert "aug.negation.method" in str(caught.value) and "\n" not in str(caught.value)
    found = plugin.find_spec
    monkeypatch.setattr(plugin, "find_spec", lambda name: None if name == "spacy" else found(name))
    with pytest.raises(CseError, match="method = code: spaCy is not installed"):
        compose(recipe="sncse", sets=["aug.negation.method=code"])
