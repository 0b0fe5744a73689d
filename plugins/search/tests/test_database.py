"""An index is whole: damaged, killed, updated by two at once, or while it is read."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cse_search import index as indexes
from cse_search.index import open_index, updating, write_index
from cse_search.reading import Passage, changes, state_of

from cse_core.errors import CseError
from plugins.search.tests.damages import content_of, damages
from tests.fixtures.command_line import Cse, refused

DAMAGES = list(damages())


class Counted:
    """Encodes a text as its length, as a model would be called."""

    similarity = "dot"

    def blocks(self, texts: Iterator[str], *_: Any) -> Iterator[tuple[list[str], Any]]:
        for text in texts:
            yield [text], np.array([[len(text), 1, 2, 3]], np.float32)


def written(path: Path, texts: list[str], kind: str = "int8") -> None:
    passages = [Passage(text, "", "", "t.txt", row, None) for row, text in enumerate(texts, 1)]
    about = {"model": "m", "settings": {"titles": True, "vectors": kind}, "files": [],
             "columns": {}, "stems": None}  # fmt: skip
    encode: Any = Counted()
    with updating(path, "--out") as old:
        state = state_of((passage.file for passage in passages), about["files"])
        write_index(path, encode, passages, about, state, old, progress=lambda *_: None)


def texts_of(path: Path) -> list[str]:
    """Return the texts of an index whose vectors and words are theirs."""
    index = open_index(path)
    texts = [json.loads(line)["text"] for line in index.lines()]
    first = np.concatenate(list(index.vectors.blocks()))[:, 0]
    assert first == pytest.approx([len(text) for text in texts], rel=0.01)
    for row, text in enumerate(texts):
        assert index.words.scores(text)[row] > 0
    return texts


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_a_damaged_index_is_refused_in_one_line(cse: Cse, tmp_path: Path, step: int) -> None:
    assert len(DAMAGES) >= 200
    texts, index, other = tmp_path / "t.txt", tmp_path / "index", tmp_path / "other"
    texts.write_text("a boat\na lamp in the garden\nthe bell\n")
    for folder in (other, index):
        words = ("starter", str(texts), "--out", str(folder), "--vectors", "int8")
        assert cse("index", *words).code == 0
        texts.write_text("a boat\na lamp\nthe bells of the town\nanother\n")
    whole, wrong = shutil.copytree(index, tmp_path / "whole"), []
    for name, damage in DAMAGES[::step]:
        shutil.rmtree(index)
        shutil.copytree(whole, index)
        damage(index, other)
        same = _files(index) == _files(whole)
        said = cse("search", "starter", "boat", "--index", str(index), "--bm25", "0.3")
        lines = said.err.splitlines()
        if not same and (said.code != 2 or len(lines) != 1 or "again" not in lines[0]):
            wrong.append((name, said))
    assert not wrong
    refused(cse("index", "starter", "--out", str(index)), "damaged", "make it again")


def _files(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        if path.is_file() and not path.is_symlink()
        else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("kill", [True, False])
@pytest.mark.parametrize("before", [[], ["old", "a kept text"]])
def test_a_stop_leaves_the_old_index_or_the_new_one(
    tmp_path: Path, before: list[str], kill: bool
) -> None:
    """A process is killed or interrupted at its first change of a file, at the second, and so on.

    The next one removes what is not finished.
    """
    path, new = tmp_path / "index", ["a kept text", "new ones", "and more"]
    seen, number, stopped = set(), 0, True
    while stopped:
        number += 1
        shutil.rmtree(path, ignore_errors=True)
        if before:
            written(path, before)
        child = os.fork()
        if child == 0:
            _stop_at(number, kill)
            try:
                written(path, new)
                os._exit(0)
            finally:  # whatever stops it: a child must not go on as the tests
                os._exit(1)
        stopped = os.waitpid(child, 0)[1] != 0
        there = texts_of(path) if (path / "index.json").exists() else []
        assert there in (before, new)
        seen.add(tuple(there))
        kept = {"index.json", content_of(path).name} if there else set()
        with updating(path, "--out"):
            names = {entry.name for entry in path.iterdir()} - {"texts.jsonl"}
            assert names == {".lock", *kept}
            assert (path / "texts.jsonl").exists() or not (path / "texts.jsonl").is_symlink()
    assert number > 10 and seen == {tuple(before), tuple(new)}


def _stop_at(number: int, kill: bool) -> None:
    left = number

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        changed = event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod")
        if changed or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            left -= 1
            if left == 0 and kill:
                os.kill(os.getpid(), signal.SIGKILL)
            if left == 0:
                raise KeyboardInterrupt

    sys.addaudithook(hook)


def test_one_process_updates_and_others_read(
    cse: Cse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index"
    written(path, ["one", "two words"])
    reader, about = open_index(path), indexes._read_about(path)
    with updating(path, "--out"):
        refused(cse("index", "starter", "--out", str(path)), "updating this index", "has ended")
        texts_of(path)
    written(path, ["three words now"])
    assert [json.loads(line)["text"] for line in reader.lines()] == ["one", "two words"]
    assert next(reader.vectors.blocks())[:, 0] == pytest.approx([3, 9], rel=0.01), (
        "who has it open keeps it"
    )
    read, said = indexes._read_about, iter([about])
    monkeypatch.setattr(indexes, "_read_about", lambda path: next(said, None) or read(path))
    assert texts_of(path) == ["three words now"], "replaced while it was opened"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    with pytest.raises(CseError, match="no index is here"), updating(tmp_path / "other", "--out"):
        raise AssertionError("other files are there")
    with pytest.raises(KeyError), updating(tmp_path / "empty", "--out"):
        raise KeyError
    assert not (tmp_path / "empty").exists()


def test_changes_of_files_are_counted(tmp_path: Path) -> None:
    folder, table = tmp_path / "docs", tmp_path / "t.tsv"
    (folder / "sub").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "between" / "below").mkdir(parents=True)
    below = folder / "between" / "below" / "d.md"
    files = [folder / "a.md", folder / "b.md", folder / "sub" / "c.md", below, table]
    for file in (*files, folder / "bad.md"):
        file.write_text("text")
    state = json.loads(json.dumps(state_of(map(str, files), [str(folder), str(table)])))
    assert changes(state) == {}
    (folder / "a.md").write_text("other text")
    (folder / "b.md").unlink()
    (folder / "sub" / "new.md").write_text("x")
    (folder / "sub" / "data.bin").write_text("x")
    (folder / "other").mkdir()
    (folder / "empty" / "new.md").write_text("x")
    (folder / "between" / "new.md").write_text("x")
    os.utime(table, ns=(1, 1))
    assert changes(state) == {"changed": 2, "gone": 1, "new": 4}
    shutil.rmtree(folder)
    assert changes(state) == {"changed": 1, "gone": 4}
