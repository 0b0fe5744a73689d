"""The augmenter: the view it makes, its methods, what it remembers, its errors."""

import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest
import torch
from cse_sncse import negation, options
from cse_sncse.rules import negate
from cse_sncse.spacy_parse import negate_parsed, negate_published
from cse_testkit import compose, make_context, make_part, run_steps, tiny_corpus

from cse_core.errors import CseError
from cse_core.types import View
from cse_defaults.texts import Corpus
from tests.fixtures.methods import refusal

TEXTS = ["Anna paints the boat.", "Boat", "It isn't cold", "No dogs barked.", "He left"]
INSTALL = "pip install 'spacy>=3.7' && python -m spacy download en_core_web_sm"


def called(part: Any, texts: list[str], **columns: list[str]) -> list[str]:
    view = View("soft_negative", "soft_negative", "online", texts=texts)
    return part(texts, None, view, make_context(texts=columns))


def test_the_view_holds_the_plain_sentences_and_the_call_negates_each_text_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(negation, "negate", lambda text: seen.append(text) or negate(text))
    part = make_part("aug", "negation", method="rules")
    (view,) = part.views(torch.arange(5), make_context(texts={"text": TEXTS}))
    assert (view.name, view.role, view.texts) == ("soft_negative", "soft_negative", TEXTS)
    assert called(part, [*TEXTS, TEXTS[0]]) == [negate(text) for text in [*TEXTS, TEXTS[0]]]
    assert sorted(seen) == sorted(TEXTS)


def test_a_column_of_negations() -> None:
    corpus = tiny_corpus()
    plain = list(corpus.column("text"))
    given = Corpus.from_columns({"text": plain, "denied": [negate(text) for text in plain]})
    sets = ["model.max_length=64"]
    ruled = run_steps(recipe="sncse", sets=[*sets, "aug.negation.method=rules"], corpus=corpus)
    sets += ["aug.negation.method=column", "aug.negation.column=denied"]
    run = run_steps(recipe="sncse", sets=sets, corpus=given)
    assert run.losses == ruled.losses
    weights = run.weights()
    assert all(torch.equal(weights[name], each) for name, each in ruled.weights().items())
    with pytest.raises(CseError, match="column 'denied'"):
        compose(recipe="sncse", sets=sets, corpus=corpus)
    part = make_part("aug", "negation", method="column", column="denied")
    with pytest.raises(CseError, match=r"aug\.negation\.method"):
        called(part, ["a", "b", "c"], denied=["not a", "not b"])
    with pytest.raises(CseError, match=r"aug\.negation\.column: 1 of 2 rows"):
        part.prepare(Corpus.from_columns({"text": ["a", "b"], "denied": ["not a", " "]}))


# -- spaCy's parse --------------------------------------------------------------------------------


@dataclass
class Token:
    """A token of a parse, as spaCy's."""

    text: str
    idx: int
    dep_: str
    tag_: str
    lemma_: str
    head: Any = None


def parse(text: str) -> tuple[str, list[Token]]:
    """Return a text and its parse, of ``text/dependency/tag/lemma/head``, all but text optional."""
    tokens, plain = [], ""
    fields = [(*word.split("/"), *[""] * 4)[:5] for word in text.split()]
    for word, dependency, tag, lemma, _ in fields:
        plain += " " if plain and word not in {".", ",", "n't"} else ""
        tokens.append(Token(word, len(plain), dependency, tag, lemma))
        plain += word
    for token, (*_, head) in zip(tokens, fields, strict=True):
        token.head = tokens[int(head or 0)]
    return plain, tokens


