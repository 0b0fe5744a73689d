"""Which column is which, in one file and over several."""

import json
from pathlib import Path

import pytest

from cse_core.errors import CseError
from cse_core.records import ColumnType
from cse_core.texts import DataOptions, NeededColumns, Seen
from cse_core.words import lacks_word_spaces
from cse_defaults.texts import load_corpus, read_data
from cse_defaults.texts.columns import match_columns
from tests.fixtures.methods import refusal
from tests.fixtures.parts import made_up_registry

USUAL = {
    "text": "text=text",
    "id,sentence": "text=sentence id=id",
    "Sentence": "text=Sentence",
    "utterance": "text=utterance",
    "sent0,sent1": "text=sent0 positive=sent1",
    "premise,hypothesis": "text=premise positive=hypothesis",
    "sentence1,sentence2": "text=sentence1 positive=sentence2",
    "question,answer": "text=question positive=answer",
    "en,de": "text=en fraternal=de",
    "de,en": "text=en fraternal=de",
    "en,de,fr": "text=en de=de fr=fr",
    "id,en,de": "text=en fraternal=de id=id",
    "title,doc_id,content": "text=content document=doc_id title=title",
    "text,sentence1,sentence2": "text=text sentence1=sentence1 sentence2=sentence2",
    "text,positive,fraternal": "text=text positive=positive fraternal=fraternal",
    "Anchor,Positive,Negative": "text=Anchor positive=Positive negative=Negative",
    "query,pos,neg": "text=query positive=pos negative=neg",
    "title,query,document": "text=query positive=document title=title",
    "Sentence 1,Sentence-2,Gold Label": "text=Sentence 1 positive=Sentence-2 label=Gold Label",
}
GIVEN: tuple[tuple[str, dict[str, str], str], ...] = (
    ("a,b", {"text": "b"}, "text=b a=a"),
    ("sentence1,sentence2", {"text": "sentence1"}, "text=sentence1 sentence2=sentence2"),
    ("text,clean", {"text": "clean"}, "text=clean"),
    ("en,de", {"text": "de"}, "text=de en=en"),
    ("en,de", {"fraternal": "de"}, "text=en fraternal=de"),
    ("text", {"positive": "text"}, "text=text positive=text"),
    ("score,sentence1,sentence2", {"positive": "sentence2"},
     "text=sentence1 positive=sentence2 score=score"),
)  # fmt: skip


def matched(names: str, mapping: dict[str, str], seen: Seen) -> str:
    views = tuple(made_up_registry().views.values())
    match = match_columns(names.split(","), mapping, "a.csv", seen, views)
    return " ".join(f"{target}={source}" for target, source in match.items())


def test_usual_names_given_names_and_scripts() -> None:
    for names, expected in USUAL.items():
        seen = Seen()
        assert matched(names, {}, seen) == expected
        graded = "positive=" in expected and "label=" in expected
        assert seen.grades == ("label" if graded else ""), names
        pairs = [each.split("=") for each in expected.split() if "hypothesis=" not in each]
        assert bool(seen.messages) == any(one != other for one, other in pairs), names
    for names, mapping, expected in GIVEN:
        assert matched(names, mapping, Seen()) == expected
    for text, wanted in {"一只鸟": True, "鸟 bird": False, "鸟鸟鸟 bi": True, "鸟鸟 birds": False,
                         "いぬ": True, "": False, "123": False}.items():  # fmt: skip
        assert lacks_word_spaces([text]) is wanted, text


def write(path: Path, *lines: str) -> str:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_columns_of_several_files(tmp_path: Path) -> None:
    triplets = write(tmp_path / "nli.csv", "sent0,sent1,hard_neg,title", "a,b,c,t", "d,e,f,u")
    plain = write(tmp_path / "plain.txt", "g", "h")
    options = DataOptions(path=(triplets, plain))
    corpus = load_corpus(options)
    assert corpus.names == ("text", "positive", "negative", "title")
    assert list(corpus.column("text")) == ["a", "d", "g", "h"]
    assert list(corpus.column("title")) == ["t", "u", "", ""]
    assert refusal(load_corpus, options, needed=NeededColumns(("positive",))).startswith(
        f"{plain}: no column positive, which this run reads; its columns: text;"
    )
    assert len(load_corpus(options, needed=NeededColumns(("title",)))) == 4
    with pytest.raises(CseError, match="no column title"):
        load_corpus(options, needed=NeededColumns(("title",), ("title",)))


