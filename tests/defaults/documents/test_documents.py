"""Documents: titles, passages under their headings, what is left out, and folders walked."""

import gzip
import json
import os
import re
import socket
from pathlib import Path

import numpy as np
import pytest

import cse as api
from cse_core.errors import CseError
from cse_core.texts import Wanted
from cse_core.words import count_words
from cse_defaults.documents.document import MAX_BYTES, Document, read_document
from cse_defaults.documents.passages import PASSAGE, sentences
from cse_defaults.documents.source import Documents, has_documents
from tests.fixtures.command_line import Cse
from tests.fixtures.documents import folder_of
from tests.shared import shared_path


def read(folder: Path, text: str, name: str = "a.md") -> Document:
    (folder / name).write_text(text)
    return read_document(folder / name)


def rows_of(folder: Path, unit: str = "sentence") -> tuple[list[dict[str, str]], list[str]]:
    source = Documents()
    rows = [row for _, row in source.rows(str(folder), Wanted(unit=unit))]  # type: ignore[arg-type]
    return rows, source.seen.messages


def test_a_folder_becomes_rows(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "docs")
    assert has_documents(str(folder)) and not has_documents(str(folder / "sub" / ".git" / "x"))
    rows, notes = rows_of(folder)
    boat = "A boat sails on the sea.\n- one\n- two\na | b\nc | d"
    assert [tuple(row.values()) for row in rows] == [
        (boat, "left out", "a.md", "Boats", "6"),
        ("The judge spoke. Nobody heard.", "c", "c.txt", "", "1"),
        ("A lamp in the garden.\nSecond & last", "no", os.path.join("sub", "b.HTML"), "Lamps", "2"),
    ]
    assert list(rows[0]) == ["text", "title", "document", "headings", "line"]
    assert notes == [
        "1 of 4 is left out: not UTF-16 (bad.txt); convert it, for example: iconv -f LATIN1 -t "
        "UTF-8 OLD > NEW",
        "files of other kinds are left out: 1 .pdf",
        "passed over: 1 hidden",
        "left out beside the text of 1 HTML page: 7 letters (navigation, headers, footers, "
        "banners, scripts, styles)",
        "3 documents in 3 passages of at most 120 words",
    ]
    whole, _ = rows_of(folder, "document")
    assert whole[0]["text"] == f"Boats\n{boat}"
    assert rows_of(folder / "a.md")[0][0]["document"] == "a.md"


def test_commands_read_a_folder_through_the_source(cse: Cse, tmp_path: Path) -> None:
    folder = str(folder_of(tmp_path / "docs"))
    shown = json.loads(cse("data", "show", folder, "--json").out)
    assert shown["columns"] == ["text", "document", "title", "headings", "line"]
    plan = api.plan(data=folder, dev=folder, options={"train.batch_size": 2})
    assert plan.composition.facts.rows == 3
    assert not [line for line in plan.warnings if "leaves aside" in line]
    found = json.loads(cse("search", "starter", "boats", "--data", folder, "--json").out)
    first = found["queries"][0]["results"][0]
    assert (first["title"], first["headings"]) == ("left out", "Boats")
    assert first["text"].startswith("A boat")
    assert cse("encode", "starter", folder, "--out", str(tmp_path / "v.npy")).code == 0
    assert np.load(tmp_path / "v.npy").shape == (3, 256)


