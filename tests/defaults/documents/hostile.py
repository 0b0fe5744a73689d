"""Documents and folders that were made to hang, crash or fill the memory."""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cse_core.errors import CseError
from cse_core.texts import Wanted
from cse_defaults.documents.source import Documents, has_documents

_PEAK = re.compile(r"VmHWM:\s+(\d+)")
_MARKDOWN = {
    "quotes": "> ", "quoted lines": "> > > > > > a\n", "bullets": "- ", "items": "- a\n",
    "numbers": "1. ", "numbers in quotes": "1. > ", "stars": "*", "stars and words": "*a ",
    "half emphasis": "a**b", "mixed emphasis": "*a_", "strikes": "~~a", "opened": "[",
    "closed": "]", "links": "[a](b) ", "half links": "[a](", "angled links": "[a](<b",
    "images": "![", "definitions": "[a]: b\n", "ticks": "`", "half code": "`a", "tags": "<a ",
    "comments": "<!-- ", "instructions": "<?a ", "declarations": "<!A ", "data": "<![CDATA[",
    "entities": "&#9999999999;", "names": "&amp", "backslashes": "\\", "escapes": "\\*",
    "headings": "# a\n", "hashes": "#", "underlined": "a\n=\n", "fences": "```\n",
    "tildes": "~~~a\n", "rules": "---\n", "blank lines": "\n", "spaces": " ", "tabs": "\t",
    "cells": "|a", "rows": "|a|b|\n|-|-|\n", "blocks": "<div>\n\n", "inline blocks": "<i>x\n\n",
    "addresses": "<http://a", "hard breaks": "a  \n", "notes": "[^a]: b\n", "note marks": "[^a]",
    "one word": "x", "words": "word ", "script": "<script> a\n\n", "lists in HTML": "<li>a\n\n",
    "stars in rows": "* * ", "pluses": "+++\n", "nulls": "a\\0", "accents": "e\u0301", "猫": "猫",
    "Thai": "ก็", "emoji": "👩‍👩‍👧", "right to left": "\u202eأ ", "brackets": "[[[]]](",
    "pipes": "||",
}  # fmt: skip
"""What a Markdown file repeats."""
_HTML = {
    "div": "<div>", "text in div": "<div>a ", "b": "<b>", "misnested": "<b><i></b></i>x",
    "tables": "<table><tr><td>x", "cells": "<td>x", "fostered": "<table><b>x", "lists": "<ul><li>x",
    "less": "<", "tags": "<a ", "comments": "<!-- x -->", "half comments": "<!-- x ",
    "entities": "&#9999999999;", "names": "&amp", "ampersands": "&", "data": "<![CDATA[",
    "options": "<option>x", "drawings": "<svg><g>", "foreign": "<svg><p>x", "templates":
    "<template>x", "ends": "</p>", "unknown ends": "</x>", "headings": "<h1>a", "forms":
    "<form><input>x", "nobr": "<nobr>x", "frames": "<frameset>", "terms": "<dl><dt>a<dd>b",
    "buttons": "<button><p>x", "formulas": "<math><mi>x", "types": "<!DOCTYPE html>", "navigation":
    "<nav><div class=nav>x", "asides": "<aside class=menu>x</aside>y", "hidden": "<p hidden>x",
    "breaks": "<br>", "code": "<pre>\n", "lines of code": "<pre><div>x", "spaces": " ", "nulls":
    "&#0;", "halves": "&#xD800;", "words": "word ", "猫": "猫", "scripts": "<script>", "styles":
    "<style>x</style>", "main": "<main>x", "headers": "<header>x", "titles": "<title>x",
    "instructions": "<?a ", "rows": "<tr><td>x<td>y", "sections": "<section><header>x",
}  # fmt: skip
"""What a page repeats."""
_NUMBERED: dict[str, Callable[[int], str]] = {
    "formats in paragraphs.html": lambda n: f"<b id={n}><p>",
    "fonts.html": lambda n: f"<font size={n}><p>x",
    "links.html": lambda n: f"<a href={n}><div>x",
    "elements.html": lambda n: f"<x{n}>",
    "attributes of body.html": lambda n: f"<body a{n}=1>",
    "definitions.md": lambda n: f"[a{n}]: b\n",
    "notes.md": lambda n: f"[^{n}]: b[^{n}]\n\n",
    "ticks.md": lambda n: "`" * (n % 1000) + " ",
    "indents.md": lambda n: "  " * (n % 1000) + "- a\n",
}
_FRONT = {
    "brackets": "title: " + "[" * 100_000, "closed": "a: " + "[" * 50_000 + "]" * 50_000,
    "braces": "{" * 100_000, "dashes": "- " * 50_000, "questions": "? " * 50_000,
    "anchors": "a: &a [*a, *a]\n" * 5000, "deep": "".join(" " * n + "a:\n" for n in range(400)),
    "spaces": "title: " + " " * 100_000 + "x", "quotes": 'title: "' + "x" * 100_000,
    "dots": "+" + "a." * 50_000 + "a = 1", "arrays": "+a = " + "[" * 100_000,
    "tables": "+[" + "a." * 50_000 + "a]", "keys": "".join(f"k{n}: v\n" for n in range(10_000)),
    "laughs": "".join(f"a{n}: &a{n} [*a{n - 1},*a{n - 1}]\n" for n in range(1, 99)),
}  # fmt: skip
"""Front matter; TOML behind a plus."""