PARSES = [
    # The sentence, negated by its root, and as the public code does.
    ("Dogs run/ROOT/VBP/run", "Dogs do not run", "Dogs do not run"),
    ("Anna went/ROOT/VBD/go", "Anna did not go", "Anna did not go"),
    ("She has/ROOT/VBZ/have it", "She does not have it", "She does not have it"),
    ("It was/auxpass/VBD/be/2 built/ROOT/VBN/build", "It was not built", "It was not built"),
    ("It IS/ROOT/VBZ/be red", "It IS not red", "It IS not red"),
    ("Open/ROOT/VB/open it", "Do not open it", "Not Open it"),
    ("a boat/ROOT/NN/boat", "Not a boat", "Not a boat"),
    ("A man sitting/ROOT/VBG/sit down", "A man not sitting down", "Not A man sitting down"),
    # The code takes the auxiliary of a relative clause, "to" too, and does not know n't.
    (
        "Men who are/auxpass/VBP/be/3 paid/relcl work/ROOT/VBP/work",
        "Men who are paid do not work", "Men who are not paid work",
    ),
    (
        "To/aux/TO/to/1 win/csubj is/ROOT/VBZ/be good",
        "To win is not good", "To not win is good",
    ),
    ("He did/aux/VBD/do/3 n't/neg go/ROOT/VB/go .", "He did go.", "He did not n't go ."),
    # A not goes wherever it is; the rest stays joined with spaces.
    ("He did/aux/VBD/do/3 not/neg go/ROOT/VB/go", "He did go", "He did go"),
    ("He came/ROOT/VBD/come , not/neg she .", "He did not come, not she.", "He came , she ."),
    ("...", None, "Not ..."),
]  # fmt: skip


def test_parses_are_negated() -> None:
    for text, by_root, by_code in PARSES:
        plain, parsed = parse(text)
        assert (negate_parsed(plain, parsed), negate_published(parsed)) == (by_root, by_code)


@pytest.fixture
def spacy(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A module in spaCy's place with the pipeline ``mine``, which knows these; what was loaded."""
    loaded: list[str] = []
    known = dict(parse(text) for text in ("Dogs run/ROOT/VBP/run", "It is/ROOT/VBZ/be red ."))

    def load(name: str, *, exclude: list[str]) -> Any:
        if name != "mine":
            raise OSError(name)
        loaded.append(name)
        return known.__getitem__

    for name in ("spacy", "mine"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        module.load = load  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
    return loaded


def test_texts_are_negated_by_the_pipeline(spacy: list[str]) -> None:
    part = make_part("aug", "negation", method="spacy", spacy_model="mine")
    wanted = ["Dogs do not run", "", "It is not red.", "Dogs do not run", "  "]
    assert called(part, ["Dogs run", "", "It is red.", "Dogs run", "  "]) == wanted
    # The code looks a line up with " ." behind it, or without the spaces around it.
    part = make_part("aug", "negation", method="code", spacy_model="mine")
    wanted = ["Not Dogs run .", "", "It is not red .", "Not It is red. "]
    assert called(part, ["Dogs run", "", "It is red.", "It is red. "]) == wanted
    assert spacy == ["mine", "mine"]


def test_auto_is_spacy_where_it_is_installed(
    spacy: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def method(model: str) -> str:
        composition = compose(recipe="sncse", sets=[f"aug.negation.spacy_model={model}"])
        (part,) = composition.of("aug")
        return part.options.method  # type: ignore[attr-defined]

    assert (method("mine"), method("not_installed"), method("no/folder")) == (
        "spacy", "rules", "rules",
    )  # fmt: skip
    monkeypatch.setattr(options, "find_spec", lambda name: None)
    assert method("mine") == "rules"


def test_without_spacy_or_its_pipeline_it_is_one_line(
    spacy: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = refusal(make_part, "aug", "negation", method="spacy", spacy_model="other")
    assert "python -m spacy download other" in line
    monkeypatch.setattr(options, "find_spec", lambda name: None)
    for method in ("spacy", "code"):
        wanted = f"aug.negation: method = {method}: spaCy is not installed; {INSTALL}, or use"
        for line in (
            refusal(compose, recipe="sncse", sets=[f"aug.negation.method={method}"]),
            refusal(make_part, "aug", "negation", method=method),
        ):
            assert line == f"{wanted} method rules"