def test_names_given_over_several_files(tmp_path: Path) -> None:
    table = write(tmp_path / "a.tsv", "phrase\tother", "a\tb")
    plain = write(tmp_path / "b.txt", "c")
    options = DataOptions(path=(table, plain), columns={"text": "phrase"})
    assert list(load_corpus(options).column("text")) == ["a", "c"]
    named = write(tmp_path / "c.tsv", "text\tother", "d\te")
    options = DataOptions(path=(table, named), columns={"text": "phrase"})
    corpus = load_corpus(options)
    assert corpus.table.to_pydict() == {"text": ["a", "d"], "other": ["b", "e"]}
    options = DataOptions(path=(named, plain), columns={"text": "phrases"})
    with pytest.raises(CseError, match="data.columns.text: no file has a column phrases"):
        load_corpus(options)
    assert refusal(match_columns, ["a", "b"], {"text": "c"}, "a.csv", Seen()) == (
        "a.csv: no column c, which data.columns.text names; its columns: a, b"
    )
    with pytest.raises(CseError, match=r"its columns: a \(lists\); write one text per row"):
        match_columns(["a"], {"text": "a"}, "a.csv", Seen(), kind=lambda name: "lists")


def test_rows_are_dropped_for_what_a_run_reads_alone(tmp_path: Path) -> None:
    lines = ("text\tpositive\tnegative\tempty", "a\tb\t\t", "c\t \tx\t", "\tx\t\t", "d\te\tf\t")
    path = write(tmp_path / "a.tsv", *lines)
    for read, kept, blank, incomplete in (
        ((), ["a", "c", "d"], 1, 0),
        (("positive",), ["a", "d"], 1, 1),
        (("positive", "negative"), ["d"], 1, 2),
    ):
        needed = NeededColumns(read, read)
        corpus = load_corpus(DataOptions(path=(path,)), needed=needed)
        assert list(corpus.column("text")) == kept
        report = corpus.report
        assert (report.blank_dropped, report.incomplete_dropped) == (blank, incomplete)
        dropped = f"{incomplete} row{'s' * (incomplete != 1)} dropped"
        assert any(dropped in m for m in report.messages) == bool(incomplete)
        first = {0: "row 3: column text is blank", 1: "row 2: column positive is blank",
                 2: "row 1: column negative is blank"}[incomplete]  # fmt: skip
        with pytest.raises(CseError, match=f"a.tsv, {first}"):
            load_corpus(DataOptions(path=(path,), blank="refuse"), needed=needed)
    never = write(tmp_path / "b.tsv", "text\tpositive\tnegative", "a\tb\t", "c\t\td")
    with pytest.raises(CseError, match="no row is complete: each lacks text or positive or neg"):
        load_corpus(DataOptions(path=(never,)), needed=NeededColumns(("positive", "negative")))
    titles = write(tmp_path / "c.tsv", "text\ttitle", "a\tt", "b\t")
    options = DataOptions(path=(titles,))
    assert len(load_corpus(options, needed=NeededColumns(("title",)))) == 2
    assert len(load_corpus(options, needed=NeededColumns(("title",), ("title",)))) == 1


def test_a_column_is_there_wherever_it_begins(tmp_path: Path) -> None:
    rows = [json.dumps({"text": f"row {n}"}) for n in range(25_000)]
    path = write(tmp_path / "a.jsonl", *rows, json.dumps({"text": "late", "positive": "one"}))
    data = read_data(DataOptions(path=(path,)))
    assert data.columns == ("text", "positive")
    assert len(data.corpus()) == 25_001
    corpus = data.corpus(NeededColumns(("positive",), ("positive",)))
    assert corpus.table.to_pylist() == [{"text": "late", "positive": "one"}]
    assert corpus.report.messages == (f"{path}: 25,000 rows dropped: positive blank",)


def test_a_column_with_a_type_holds_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "graded.csv"
    options = DataOptions(path=(str(path),))
    path.write_text("text,score,level,topic\na,0.5,3,sport\n,x,,\nb,1e-3,-2,art\n")
    types: dict[str, ColumnType] = {"score": "float", "level": "int", "topic": "label"}
    corpus = load_corpus(options, needed=NeededColumns(("score", "level"), (), types))
    assert corpus.values("score", "float").tolist() == [0.5, 0.001]
    assert corpus.values("level", "int").tolist() == [3, -2]
    assert corpus.values("topic", "label").tolist() == [1, 0], "by the order of the labels"
    bad: tuple[tuple[str, ColumnType, str], ...] = (
        ("good", "float", "finite numbers"), ("nan", "float", "finite numbers"),
        ("1.5", "int", "integers"), (str(2**63), "int", "integers"),
    )  # fmt: skip
    for cell, kind, noun in bad:
        path.write_text(f"text,score\na,1\nb,{cell}\n")
        needed = NeededColumns(("score",), (), {"score": kind})
        assert refusal(load_corpus, options, needed=needed) == (
            f"{path}, row 2: column score must hold {noun} (got {cell!r}); correct it, or take "
            "another column: --set data.columns.score=NAME"
        )
    path.write_text("text,score\na,1\nb,\n")
    assert len(load_corpus(options, needed=NeededColumns(("score",), (), {"score": "float"}))) == 1