def documents(size: int) -> Iterator[tuple[str, bytes]]:
    """Yield hostile documents of about so many letters, each behind its name."""
    for ending, kinds in ((".md", _MARKDOWN), (".html", _HTML)):
        for name, mark in kinds.items():
            yield name + ending, (mark * (size // len(mark))).encode()
    for name in (
        "stars",
        "opened",
        "one word",
        "words",
        "spaces",
        "blank lines",
        "猫",
        "accents",
        "tabs",
    ):
        mark = _MARKDOWN[name]
        yield f"{name}.txt", (mark * (size // len(mark))).encode()
        yield f"{name} below.md", f"# Title\n\n{mark * (size // len(mark))}\n# End\n".encode()
        yield f"{name} in a page.html", f"<p>{mark * (size // len(mark))}<h2>End</h2>".encode()
        yield f"{name} as title.html", f"<title>{mark * (size // len(mark))}</title>x".encode()
        yield f"{name} as heading.md", f"# {mark * (size // len(mark))}\n\nx".encode()
    for name, made in _NUMBERED.items():
        yield name, "".join(map(made, range(size // len(made(9999))))).encode()
    for name, front in _FRONT.items():
        mark = "+++" if front[0] == "+" else "---"
        yield f"{name} before.md", f"{mark}\n{front.removeprefix('+')}\n{mark}\n# A\n\nb\n".encode()
    yield "lazy.md", b"> " * 1000 + b"a\n" * (size // 2)
    yield "columns.md", b"|a" * 1000 + b"\n" + b"|-" * 1000 + b"\n" + b"|c|\n" * (size // 4)
    yield "emphasis.md", b"*a " * (size // 6) + b" a*" * (size // 6)
    yield "nested links.md", b"[" * (size // 6) + b"a" + b"](b)" * (size // 6)
    yield "attribute.html", b'<p title="' + b"x" * size + b'">hello'
    yield "half attribute.html", b'<p title="' + b"x" * size
    yield "attributes.html", b"<p " + b" ".join(b"a%d=1" % n for n in range(size // 9)) + b">hello"
    many = b" ".join(b"a%d=1" % n for n in range(size // 9))
    yield "quoted attributes.html", b'<p title=">" ' + many + b">hello"
    yield "ends of nothing.html", b"<div>" * 1000 + b"</x>" * (size // 4)
    yield "script.html", b"<script>" + b"var x; </scrip " * (size // 15)
    yield "plain.html", b"<plaintext>" + b"x y " * (size // 4)
    yield "cells.html", b"<table><tr>" + b"<td>x" * (size // 5)
    yield "bytes.md", bytes(range(256)) * (size // 256)
    yield "bytes.html", b"<meta charset=latin1>" + bytes(range(1, 256)) * (size // 256)
    yield "charset.html", b"<meta charset=rot13>x"
    yield "charset of none.html", b"<meta charset=" + b"x" * size
    yield "utf-7.html", b"<meta charset=utf-7>+ADw-script+AD4-x"
    yield "wide.txt", b"\xff\xfe" + b"a\0" * (size // 2)
    yield "half wide.txt", b"\xff\xfe" + b"a\0" * (size // 2) + b"a"
    yield "surrogates.md", b"\xed\xa0\x80" * (size // 3)
    yield "empty.md", b""
    yield "packed.md", b"\x1f\x8b" + b"x" * size


def _links(folder: Path) -> None:
    for number in range(100):
        (folder / f"{number}.md").symlink_to(f"{(number + 1) % 100}.md")


def _deep(folder: Path) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(600):
        os.mkdir("d" * 9, dir_fd=here)
        below = os.open("d" * 9, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("a.md", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


def _patterns(text: str) -> Callable[[Path], None]:
    def made(folder: Path) -> None:
        (folder / ".gitignore").write_text(text)
        for number in range(30):
            (folder / f"{'a' * 200}{number}.md").write_text("A boat.")

    return made


def _fifo(name: str) -> Callable[[Path], None]:
    return lambda folder: os.mkfifo(folder / name)


def _linked(name: str, target: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).symlink_to(target)


def _named(name: bytes) -> Callable[[Path], None]:
    return lambda folder: Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("A boat.")


def _folder(name: str, *files: str) -> Callable[[Path], None]:
    def made(folder: Path) -> None:
        (folder / name).mkdir()
        for file in files:
            (folder / name / file).write_text("A boat.")

    return made


def folders() -> dict[str, Callable[[Path], None]]:
    """List hostile folders by name, what makes each beside a document ``a.txt``."""
    made: dict[str, Callable[[Path], None]] = {
        "links in a ring": _links, "a deep path": _deep,
        **{f"a pipe {name}": _fifo(name) for name in
           ("p.md", "p.html", "p.txt", ".gitignore", ".p.md", "modules.json", "pyvenv.cfg")},
        **{f"a link {name} to {target}": _linked(name, target)
           for name in ("l.md", "l.html", "l.txt", ".gitignore", "l")
           for target in ("/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/self/fd", "/", ".",
                          "..", "a.txt", "nowhere", "x" * 300)},
        **{f"a folder {name}": _folder(name, "b.md") for name in
           ("a.md", "b.html", ".git", "node_modules", ".hidden", ".gitignore", "modules.json",
            "pyvenv.cfg", "x" * 255, " ", "-rf", "a?b=c", "*", "a\nb", "\u202e", "state.json")},
        "a virtual environment": _folder("venv", "pyvenv.cfg", "b.md"),
        "a model": _folder("model", "modules.json", "config.json", "README.md"),
        "a saved data set": _folder("set", "state.json", "README.md"),
        **{f"patterns {number}": _patterns(text) for number, text in enumerate((
            "*a" * 60 + "b", "**/" * 60 + "b", "[" * 1000, "!" * 1000, "\\", "/", "*", "**", "!*",
            "a{" * 1000, "[a-" * 100, "*" * 5000, "x" * 100_000, "*a*a*a*a*b", "é"))},
        **{f"a name {name!r}": _named(name) for name in
           (b"caf\xe9.md", b"\xff.txt", b"\n.md", b"\t.html", b"..md", b" .txt", b"-.md", b"~.md",
            b"$HOME.md", b"a" * 250 + b".txt")},
    }  # fmt: skip
    return made


def read(path: Path) -> str:
    """Say in a line what reading a document or folder came to."""
    source = Documents()
    try:
        count = sum(1 for _ in source.rows(str(path), Wanted()))
    except CseError as error:
        return f"refused: {error}"
    return f"{count} passages; {'; '.join(source.seen.messages)}"


def main(place: str, size: str) -> None:
    """Read every document, of so many letters, and every folder; print a line for each.

    That is its name, seconds of the process, the most MiB that the process has had, the outcome.
    """

    def report(name: str, path: Path) -> None:
        start = time.process_time()
        outcome = read(path)
        seconds = time.process_time() - start
        peak = int(_PEAK.findall(Path("/proc/self/status").read_text())[0]) >> 10
        print(repr(name), f"{seconds:.2f}", peak, ascii(outcome), sep="\t", flush=True)

    folder = Path(place)
    for name, data in documents(int(size)):
        (folder / name).write_bytes(data)
        report(name, folder / name)
        (folder / name).unlink()
    for number, (name, make) in enumerate(folders().items()):
        made = folder / str(number)
        made.mkdir()
        (made / "a.txt").write_text("A boat sails.")
        make(made)
        has_documents(str(made))
        report(name, made)


if __name__ == "__main__":
    main(*sys.argv[1:])