TITLES = {
    "a.html": ("<html><head><title>Valve</title><body><h1>Old</h1>It leaks.</html>", "Valve"),
    "b.html": ("<h1>Old<br>pump</h1>It <svg><title>no</title></svg>runs.", "Old pump"),
    "c.html": ("<title> </title><p>It runs.", "c"),
    "d.html": (f"<title>{'x' * 300}</title>It runs.", "x" * 200),
    "a.md": ('---\ntitle: ""\ntags: [x]\n---\nIt leaks.', "a"),
    "b.md": ("---\ntitle: >-\n  Two\n  words\n--- \nIt leaks.", "Two words"),
    "c.md": ("---\ntitle: 'It''s here' # now\n---\nIt leaks.", "It's here"),
    "d.md": ('+++\ntitle = "Pump"\n+++\nIt leaks.', "Pump"),
    "e.md": ("---\ntitle: Pumps: a guide\n---\n# Pump\n\nIt leaks.", "Pumps: a guide"),
    "f.md": ("---\nA text.\n\n---\nIt leaks.", "f"),
    "g.md": ("## Old *pump*\n\nIt leaks.", "Old pump"),
    "h.md": ("---\nparts: {title: no}\ntitle: null\n---\n<h1 align=x>Pump</h1>\n\nIt.", "Pump"),
    "i.md": ("# Introduction\n\nA.\n\n# Install\n\nB.", "Introduction"),
    "j.md": ("# 1.2\n\nA.\n\n# 1.1\n\nB.\n\n# 1.0\n\nC.", "j"),
    "two words.txt": ("# no heading", "two words"),
    "k.txt": ("Pumps\n=====\nThey leak.", "Pumps"),
}  # fmt: skip


def test_titles_come_from_front_matter_head_heading_and_name(tmp_path: Path) -> None:
    for name, (text, title) in TITLES.items():
        assert read(tmp_path, text, name).title == title, name


MARKDOWN = """# Pumps #

Lead *with* [a link](x "y"), `code` and <b>bold</b><br>text<!-- no -->.
Still it. ![A pump](p.png)

- one
- two
  wrapped

  more
  1. first
  2. second
- [x] three

> quoted

## Parts {#parts}

| name | use |
|------|-----|
| seal |     |
| gear | *turns* |

```py
def f():

    return 1
```

### Seal

It keeps.[^1]

[^1]: A note.

## Empty

# More

    indented
"""


def test_markdown_stays_readable_under_its_headings(tmp_path: Path) -> None:
    made = [(p.line, p.headings, p.text) for p in read(tmp_path, MARKDOWN).passages]
    assert made == [
        (3, "", "Lead with a link, code and bold text. Still it. A pump\n- one\n- two wrapped\n"
                "  more\n  1. first\n  2. second\n- [x] three\nquoted"),
        (19, "Parts", "name | use\nseal |\ngear | turns\ndef f():\n\n    return 1"),
        (32, "Parts > Seal", "It keeps.\nA note."),
        (40, "More", "indented"),
    ]  # fmt: skip


PROSE = {
    "No <script> comes here.\n\nA.\n\nEach ends with </script> here.": 3,
    "<script> tags are none.\n\nA.\n\n</script> ends them.": 3,
    "<script>\nThey stand alone.\n\nA.": 2,
    "<!-- is how a comment begins\n\nA.": 2,
    "<?php begins it\n\nA.": 2,
    "<title> is a tag.\n\nA.\n\nIts end is </title>.": 3,
    "- <style> in a list\n\nA.": 2,
    "`<nav>` and <nav> and </nav>\n\nA.": 2,
}
HIDDEN = {
    "<script>\nvar x = 'gone';\n\nx();\n</script>\n\nA.": "A.",
    "<!-- gone\n\ngone -->\n\nA.": "A.",
    "<div align=center>\n\nB.\n\n</div>\n<style>gone</style>\n\nA.": "B.\nA.",
    "<table><tr><td>B<td>C</table>\n\nA.": "B | C\nA.",
    "<ul><li>B<li>C</ul>": "- B\n- C",
}


def test_tags_in_prose_lose_nothing(tmp_path: Path) -> None:
    for text, count in PROSE.items():
        said = [block.text for block in read(tmp_path, text).blocks]
        words = [word.strip("`-") for word in text.split()]
        assert [*filter(None, words)] == [
            word.strip("`-") for line in said for word in line.split() if word.strip("`-")
        ], text
        assert len(said) == count and said[-1 if count == 2 else 1] == "A.", text
    for text, left in HIDDEN.items():
        assert read(tmp_path, text).passages[0].text == left, text


