"""``cse data fetch collections``: SMART's files and BEIR's archives become what is read."""

import gzip
import hashlib
import json
from pathlib import Path

import pytest
from cse_evaluation.collection_files import DEV_SPLITS, find_collections
from cse_evaluation.collections import read_collection
from cse_evaluation.raw_collections import smart_documents, smart_judgements, smart_queries

from cse_cli.texts import fetching
from cse_cli.texts.fetching import Sources, _converted, read_sources
from cse_core.errors import CseError
from plugins.evaluation.tests.made_up_web import TABLES, joined, tarred, zipped
from tests.fixtures.command_line import Cse, refused
from tests.shared import shared_path

DOCUMENTS = b""".I 1
.T
slip
streams .
.A
brenckman,m.
.B
j. ae. scs. 25, 1958, 324.
.W
slip
streams .
  an experimental study
.A
of wings .
.I 2
.T
.A
.B
.W
.I 0003
.T
Boats
.W
Boats are
.N
CA581203 JB March 22, 1978  8:28 PM
.X
1\t5\t3
.I 4
.T
Titles Alone
"""
QUERIES = b".I 001\r\n.W\r\nwhat of\r\nwings .\r\n.I 004\r\n.W\r\nboats ?\r\n.A\r\nPrieve, B.\r\n"
JUDGED = b"1 1 3 \n1 2 2\n1 4 -1\n\n02 0003  0 0\n     2     3\t0\t0.000000\n"


def test_files_of_fields() -> None:
    """Two lines that look like marks are text, fields after the text are not, empty ones go."""
    assert list(smart_documents({"x/cran": DOCUMENTS}, file="cran")) == [
        {"_id": "1", "title": "slip streams .", "text": "an experimental study .A of wings ."},
        {"_id": "3", "title": "Boats", "text": "Boats are"},
        {"_id": "4", "title": "Titles Alone", "text": ""},
    ]
    for by_order, ids in ((True, ["1", "2"]), (False, ["1", "4"])):
        made = list(smart_queries({"q": QUERIES}, file="q", by_order=by_order))
        texts = ["what of wings .", "boats ?"]
        assert made == [{"_id": n, "text": t} for n, t in zip(ids, texts, strict=True)]
    made = list(smart_judgements({"r": JUDGED}, file="r", blank=["2"]))
    assert made == [("1", "1", "1"), ("2", "3", "1")]


def table() -> Sources:
    return read_sources(TABLES / "collections.toml")


def beir_zip(name: str) -> bytes:
    documents = [{"_id": "MED-1", "title": "Wings", "text": "a\nb", "metadata": {"url": "x"}},
                 {"_id": "MED-2", "title": "", "text": "boats"}]  # fmt: skip
    queries = [{"_id": "PLAIN-1", "text": "of wings", "metadata": {}}, {"_id": "2", "text": "sea"}]
    judged = "query-id\tcorpus-id\tscore\nPLAIN-1\tMED-1\t2\n"
    splits = [f.options["split"] for f in table().files if f.set_name == name and f.columns]
    texts = {"corpus": documents, "queries": queries}
    return zipped(
        {f"{name}/{part}.jsonl": joined([json.dumps(row) for row in rows])
         for part, rows in texts.items()}
        | {f"{name}/qrels/{split}.tsv": judged.encode() for split in splits}
    )  # fmt: skip


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    """Glasgow's archives and BEIR's, as a user downloads them."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    beir = [url for f in table().files for p in f.places for url in p.urls if "/BEIR/" in url]
    made = {name: beir_zip(name) for url in beir for name in [Path(url).stem]}
    names = {"cran": ("cran.all.1400", "cran.qry", "cranqrel"),
             "cisi": ("CISI.ALL", "CISI.QRY", "CISI.REL"),
             "cacm": ("cacm.all", "query.text", "qrels.text")}  # fmt: skip
    for name, files in names.items():
        texts = zip(files, (DOCUMENTS, QUERIES, JUDGED), strict=True)
        (folder / f"{name}.tar.gz").write_bytes(tarred({f"./{n}": text for n, text in texts}))
    for name, content in made.items():
        (folder / f"{name}.zip").write_bytes(content)
    return folder


@pytest.fixture
def unpublished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take published checksums and numbers of rows away: what is made up has others."""

    def read(path: Path) -> Sources:
        found = read_sources(path)
        free = {"sha256": (), "md5": ()}
        files = tuple(
            file.model_copy(update={
                "rows": None, "places": tuple(p.model_copy(update=free) for p in file.places)
            })
            for file in found.files
        )  # fmt: skip
        return found.model_copy(update={"files": files})

    monkeypatch.setattr(fetching, "read_sources", read)


