"""Markdown, HTML and text documents: their titles, their passages, and what is left out."""

import os
import socket
from pathlib import Path

import pytest
from cse_defaults.texts.documents import PASSAGE, document_files, read_document, read_documents

from cse_core.errors import CseError
from tests.fixtures.documents import folder_of


def test_documents_become_passages(tmp_path: Path) -> None:
    found, others, wrong = document_files(folder_of(tmp_path / "docs"))
    assert [path.name for path in found] == ["a.md", "bad.txt", "c.txt", "b.HTML"]
    assert others == {".pdf": 1} and not wrong
    read = [read_document(path) for path in (found[0], *found[2:])]
    assert [(each.title, *each.passages) for each in read] == [
        ("left out", "Boats A boat sails on the sea. one two a b c d"),
        ("", "The judge spoke. Nobody heard."),
        ("Lamps", "Lamps A lamp in the garden. Second & last"),
    ]
    with pytest.raises(CseError, match="not UTF-8"):
        read_document(found[1])
    long = tmp_path / "long.txt"
    words = [f"word{n}" for n in range(5 * PASSAGE // 2)]
    long.write_text("short\n\n" + " ".join(words) + "\n\nend\n")
    pieces = read_document(long).passages
    assert " ".join(pieces).split() == ["short", *words, "end"]
    assert len(pieces) == 3 and max(len(each.split()) for each in pieces) <= PASSAGE
    long.write_text("猫" * 500)
    pieces = read_document(long).passages
    assert "".join(pieces) == "猫" * 500 and len(pieces) == 3


MARKED = {
    "a.html": ("<html><head><title>Valve</title><body>It leaks.</html>", "Valve", "It leaks."),
    "b.html": ("<nav><li>x<p>It leaks.</p><nav>no</nav>", "", "x It leaks."),
    "c.html": ("<title>A</title><h1>Old<br>pump</h1>It <svg><title>no</title></svg>runs.",
               "Old pump", "Old pump It runs."),
    "d.html": ("<p>It <svg><title>no</title></svg>runs.", "", "It runs."),
    "a.md": ('---\ntitle: ""\ntags: [x]\n---\nIt leaks.', "", "It leaks."),
    "b.md": ("---\ntitle: >-\n  Two\n  words\n--- \nIt leaks.", "Two words", "It leaks."),
    "c.md": ("---\ntitle: 'It''s here' # now\n---\nIt leaks.", "It's here", "It leaks."),
    "d.md": ('+++\ntitle = "Pump"\n+++\nIt leaks.', "Pump", "It leaks."),
    "e.md": ("---\ntitle: Pumps: a guide\n---\n# Pump", "Pumps: a guide", "Pump"),
    "f.md": ("---\nA text.\n\n---\nIt leaks.", "", "A text. It leaks."),
}  # fmt: skip
LEFT_OUT = {"g.md": b"---\ntitle: Pump\n---", "h.html": b"<nav>no</nav>", "i.txt": b"",
            os.fsdecode(b"caf\xe9.md"): b"A text.", "j.txt": b"\xe9", "k.txt": b"\xe9",
            "l.txt": b"\xe9"}  # fmt: skip


def test_marks_and_what_is_left_out(tmp_path: Path) -> None:
    for name, (text, _, _) in MARKED.items():
        (tmp_path / name).write_text(text)
    for name, content in LEFT_OUT.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to("/")
    (tmp_path / "model").mkdir()
    for name in ("modules.json", "config.json", "README.md"):
        (tmp_path / "model" / name).write_text("A model.")
    found, notes = read_documents(tmp_path, "docs")
    read = {each.path.name: (each.title, *each.passages) for each in found}
    assert read == {name: (title, text) for name, (_, title, text) in MARKED.items()}
    assert notes == [
        "docs: 9 of 19 are left out: not UTF-8 (3: j.txt, …), contains no text (2: g.md, …), a "
        r"linked folder (link), a saved model (model), its name is not UTF-8 (caf\udce9.md), the "
        "file is empty (i.txt); convert it, for example: iconv -f LATIN1 -t UTF-8 OLD > NEW"
    ]
    (error,) = document_files(tmp_path / "unreadable")[2].values()
    assert error.what == "cannot be read: No such file or directory"


def test_a_walk_opens_no_pipe_and_follows_no_link_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    (docs / "locked").mkdir(parents=True)
    for path in (tmp_path / "secret.md", docs / "a.md", docs / "locked" / "b.md"):
        path.write_text("A boat sails.")
    os.mkfifo(docs / "pipe.md")
    server = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(docs)
    server.bind("socket.txt")
    for name, target in {"out.md": tmp_path / "secret.md", "zero.txt": "/dev/zero",
                         "in.md": "a.md", "gone.md": "nowhere.md"}.items():  # fmt: skip
        (docs / name).symlink_to(target)
    scan = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found, notes = read_documents(docs, "docs")
    assert [document.path.name for document in found] == ["a.md", "in.md"]
    assert notes == [
        "docs: 6 of 8 are left out: a linked file (2: out.md, …), not a plain file (2: pipe.md, "
        "…), cannot be read: No such file or directory (gone.md), permission denied (locked); "
        "name it too"
    ]
    server.close()


def test_a_path_too_long_leaves_out_itself_alone(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A boat sails.")
    (tmp_path / "long.md").symlink_to("x" * 300)
    here, deep = os.open(tmp_path, os.O_RDONLY), 20
    for _ in range(deep):
        os.mkdir("d" * 250, dir_fd=here)
        here = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
    os.close(os.open("b.md", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    found, (note,) = read_documents(tmp_path, "docs")
    assert [document.path.name for document in found] == ["a.md"]
    assert note.startswith("docs: 2 of 3 are left out: cannot be read: File name too long (2: ")
