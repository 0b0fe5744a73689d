"""The augmenter: the view it makes, its three methods, what it remembers, its errors."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from cse_sncse import negation, plugin
from cse_sncse.rules import negate
from cse_sncse.spacy_parse import negate_parsed
from cse_testkit import (
    compose,
    installed_registry,
    make_context,
    make_part,
    run_steps,
    tiny_corpus,
    write_corpus,
)

from cse_core.data import Corpus
from cse_core.errors import CseError
from cse_core.runtime.reporter import Reporter
from cse_core.training.run import train
from cse_core.types import View

TEXTS = ["Anna paints the boat.", "Boat", "It isn't cold", "No dogs barked.", "He left"]


def called(part: Any, texts: list[str], **columns: list[str]) -> list[str]:
    view = View("soft_negative", "soft_negative", "online", texts=texts)
    return part(texts, None, view, make_context(texts=columns))


def test_the_view_holds_the_plain_sentences_and_the_call_negates_them() -> None:
    part = make_part("aug", "negation")
    (view,) = part.views(torch.arange(5), make_context(texts={"text": TEXTS}))
    assert (view.name, view.role, view.texts) == ("soft_negative", "soft_negative", TEXTS)
    assert called(part, TEXTS) == [negate(text) for text in TEXTS]


def test_the_same_text_is_negated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(negation, "negate", lambda text: seen.append(text) or negate(text))
    part = make_part("aug", "negation")
    first = called(part, [*TEXTS, TEXTS[0]])
    assert called(part, [TEXTS[0], *reversed(TEXTS)])[0] == first[0]
    assert sorted(seen) == sorted(TEXTS)


def test_it_is_keyed_on_the_raw_line() -> None:
    """A final mark or its absence makes no difference to what is negated."""
    for text in ("Anna paints the boat", "It is red", "They can see it"):
        assert negate(text) + "." == negate(text + ".")
        assert not negate(text).startswith("Not ")


def test_a_column_takes_the_place_of_the_rules() -> None:
    part = make_part("aug", "negation", method="column", column="denied")
    assert called(part, ["a", "b"], denied=["not a", "not b"]) == ["not a", "not b"]
    with pytest.raises(CseError) as caught:
        called(part, ["a", "b", "c"], denied=["not a", "not b"])
    assert "aug.negation.method" in str(caught.value)


def test_a_column_with_blanks_is_refused_before_training() -> None:
    part = make_part("aug", "negation", method="column")
    part.prepare(Corpus.from_columns({"text": ["a", "b"], "negated": ["not a", "not b"]}))
    with pytest.raises(CseError) as caught:
        part.prepare(Corpus.from_columns({"text": ["a", "b"], "negated": ["not a", " "]}))
    line = str(caught.value)
    assert "1 of 2 rows" in line and "aug.negation.column" in line and "\n" not in line


@pytest.mark.parametrize("by", ["view", "augmenter"])
def test_a_file_with_a_blank_negation_is_refused_before_training(by: str, tmp_path: Path) -> None:
    """A blank soft negative would be an empty text between the marks of its prompt."""
    columns = {"text": ["a boat", "a dog", "a car"], "negated": ["no boat", "", "no car"]}
    corpus = Corpus.from_columns(columns)
    file = write_corpus(corpus, tmp_path / "rows.csv")
    sets = {
        "view": ["views.soft_negative.column=negated"],
        "augmenter": ["aug.negation.method=column"],
    }[by]
    composition = compose(
        recipe="sncse",
        kinds={"aug": ["~negation"]} if by == "view" else None,
        sets=[f"data.path=[{file}]", "train.dev=[none]", "train.device=cpu", *sets],
        corpus=corpus,
    )
    out = tmp_path / "run"
    with pytest.raises(CseError, match="column negated is blank in 1 of 3 rows") as caught:
        train(composition, installed_registry(), out=out, reporter=Reporter())
    assert "\n" not in str(caught.value) and not out.exists()


def test_a_column_that_is_not_there_is_refused_by_the_composer() -> None:
    with pytest.raises(CseError) as caught:
        compose(recipe="sncse", sets=["aug.negation.method=column"], corpus=tiny_corpus())
    assert "column 'negated'" in str(caught.value) and "\n" not in str(caught.value)


def test_a_run_with_a_column() -> None:
    corpus = tiny_corpus()
    plain = list(corpus.column("text"))
    columns = {"text": plain, "negated": [negate(text) for text in plain]}
    sets = ["model.max_length=64"]
    ruled = run_steps(recipe="sncse", sets=sets, corpus=corpus)
    given = run_steps(
        recipe="sncse",
        sets=[*sets, "aug.negation.method=column"],
        corpus=Corpus.from_columns(columns),
    )
    assert given.losses == ruled.losses


def test_other_views_can_be_negated_instead() -> None:
    run = run_steps(
        recipe="simcse", kinds={"aug": ["negation"]}, sets=["aug.negation.views=[positive]"]
    )
    assert [view.name for view in run.composition.views] == ["anchor", "positive"]
    assert not run.unchanged
    plain = run_steps(recipe="simcse")
    assert run.losses[0] != plain.losses[0]


def without_spacy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)  # what makes an import fail
    found = plugin.find_spec
    monkeypatch.setattr(plugin, "find_spec", lambda name: None if name == "spacy" else found(name))


def test_spacy_without_spacy_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    without_spacy(monkeypatch)
    with pytest.raises(CseError) as caught:
        make_part("aug", "negation", method="spacy")
    line = str(caught.value)
    assert "pip install 'spacy>=3.7'" in line and "aug.negation.method" in line and "\n" not in line


def test_spacy_without_spacy_is_refused_by_the_composer(monkeypatch: pytest.MonkeyPatch) -> None:
    without_spacy(monkeypatch)
    with pytest.raises(CseError) as caught:
        compose(recipe="sncse", sets=["aug.negation.method=spacy"])
    assert str(caught.value) == (
        "aug.negation: method = spacy: spaCy is not installed; "
        "pip install 'spacy>=3.7', or use method rules"
    )
    compose(recipe="sncse", sets=["aug.negation.method=rules"])


def test_spacy_without_its_pipeline_is_one_line() -> None:
    pytest.importorskip("spacy")
    with pytest.raises(CseError) as caught:
        make_part("aug", "negation", method="spacy", spacy_model="no_such_pipeline")
    line = str(caught.value)
    assert "spacy download no_such_pipeline" in line and "\n" not in line


# -- what a parse is made of ----------------------------------------------------------------------


@dataclass
class Token:
    """A token of a parse, as spaCy's."""

    text: str
    idx: int
    tag_: str
    dep_: str
    lemma_: str
    head: Any = field(default=None, repr=False)