@pytest.mark.usefixtures("unpublished")
def test_what_is_fetched_is_what_eval_reads(cse: Cse, tmp_path: Path, downloads: Path) -> None:
    there = ("--from", str(downloads), "--data-dir", str(tmp_path / "data"))
    said = cse("data", "fetch", "collections", *there, "--only", "cacm", "--only", "nfcorpus")
    assert said.code == 0, said.err
    made = find_collections(tmp_path / "data/retrieval")
    assert list(made) == ["cacm", "nfcorpus"]
    said = cse("data", "fetch", "collections", *there, "--json")
    assert said.code == 0, said.err
    owners = table().owners
    lock = json.loads(said.out)["files"]
    assert all(lock[f.name]["licence"] == owners[f.owner].licence for f in table().files)
    made = find_collections(tmp_path / "data/retrieval")
    assert set(made) == {file.set_name for file in table().files} and len(made) == 9
    for name in ("cranfield", "cisi", "cacm"):
        found = read_collection(made[name])
        assert list(found.documents) == ["1", "3", "4"]
        wings = {"1": {"1": 1}} | ({"2": {"3": 1}} if name == "cranfield" else {})
        kept = {
            q: {d: n for d, n in row.items() if d != "2"} for q, row in found.judgements.items()
        }
        assert kept == wings
    found = read_collection(made["nfcorpus"])
    assert found.documents == {"MED-1": "Wings a\nb", "MED-2": "boats"}
    assert found.judgements == {"PLAIN-1": {"MED-1": 2}} and found.name == "nfcorpus.test"
    assert read_collection(made["fiqa"], DEV_SPLITS).name == "fiqa.dev"
    listed = json.loads(cse("data", "list", "--data-dir", str(tmp_path / "data"), "--json").out)
    assert all(listed["suites"]["collections"].values())


def test_a_file_with_another_checksum_is_refused(cse: Cse, tmp_path: Path, downloads: Path) -> None:
    there = ("--from", str(downloads), "--data-dir", str(tmp_path / "data"))
    for name, kind in (("scifact", "md5"), ("cranfield", "md5")):
        said = cse("data", "fetch", "collections", "--only", name, *there)
        refused(said, "is not the file whose checksum was published", f"(got '{kind} ")
    assert not (tmp_path / "data").exists()


def test_half_of_a_surrogate_pair_is_refused(downloads: Path) -> None:
    (downloads / "scifact.zip").write_bytes(
        zipped({"scifact/queries.jsonl": b'{"_id": "1", "text": "\\ud83d"}\n'})
    )
    (file,) = (f for f in table().files if f.name == "scifact/queries.jsonl.gz")
    with pytest.raises(CseError, match="scifact/queries.jsonl.gz: has an unexpected form"):
        _converted(
            file, dict(fetching._unpacked("scifact.zip", (downloads / "scifact.zip").read_bytes()))
        )


def test_sets_to_choose(cse: Cse, tmp_path: Path) -> None:
    refused(cse("data", "fetch", "collections", "--only", "scifcat"), "did you mean scifact?")
    for flag in (("--only", "c"), ("--list",), ("--from", "c"), ("--data-dir", "c")):
        refused(cse("data", "fetch", "a/b", *flag), f"{flag[0]}: is for sets of several files")
    shown = cse("data", "fetch", "sts", "--only", "sts12.test", "--list").out
    assert "sts12.test.tsv.gz" in shown and "sts13" not in shown
    for file in table().files:
        assert file.rows and file.reader and all(p.sha256 or p.md5 or "gla.ac.uk" in p.urls[0]
                                                 for p in file.places)  # fmt: skip


def smart_text(rows: list[dict[str, str]], *, repeated: bool) -> bytes:
    lines = []
    for row in rows:
        title = [".T", row["title"], ".A", "x"] if "title" in row else []
        again = [row["title"]] if repeated and title else []
        lines += [f".I {row['_id']}", *title, ".W", *again, row["text"]]
    return joined(lines)


def test_the_measured_collections_come_out_of_their_raw_form() -> None:
    """SMART's files written from the texts that docs/domains.md measured give these very bytes."""
    folder = shared_path("data") / "retrieval"
    for file in table().files:
        name, part = file.name.split("/", 1)
        path = folder / file.name
        if name not in ("cranfield", "cisi") or not path.is_file():
            continue
        text = gzip.decompress(path.read_bytes())
        lines = text.decode("utf-8").splitlines()
        if part.startswith("qrels"):
            raw = joined([" ".join(row.split("\t")) for row in lines[1:]] + ["1 486 -1"])
        else:
            rows = [json.loads(line) for line in lines]
            raw = smart_text(rows, repeated=name == "cranfield")
        whole = file.measured != ""  # of CISI's queries only the judged ones are there
        file = file if whole else file.model_copy(update={"rows": None})
        count, made = _converted(file, {file.options["file"]: raw})
        assert made == text and count == (file.rows or 76)
        assert file.measured in ("", hashlib.sha256(text).hexdigest())