PAGE = """<!DOCTYPE html>
<html><head><title>Pumps</title><style>p { color: red }</style></head>
<body class="has-sidebar"><a class="skip-link" href="#m">Skip it</a>
<header><h1>Our site</h1></header><nav><ul><li>Home</ul></nav>
<div id="cookie-banner">We eat cookies</div>
<main><article><header><h1>Old <i>pump</i><a class=headerlink>¶</a></h1></header>
<p>It <b>leaks</b>
here.<p hidden>gone<script>gone()</script>
<ul><li>one<li><p>two</p><p>more</p><ol><li>a<li>b</ol></ul>
<table><tr><th>name<th>use<tr><td><p>seal</p><td><p>keeps</p><p>dry</table>
<pre><code>def f():
    return 1
</code></pre>
<h2>Care</h2><div>Oil&nbsp;it &amp; wait.</div></article></main>
<aside>Related</aside><footer>All rights</footer></body></html>
"""


def test_pages_stay_readable_without_what_is_beside_the_text(tmp_path: Path) -> None:
    page = read(tmp_path, PAGE, "a.html")
    assert [(p.line, p.headings, p.text) for p in page.passages] == [
        (7, "Old pump", "It leaks here.\n- one\n- two\n  more\n  1. a\n  2. b\nname | use\n"
                        "seal | keeps dry\ndef f():\n    return 1"),
        (14, "Old pump > Care", "Oil it & wait."),
    ]  # fmt: skip
    assert page.title == "Pumps"
    beside = ("p { color: red }", "Skip it", "Our site", "Home", "We eat cookies", "¶", "gone",
              "gone()", "Related", "All rights")  # fmt: skip
    assert abs(page.left_out - sum(map(len, beside))) <= len(beside)
    lines = read(
        tmp_path,
        "<div id=_table-of-contents>no</div><h2>Care<a href=#c>#</a></h2>"
        "<p>one<br>two<br> <br>three<a href=#x>¶</a><h3>A<br><br>b</h3>c",
        "c.html",
    )
    assert [(p.headings, p.text) for p in lines.passages] == [
        ("", "one two\nthree"), ("A b", "c"),
    ]  # fmt: skip
    most = "<p>x<nav>no</nav><div class=menu>" + "much " * 50
    assert read(tmp_path, most, "b.html").passages[0].text == "x\n" + ("much " * 50).strip()


ENCODED = {
    "a.html": ('<meta charset="windows-1251">Насос', "cp1251", "Насос"),
    "b.html": ('<meta http-equiv=Content-Type content="text/html; charset=Shift_JIS">ポンプ',
               "shift_jis", "ポンプ"),
    "c.html": ("<meta charset=latin1>“pump”", "cp1252", "“pump”"),
    "d.html": ("Насос", "utf-16", "Насос"),
    "e.html": ('<?xml version="1.0" encoding="koi8-r"?><p>Насос', "koi8-r", "Насос"),
    "f.md": ("Насос", "utf-8-sig", "Насос"),
    "g.txt": ("Насос", "utf-16", "Насос"),
}  # fmt: skip
REFUSED = {
    "a.html": (b"<meta charset=nothing>x", "not NOTHING"),
    "b.html": (b"<meta charset=utf-8>caf\xe9", "not UTF-8"),
    "c.md": (b"caf\xe9", "not UTF-8"),
    "d.txt": (b"a\0b", "contains a NUL byte, so it is not text"),
    "e.md": (b"---\ntitle: Pump\n---", "contains no text"),
    "f.html": (b"<nav>no</nav>", "contains no text"),
    "g.txt": (b"", "the file is empty"),
    "h.html": (b"<div>" * 3000 + b"x", "elements stand more than 2,000 deep in each other"),
    os.fsdecode(b"caf\xe9.md"): (b"A text.", "its name is not UTF-8"),
}  # fmt: skip


def test_encodings_are_read_as_declared_and_others_refused(tmp_path: Path) -> None:
    for name, (text, encoding, said) in ENCODED.items():
        (tmp_path / name).write_bytes(text.encode(encoding))
        assert read_document(tmp_path / name).passages[0].text == said, name
    for name, (data, what) in REFUSED.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(CseError) as error:
            read_document(tmp_path / name)
        assert error.value.what == what, name
    with (tmp_path / "z.txt").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(CseError, match="more than 64 MiB"):
        read_document(tmp_path / "z.txt")