def parse(*tokens: tuple[str, str, str, str, int]) -> tuple[str, list[Token]]:
    """Return a text and its parse, of (text, tag, dependency, lemma, head)."""
    made: list[Token] = []
    text = ""
    for word, tag, dependency, lemma, _ in tokens:
        text += " " if text and word not in ".," else ""
        made.append(Token(word, len(text), tag, dependency, lemma))
        text += word
    for token, (*_, head) in zip(made, tokens, strict=True):
        token.head = made[head]
    return text, made


@pytest.mark.parametrize(
    ("tokens", "negated"),
    [
        (
            [("Dogs", "NNS", "nsubj", "dog", 1), ("run", "VBP", "ROOT", "run", 1)],
            "Dogs do not run",
        ),
        (
            [("Anna", "NNP", "nsubj", "Anna", 1), ("went", "VBD", "ROOT", "go", 1)],
            "Anna did not go",
        ),
        (
            [("She", "PRP", "nsubj", "she", 1), ("flies", "VBZ", "ROOT", "fly", 1)],
            "She does not fly",
        ),
        (
            [
                ("It", "PRP", "nsubjpass", "it", 2),
                ("was", "VBD", "auxpass", "be", 2),
                ("built", "VBN", "ROOT", "build", 2),
            ],
            "It was not built",
        ),
        (
            [
                ("It", "PRP", "nsubj", "it", 1),
                ("is", "VBZ", "ROOT", "be", 1),
                ("red", "JJ", "acomp", "red", 1),
            ],
            "It is not red",
        ),
        ([("Open", "VB", "ROOT", "open", 0), ("it", "PRP", "dobj", "it", 0)], "Do not open it"),
        ([("A", "DT", "det", "a", 1), ("boat", "NN", "ROOT", "boat", 1)], "Not a boat"),
        (
            [
                ("He", "PRP", "nsubj", "he", 2),
                ("did", "VBD", "aux", "do", 2),
                ("not", "RB", "neg", "not", 2),
                ("go", "VB", "ROOT", "go", 2),
            ],
            "He did go",
        ),
        # The auxiliary of the relative clause is passed over; the public code would take it.
        (
            [
                ("Men", "NNS", "nsubj", "man", 4),
                ("who", "WP", "nsubjpass", "who", 3),
                ("are", "VBP", "auxpass", "be", 3),
                ("paid", "VBN", "relcl", "pay", 0),
                ("work", "VBP", "ROOT", "work", 4),
            ],
            "Men who are paid do not work",
        ),
    ],
)
def test_a_parse_is_negated(tokens: list[tuple[str, str, str, str, int]], negated: str) -> None:
    text, parsed = parse(*tokens)
    assert negate_parsed(text, parsed) == negated


@pytest.fixture
def spacy(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """A module in spaCy's place whose pipeline knows two sentences; returns what was loaded."""
    loaded: list[tuple[str, list[str]]] = []
    known = dict(
        [
            parse(("Dogs", "NNS", "nsubj", "dog", 1), ("run", "VBP", "ROOT", "run", 1)),
            parse(("Anna", "NNP", "nsubj", "Anna", 1), ("went", "VBD", "ROOT", "go", 1)),
        ]
    )

    def load(name: str, *, exclude: list[str]) -> Any:
        loaded.append((name, exclude))
        return known.__getitem__

    module = ModuleType("spacy")
    module.__spec__ = ModuleSpec("spacy", None)
    module.load = load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spacy", module)
    return loaded


def test_texts_are_negated_by_the_pipeline(spacy: list[tuple[str, list[str]]]) -> None:
    compose(recipe="sncse", sets=["aug.negation.method=spacy"])
    part = make_part("aug", "negation", method="spacy", spacy_model="mine")
    assert spacy == [("mine", ["ner", "senter", "textcat"])]
    texts = ["Dogs run", "", "Anna went", "Dogs run", "  "]
    wanted = ["Dogs do not run", "", "Anna did not go", "Dogs do not run", "  "]
    assert called(part, texts) == wanted
    assert len(spacy) == 1, "the pipeline is loaded once"
