"""What Python people have at hand: tables, lists and generators beside files."""

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from cse_testkit import shared_encoder
from IPython.core.interactiveshell import InteractiveShell

import cse

TEXTS = ["A man eats food.", "A plane flies.", "Dogs run fast."]
FRAME = pd.DataFrame({"query": TEXTS, "pos": [[text] for text in TEXTS[::-1]], "n": [1, 2, None]})
SET = datasets.Dataset.from_dict({"query": TEXTS, "pos": [[text] for text in TEXTS[::-1]]})
PAIRS = [{"sentence1": "a b", "sentence2": "c d", "score": n / 2} for n in range(3)]
ALONE, PAIRED = ("text",), ("text", "positive")
GIVEN: dict[str, tuple[Any, tuple[str, ...] | str]] = {
    "a list": (TEXTS, ALONE),
    "a generator": ((text for text in TEXTS), ALONE),
    "a column": (SET["query"], ALONE),
    "a series": (FRAME["query"], ALONE),
    "an array": (np.array(TEXTS), ALONE),
    "an Arrow array": (pa.array(TEXTS), ALONE),
    "Chinese": (["一只鸟在树上。", "天空很暗。", "他在吃饭。"], ALONE),
    "a frame": (FRAME, (*PAIRED, "n")),
    "a set": (SET, PAIRED),
    "a stream": (SET.to_iterable_dataset(), PAIRED),
    "an Arrow table": (pa.table({"text": TEXTS}), ALONE),
    "columns": ({"anchor": TEXTS, "positive": TEXTS}, PAIRED),
    "rows": ([{"texts": [text, "another one"]} for text in TEXTS], PAIRED),
    "tuples": (pd.DataFrame({"query": TEXTS, "pos": [(text,) for text in TEXTS]}), PAIRED),
    "sets": (
        pd.DataFrame({"query": TEXTS, "pos": [{text} for text in TEXTS]}),
        "row 1: column pos",
    ),
    "a column of bytes": ({"text": [TEXTS[0], *map(str.encode, TEXTS)]}, "row 2: column text hold"),
    "frames": ([FRAME[:1], FRAME[1:]], (*PAIRED, "n")),
    "no list": ([], "data: is an empty list"),
    "no row": (FRAME[:0], "data: is an empty list"),
    "no match": (["corpus.txt"], "corpus.txt: no such file"),
    "no name": (["strater"], "did you mean starter"),
    "a path": ([Path("nowhere.txt")], "no such file"),
    "a file among texts": ([*TEXTS, "more.txt"], "is the name of a file among texts"),
    "texts like names": (pd.Series([*TEXTS[:2], "rename it in settings.json"]), ALONE),
    "words": (["apple", "pear", "plum"], ALONE),
    "paths": ([Path("a"), Path("b")], "a: no such file|neither a file"),
    "no order": (set(TEXTS), "data: has no order"),
    "bytes": (b"a text", "data: is not a list of texts"),
    "a hole": ([TEXTS[0], None], "data, row 2: is not a text"),
    "a number": ([{"text": TEXTS[0]}, 3], "data, row 2: is not a text"),
    "splits": (datasets.DatasetDict(train=SET), "data: has the splits train"),
    "a text as column": ({"text": TEXTS[0]}, "data: must have lists as columns"),
    "columns in columns": ({"a": {"text": TEXTS}}, "data: must have lists as columns"),
    "other lengths": ({"text": TEXTS, "positive": TEXTS[:1]}, "lists of the same length"),
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded_once: None) -> None:
    monkeypatch.setenv("CSE_CACHE", str(tmp_path / "cache"))


def test_what_is_given_is_read_or_refused() -> None:
    for case, (given, wanted) in GIVEN.items():
        if isinstance(wanted, str):
            with pytest.raises(cse.CseError, match=wanted):
                cse.plan(data=given, dev="none")
        else:
            plan = cse.plan(data=given, dev=PAIRS)
            assert (plan.composition.facts.rows, plan.composition.facts.columns) == (3, wanted), (
                case
            )
            assert "dev (4 texts)" not in str(plan) and "dev.spearman" in str(plan), case
    with pytest.raises(cse.CseError, match="dev: is an empty list"):
        cse.plan(data=TEXTS, dev=[])
    with pytest.raises(cse.CseError, match="pairs: is an empty list"):
        cse.evaluate("starter", pairs=[])


def test_a_run_of_a_table_is_opened_and_repeated(tmp_path: Path) -> None:
    model = shared_encoder()
    run = cse.train("pairs", model=model, data=FRAME, dev="none", out=tmp_path / "one", quiet=True)
    corpus = cse.open_run(run.folder).corpus
    assert list(corpus.column("positive")) == TEXTS[::-1]
    again = cse.train(tmp_path / "one", out=tmp_path / "two", quiet=True)
    assert cse.open_run(again.folder).corpus.fingerprint == corpus.fingerprint
    scores = run.evaluate(pairs=pd.DataFrame(PAIRS), quiet=True, no_baselines=True)["results"]
    assert scores["pairs"]["pairs"] == 3


def test_encode_and_search_check_their_texts() -> None:
    model = cse.load("starter")
    for given in (TEXTS, SET["query"], FRAME["query"], (text for text in TEXTS)):
        assert model.encode(given).shape == (3, 256)
    wrong: list[tuple[Any, str]] = [
        ({"a": 1}, "is a table"), (FRAME, "is a table"), ({"a"}, "has no order"), (None, "no"),
        (b"a", "is not a list"), (["a", None], "row 2"), (["a", float("nan")], "row 2"),
        ([1], "row 1"), ([b"a"], "row 1"), ([{"text": "a"}], "row 1"), (["\ud800"], "row 1"),
    ]  # fmt: skip
    for given, said in wrong:
        with pytest.raises(cse.CseError, match=f"texts.*{said}"):
            model.encode(given)
    for data in (TEXTS, SET):
        (found,) = model.search("food", ["", *data] if data is TEXTS else data, top=1)
        row = 2 if data is TEXTS else 1
        assert [(hit["row"], hit["text"]) for hit in found["results"]] == [(row, TEXTS[0])]
    for queries, top in (([], 1), (" ", 1), ("food", 0)):
        with pytest.raises(cse.CseError):
            model.search(queries, TEXTS, top=top)


def test_a_notebook_shows_the_line_and_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    shell = InteractiveShell()
    shell.run_cell("import cse\ncse.plan(data=[])")
    printed = capsys.readouterr().out
    assert "CseError: data: is an empty list" in printed and "Traceback" not in printed
    shown = cse.plan(data=[f"{text} <b>" for text in TEXTS], dev="none")._repr_html_()
    assert "<tr><th>recipe</th><td>default</td></tr>" in shown and "<b>" not in shown
