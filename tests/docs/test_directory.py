"""docs/directory.py: plugins are found on an index by name, and nothing of them is run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from zipfile import ZipFile

import pytest

from docs import directory

POINTS = "[cse]\nmargin = cse_margin.plugin\n\n[cse.commands]\ndata.clean = cse_margin.c:CLEAN\n"
FILES = {
    "cse-margin": ["cse_margin-0.9.0-py3-none-any.whl", "cse_margin-0.10.0-py3-none-any.whl",
                   "cse_margin-1.0.0rc1-py3-none-any.whl", "cse_margin-2.0.0-py3-none-any.whl"],
    "cse-other": ["cse_other-1.0-py3-none-any.whl"],
    "cse-source": ["cse_source-1.0.tar.gz"],
    "cse-torn": ["cse_torn-1.0-py3-none-any.whl"],
    "csem": ["csem-1.0-py3-none-any.whl"],
}  # fmt: skip
"""Files of each project: 2.0.0 is withdrawn, the other's wheel has no entry point of cse."""


def wheel(folder: Path, name: str) -> bytes:
    """Return a wheel with a large module in front of its metadata."""
    package, version = name.split("-")[:2]
    with ZipFile(folder / name, "w") as made:
        made.writestr(f"{package}/data.bin", bytes(300_000))
        info = f"{package}-{version}.dist-info"
        made.writestr(
            f"{info}/METADATA", f"Name: {package}\nSummary: A | of {version}\n\nSummary: no"
        )
        made.writestr(f"{info}/entry_points.txt", POINTS if "margin" in name else "[x]\na = b\n")
    return (folder / name).read_bytes()


@pytest.fixture(params=[True, False], ids=["ranges", "whole"])
def index(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, list[int]]]:
    """An index on this machine, and how many bytes of wheels it sent with each answer."""
    sent: list[int] = []

    class Index(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            *_, page = (word for word in self.path.split("/") if word)
            status, body = 200, b""
            if page == "simple":
                body = json.dumps({"projects": [{"name": name} for name in FILES]}).encode()
            elif page in FILES:
                files = [
                    {"filename": name, "url": f"../../files/{name}", "yanked": "2.0.0" in name}
                    for name in FILES[page]
                ]
                body = json.dumps({"files": files}).encode()
            else:
                body = b"torn" if "torn" in page else wheel(tmp_path, page)
                if request.param and self.command == "GET":
                    start, stop = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
                    status, body = 206, body[start : stop + 1]
                sent.append(len(body) if self.command == "GET" else 0)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Index)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple/", sent
    server.shutdown()


def test_plugins_of_an_index_are_found_by_name(
    index: tuple[str, list[int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, sent = index
    out = tmp_path / "directory.md"
    assert directory.main(["--index", url, "--out", str(out)]) == 0
    row = "| `cse-margin` | 0.10.0 | A \\| of 0.10.0 | `cse data clean` |"
    assert out.read_text().splitlines()[7:] == [row]
    printed = capsys.readouterr()
    assert printed.out.endswith("directory.md: 1 plugins\n")
    assert printed.err.splitlines() == ["cse-torn: BadZipFile: File is not a zip file"]
    assert "csem" not in printed.err
    if max(sent) < 300_000:
        assert sum(sent) < 200_000, "the large module was fetched too"


def test_an_index_that_does_not_answer_leaves_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "directory.md"
    out.write_text("as it was")
    assert directory.main(["--index", "http://127.0.0.1:9/simple/", "--out", str(out)]) == 1
    assert out.read_text() == "as it was"
    assert "cannot be asked" in capsys.readouterr().err
