"""An index that is searched again and again: in Python, at a prompt, by lines of a pipe."""

import json
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pytest
from cse_search import Index
from cse_testkit import shared_encoder

import cse as api
from cse_core.errors import CseError
from plugins.search.tests.answers import shortened
from tests.fixtures.command_line import Cse

TEXTS = ["a boat on the lake", "a lamp in the garden", "the bell rang", "an old violin plays"]
QUERIES = ["who lights the garden?", "music of the lake"]
MODEL = str(shared_encoder())


@pytest.fixture
def index(cse: Cse, tmp_path: Path) -> Path:
    texts, folder = tmp_path / "texts.txt", tmp_path / "index"
    texts.write_text("\n".join(TEXTS) + "\n")
    assert cse("index", MODEL, str(texts), "--out", str(folder)).code == 0
    return folder


def test_an_index_in_python(index: Path, tmp_path: Path) -> None:
    opened = Index(index)
    assert len(opened) == 4 and not opened.note
    wanted = api.load(MODEL, device="cpu").search(QUERIES, index, top=3, bm25=0.3)
    assert shortened(opened.search(QUERIES, top=3, bm25=0.3)) == shortened(wanted)
    assert type(opened.encoder).__name__ == "FewTextsEncoder"
    (one,) = opened.search(QUERIES[0])
    loaded = api.load(MODEL, device="cpu")
    asked, *rows = loaded.encode([QUERIES[0], *TEXTS], normalize=True)
    cosines = {hit["text"]: hit["cosine"] for hit in one["results"]}
    np.testing.assert_allclose([cosines[text] for text in TEXTS], np.array(rows) @ asked, atol=2e-6)
    with pytest.raises(CseError, match="is blank"):
        opened.search(["", "a"])
    with pytest.raises(CseError, match="must be from 0 to 1"):
        opened.search("a", bm25=2)
    (tmp_path / "texts.txt").write_text("another\n")
    assert "files have changed" in Index(index).note


def test_an_update_changes_nothing_for_an_open_index(cse: Cse, index: Path, tmp_path: Path) -> None:
    opened, before = Index(index), Index(index).search(QUERIES, bm25=0.3)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS[1:]) + "\n")
    assert cse("index", MODEL, "--out", str(index)).code == 0
    assert opened.search(QUERIES, bm25=0.3) == before
    assert len(Index(index)) == 3 and len(opened) == 4


def test_lines_of_a_pipe_are_answered_as_they_come(cse: Cse, index: Path) -> None:
    """Each line at once, blank ones not, in one process that loads no torch."""
    code = "import sys; from cse_cli.main import run; code = run(sys.argv[1:])"
    words = [sys.executable, "-c", f"{code}; print('torch' in sys.modules); sys.exit(code)"]
    words += ["search", MODEL, "--index", str(index)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for query in QUERIES:
            process.stdin.write(f"\n{query}\n")
            answer = json.loads(process.stdout.readline())
            (wanted,) = json.loads(cse(*words[3:], query, "--json").out)["queries"]
            assert answer == wanted and answer["query"] == query
        process.stdin.close()
        assert process.stdout.read() == "False\n"
    assert process.returncode == 0


def test_lines_are_asked_for_at_a_terminal(
    cse: Cse, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = iter(["", *QUERIES])

    def typed(prompt: str) -> str:
        assert prompt == "search> "
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", typed)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    said = cse("search", MODEL, "--index", str(index), "--top", "1")
    assert said.code == 0 and "4 texts of" in said.err and "Ctrl-D ends" in said.err
    assert all(query in said.out for query in QUERIES)
    assert sum(text in said.out for text in TEXTS) in (1, 2)
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(QUERIES[0].encode())))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    by_json = cse("search", MODEL, "--index", str(index), "--json").out
    assert json.loads(by_json)["query"] == QUERIES[0], "lines of JSON, also at a terminal"


def test_other_weights_are_seen(index: Path) -> None:
    """What is kept of the probe is that of the model; another one is loaded, and refused."""
    with pytest.raises(CseError, match="the model has changed since"):
        Index(index, str(shared_encoder(family="electra")))
