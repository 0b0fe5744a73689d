"""docs/directory.py: plugins are found on an index by name, and nothing of them is run."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from docs import directory
from tests.fixtures.serving import Quiet, serving

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


def simple(page: str) -> tuple[str, str]:
    """Return a page of the simple API as JSON and as HTML."""
    meta = {"meta": {"api-version": "1.0"}, "name": page}
    if page == "simple":
        links = "".join(f'<a href="{name}/">{name}</a>' for name in FILES)
        return json.dumps({**meta, "projects": [{"name": name} for name in FILES]}), links
    files = [(name, f"../../files/{name}", "2.0.0" in name) for name in FILES[page]]
    table = [{"filename": n, "url": url, "hashes": {}, "yanked": y} for n, url, y in files]
    links = [f'<a href="{url}"{" data-yanked" if y else ""}>{n}</a>' for n, url, y in files]
    return json.dumps({**meta, "files": table}), "".join(links)


@pytest.fixture(params=[True, False], ids=["json", "html"])
def index(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, list[int]]]:
    """An index on this machine, and how many bytes of wheels it sent with each answer."""
    sent: list[int] = []

    class Index(Quiet):
        def do_GET(self) -> None:
            *_, page = (word for word in self.path.split("/") if word)
            status, headers = 200, {}
            if page == "simple" or page in FILES:
                table, html = simple(page)
                body = (table if request.param else html).encode()
                kind = "application/vnd.pypi.simple.v1+json" if request.param else "text/html"
                headers["Content-Type"] = kind
            else:
                whole = b"torn" if "torn" in page else wheel(tmp_path, page)
                wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers["Range"] or "bytes=0-")
                if wanted is None:  # asked of a file that ends too soon
                    self.send_error(416)
                    return
                first, last = wanted.groups()
                start = int(first) if first else max(len(whole) - int(last), 0)
                body = whole[start : int(last) + 1 if first and last else len(whole)]
                status = 206
                place = f"{start}-{start + len(body) - 1}/{len(whole)}"
                headers["Content-Range"] = f"bytes {place}"
                sent.append(len(body))
            self.send_response(status)
            for header, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(body)

    with serving(Index) as address:
        yield f"{address}/simple/", sent


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
    [torn] = printed.err.splitlines()
    assert torn.startswith("cse-torn: ")
    assert sum(sent) < 200_000, "the large module was fetched too"


def test_an_index_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "directory.md"
    out.write_text("as it was")
    assert directory.main(["--index", "http://127.0.0.1:9/simple/", "--out", str(out)]) == 1
    assert out.read_text() == "as it was"
    assert "cannot be asked" in capsys.readouterr().err