def test_passages_are_even_and_of_whole_sentences(tmp_path: Path) -> None:
    spoken = [f"Sentence {n} tells {'more and ' * (n % 7)}more." for n in range(60)]
    made = read(tmp_path, " ".join(spoken), "a.txt").passages
    assert " ".join(p.text for p in made).split() == " ".join(spoken).split()
    assert all(p.text.endswith("more.") for p in made)
    sizes = [count_words(p.text) for p in made]
    assert max(sizes) <= PASSAGE and min(sizes) > PASSAGE / 2
    words = [f"word{n}" for n in range(5 * PASSAGE // 2)]
    made = read(tmp_path, "short\n\n" + " ".join(words) + "\n\nend\n", "a.txt").passages
    assert " ".join(p.text for p in made).split() == ["short", *words, "end"]
    assert len(made) == 3 and max(count_words(p.text) for p in made) <= PASSAGE
    made = read(tmp_path, "猫" * 500, "a.txt").passages
    assert "".join(p.text for p in made) == "猫" * 500 and len(made) == 3
    mixed = "我们在上海的办公室讨论这个问题。We met there. " * 30
    made = read(tmp_path, mixed, "a.txt").passages
    assert "".join(p.text for p in made).replace(" ", "").replace("\n", "") == mixed.replace(
        " ", ""
    )
    assert all(p.text.endswith((".", "。")) for p in made) and len(made) > 3
    code = "```\n" + "".join(f"line {n} of it\n" for n in range(200)) + "```"
    made = read(tmp_path, code).passages
    assert [p.text.split("\n")[0] for p in made][1] == f"line {made[1].line - 2} of it"
    letters = "x" * 100_000
    assert "".join(p.text for p in read(tmp_path, letters, "a.txt").passages) == letters
    long = ["a" * 1000 + ".", "He came at 5 p.m. by Dr. Ray's car.", "B" * 2000 + "."]
    assert [part.strip() for part in sentences(" ".join(long) + " ")][1] == long[1]


PLAIN = """Pumps 1.2
=========

Since 1.1
---------

 * A seal that is long enough to be
   wrapped
 * gears
2) oil

Date: today
From: the one who wrote these lines
To: you
And: me

VALVES

They open when the water in the tank
stands high, and close again when it
has gone.
----
name   use
----------
seal   keeps

NOT THIS.

Since 1.0
---------
Nothing.
"""


def test_plain_text_keeps_its_lists_lines_and_headings(tmp_path: Path) -> None:
    document = read(tmp_path, PLAIN, "a.txt")
    assert document.title == "Pumps 1.2"
    assert [(p.line, p.headings, p.text) for p in document.passages] == [
        (7, "Since 1.1", "* A seal that is long enough to be wrapped\n* gears\n2) oil\n"
                         "Date: today\nFrom: the one who wrote these lines\nTo: you\nAnd: me"),
        (19, "Since 1.1 > VALVES",
         "They open when the water in the tank stands high, and close again when it has gone.\n"
         "name use\nseal keeps\nNOT THIS."),
        (31, "Since 1.0", "Nothing."),
    ]  # fmt: skip


def test_what_ends_with_a_colon_stands_with_what_it_opens(tmp_path: Path) -> None:
    lines = [f"{'word ' * 24}end{':' * (n % 4 == 3)}" for n in range(40)]
    made = read(tmp_path, "\n\n".join(lines)).passages
    assert "\n".join(p.text for p in made).split("\n") == lines
    assert not any(p.text.endswith(":") for p in made[:-1])
    assert max(count_words(p.text) for p in made) <= PASSAGE
    alone = [f"{'word ' * (PASSAGE - 1)}a:", f"{'word ' * (PASSAGE - 1)}b"]
    assert [p.text for p in read(tmp_path, "\n\n".join(alone)).passages] == alone


def test_headings_alone_and_long_ones_are_text(tmp_path: Path) -> None:
    assert read(tmp_path, "# A\n\n## B\n").passages[0].text == "A\nB"
    long = "word " * 60
    document = read(tmp_path, f"{long}\n---\nmore\n")
    assert (document.title, document.passages[0].headings) == ("a", "")


def escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#+.!|~=&-])", r"\\\1", text)


def test_no_passage_of_articles_crosses_a_heading_or_ends_with_one(tmp_path: Path) -> None:
    with gzip.open(shared_path("data/docs/wiki_en.jsonl.gz"), "rt", encoding="utf-8") as file:
        articles = [json.loads(line) for line, _ in zip(file, range(300), strict=False)]
    count = 0
    for article in articles:
        parts, text_of = [f"# {escaped(article['title'])}"], {}
        for heading, said in article["sections"]:
            heading = " ".join(heading.split())
            parts += [f"## {escaped(heading)}"] * bool(heading)
            parts.append(escaped(" ".join(said)))
            text_of[heading] = text_of.get(heading, "") + " ".join(said)
        document = read(tmp_path, "\n\n".join(parts))
        assert document.title == " ".join(article["title"].split())
        for passage in document.passages:
            count += 1
            said = "".join(text_of[passage.headings].split())
            assert "".join(passage.text.split()) in said
    assert count > 1000


FOLDER = {
    ".gitignore": "build/\n*.log.md\n!keep.log.md\ntop.md\n[\n" + "*a" * 30,
    "sub/.gitignore": "!top.md\nlocal.md\n", "top.md": "", "sub/top.md": "A.", "sub/local.md": "",
    "build/a.md": "", "a.log.md": "", "keep.log.md": "A.", "node_modules/x/README.md": "",
    "env/pyvenv.cfg": "", "env/lib/a.txt": "", ".hidden.md": "", ".git/a.md": "", "a.md": "A.",
    "set/state.json": "", "set/README.md": "", "model/modules.json": "", "model/config.json": "",
    "model/README.md": "", "x.py": "", "code/x.py": "",
}  # fmt: skip


def test_a_walk_passes_over_what_is_no_text_of_the_user(tmp_path: Path) -> None:
    for name, text in FOLDER.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    rows, notes = rows_of(tmp_path)
    assert [row["document"] for row in rows] == ["a.md", "keep.log.md", "sub/top.md"]
    assert notes == [
        "1 of 4 is left out: a saved model (model)",
        "files of other kinds are left out: 2 .py",
        "passed over: 4 named by .gitignore, 2 hidden, 1 node_modules, 1 virtual environment, "
        "1 saved data set",
        "3 documents in 3 passages of at most 120 words",
    ]
    with pytest.raises(CseError, match="no document is in this folder .files of other kinds"):
        rows_of(tmp_path / "code")


def test_a_walk_opens_no_pipe_and_follows_no_link_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    (docs / "locked").mkdir(parents=True)
    for path in (tmp_path / "secret.md", docs / "a.md", docs / "locked" / "b.md"):
        path.write_text("A boat sails.")
    os.mkfifo(docs / "pipe.md")
    os.mkfifo(docs / ".gitignore")
    server = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(docs)
    server.bind("socket.txt")
    for name, target in {"out.md": tmp_path / "secret.md", "zero.txt": "/dev/zero",
                         "in.md": "a.md", "gone.md": "nowhere.md", "loop": ".",
                         "link": "/"}.items():  # fmt: skip
        (docs / name).symlink_to(target)
    scan = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    rows, notes = rows_of(docs)
    assert [row["document"] for row in rows] == ["a.md", "in.md"]
    assert notes[0] == (
        "8 of 10 are left out: a linked file (2: out.md, …), not a plain file (2: pipe.md, …), no "
        "file of patterns (.gitignore), a linked folder (link), cannot be read: No such file or "
        "directory (gone.md), permission denied (locked); name it too"
    )
    for name in ("a.md", "in.md"):
        (docs / name).unlink()
    assert has_documents(str(docs)), "what cannot be read is a reason, not another kind of folder"
    with pytest.raises(CseError, match="8 of 8 are left out: .*; name it too"):
        rows_of(docs)
    server.close()


def test_a_path_too_long_leaves_out_itself_alone(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A boat sails.")
    (tmp_path / "long.md").symlink_to("x" * 300)
    here, deep = os.open(tmp_path, os.O_RDONLY), 20
    for _ in range(deep):
        os.mkdir("d" * 250, dir_fd=here)
        here = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
    os.close(os.open("b.md", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    rows, notes = rows_of(tmp_path)
    assert [row["document"] for row in rows] == ["a.md"]
    assert notes[0].startswith("2 of 3 are left out: cannot be read: File name too long (2: ")
