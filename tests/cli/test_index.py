"""The index of published plugins: listed, searched for what is unknown, kept for a day."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cse_cli.plugins import directory, index
from cse_core.errors import CseError
from docs.directory import main
from tests.docs.test_directory import wheel
from tests.fixtures.command_line import Cse, refused
from tests.fixtures.serving import Quiet, serving

ENTRY = {"name": "cse-margin", "version": "0.2.0", "summary": "A margin", "plugins": ["margin"]}
ENTRIES = [{**ENTRY, "commands": ["margin plot"]}, {**ENTRY, "name": "cse-mocose", "plugins": []}]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    for cached in (index.names, directory.known_parts):
        cached.cache_clear()
    yield
    for cached in (index.names, directory.known_parts):
        cached.cache_clear()


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "plugins.json"
    path.write_text(json.dumps({"plugins": ENTRIES}), encoding="utf-8")
    monkeypatch.setenv(index.INDEX_VARIABLE, str(path))
    return path


def test_what_is_published_is_listed_and_told_where_it_is_unknown(named: Path, cse: Cse) -> None:
    found = json.loads(cse("list-plugins", "--available", "--json").out)["plugins"]
    assert [one["name"] for one in found] == ["cse-margin", "cse-mocose"]
    assert (found[0]["installed"], bool(found[1]["installed"])) == (None, True)
    assert "A margin" in cse("list-plugins", "--available").out
    unknown = cse("train", "--loss", "margin", "--data", "starter", "--dry-run")
    refused(unknown, "unknown loss", "cse-margin may have it: pip install cse-margin")
    refused(cse("margin", "plot"), "cse-margin may have it: pip install cse-margin")
    known = {part.distribution: part.install for part in directory.known_parts()}
    assert known["cse-mocose"] == "pip install cse-mocose", "the index lists it"
    assert known["cse-simcse"] == "install cse-simcse", "anybody could register the name"


def test_without_an_index_and_with_a_broken_one(
    named: Path, cse: Cse, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("{}", "no json", '{"plugins": [{"name": "x"}]}', '{"plugins": 3}'):
        named.write_text(text)
        refused(cse("list-plugins", "--available"), "CSE_PLUGIN_INDEX: is not an index of plugins")
        assert index.who_has("margin") == ""
    refused(cse("list-plugins", "--available", "--kind", "loss"), "--kind: is not used by --avail")
    named.unlink()
    refused(cse("list-plugins", "--available"), "does not answer", str(named))
    monkeypatch.delenv(index.INDEX_VARIABLE)
    refused(cse("list-plugins", "--available"), "CSE_PLUGIN_INDEX: no index of plugins is named")


def test_a_copy_is_kept_for_a_day_and_for_when_nothing_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CSE_CACHE", str(tmp_path / "cache"))
    asked: list[str] = []

    class Index(Quiet):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = json.dumps({"plugins": ENTRIES}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(Index) as address:
        monkeypatch.setenv(index.INDEX_VARIABLE, f"{address}/plugins.json")
        assert index.names() == frozenset(), "nothing is fetched that nobody asked for"
        assert "cse-margin" in index.who_has("margin") and "cse-margin" in index.who_has("margin")
        assert len(asked) == 1
        index.published()
        assert len(asked) == 2, "a listing is of now"
    (copy,) = (tmp_path / "cache").rglob("*.json")
    os.utime(copy, (0, 0))
    assert len(index.published()) == 2, "the copy, as nothing answers"
    copy.unlink()
    with pytest.raises(CseError, match="the index of plugins does not answer: .*try again online"):
        index.published()


def test_an_index_is_made_of_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path, "cse_margin-0.9.0-py3-none-any.whl")
    wheel(tmp_path, "cse_other-1.0-py3-none-any.whl")
    made = tmp_path / "plugins.json"
    words = ["--wheels", str(tmp_path), "--out", str(tmp_path / "page.md"), "--json", str(made)]
    assert main(words) == 0
    monkeypatch.setenv(index.INDEX_VARIABLE, str(made))
    (one,) = index.published()
    assert (one.name, one.plugins, one.commands) == ("cse-margin", ("margin",), ("data clean",))
