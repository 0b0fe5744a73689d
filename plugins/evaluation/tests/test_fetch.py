import gzip
import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cse_evaluation import raw
from cse_evaluation.documents import read_documents
from cse_evaluation.labelled import TRANSFER_TASKS
from cse_evaluation.suites import Sts, Transfer

from cse_cli.texts.fetching import Sources, Web, fetch_file, read_sources
from plugins.evaluation.tests.made_up_web import TABLES, joined, made_up_web, served, tarred
from tests.fixtures.command_line import Cse, refused
from tests.shared import shared_path

NAMES = ("sts", "transfer", "docs")


def table(name: str) -> Sources:
    return read_sources(TABLES / f"{name}.toml")


@pytest.fixture(scope="module")
def web() -> dict[str, bytes]:
    return made_up_web()


@pytest.fixture
def unpublished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take published checksums away: what is made up has others."""
    from cse_cli.texts import fetching

    def read(path: Path) -> Sources:
        found = read_sources(path)
        files = tuple(
            file.model_copy(
                update={"places": tuple(p.model_copy(update={"sha256": ()}) for p in file.places)}
            )
            for file in found.files
        )
        return found.model_copy(update={"files": files})

    monkeypatch.setattr(fetching, "read_sources", read)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data folder."""
    import platformdirs

    monkeypatch.setattr(platformdirs, "user_data_dir", lambda app: str(tmp_path / "home" / app))
    return tmp_path / "home/cse"


@pytest.fixture
def here(cse: Cse, home: Path, monkeypatch: pytest.MonkeyPatch) -> Cse:
    """The command with the user's data folder in place of CSE_DATA_DIR."""
    monkeypatch.delenv("CSE_DATA_DIR")
    return cse


@pytest.mark.usefixtures("unpublished")
def test_what_is_fetched_is_where_and_what_the_suites_read(
    here: Cse, home: Path, web: dict[str, bytes]
) -> None:
    with served(web) as (address, asked):
        for name in NAMES:
            said = here("data", "fetch", name, "--from", address)
            assert said.code == 0, said.err
            owners = table(name).owners.values()
            assert all(f"{owner.name}; licence: {owner.licence}" in said.out for owner in owners)
    assert len(asked) == len(set(asked)) == len(web)  # each download once
    suite = Sts()
    sets = suite.read(suite.locate(home).there)
    assert tuple(pairs.name for pairs in sets) == Sts.names
    assert {p.name: len(p.pairs) for p in sets}["sts16.test"] == 1186
    assert sets[0].pairs[0].subset == "MSRpar"
    assert next(p for p in sets if p.name == "sickr.test").scale == (1.0, 5.0)
    labelled = Transfer()
    tasks = labelled.read(labelled.locate(home).there)
    assert tuple(task.name for task in tasks) == TRANSFER_TASKS
    by_name = {task.name: task for task in tasks}
    assert set(by_name["trec"].labels) == {"NUM", "LOC", "DESC"}
    assert by_name["mr"].texts[0].startswith("clich\N{LATIN SMALL LETTER E WITH ACUTE}s, The dog")
    assert by_name["mrpc"].texts[0].startswith('"The dog')
    news = read_documents(home / "docs/bbc_news.jsonl.gz")
    assert (len(news), news.untitled) == (40, 0)
    wiki = read_documents(home / "docs/wiki_en.jsonl.gz")
    assert len(wiki) == 3 * 64 and "Place 0 & 0" in wiki.titles
    listed = json.loads(here("data", "list", "--json").out)["suites"]
    assert all(listed["sts"].values()) and all(listed["transfer"].values())


@pytest.mark.usefixtures("unpublished")
def test_the_lock_file_trusts_the_first_fetch_alone(
    here: Cse, home: Path, web: dict[str, bytes]
) -> None:
    with served(web) as (address, _):
        said = here("data", "fetch", "sts", "--from", address)
        assert (
            said.code == 0 and said.out.count("not the copy that the documentation measured") == 5
        )
    lock = json.loads((home / "sts/fetched.json").read_text(encoding="utf-8"))
    assert set(lock) == {file.name for file in table("sts").files}
    for file in table("sts").files:
        entry = lock[file.name]
        text = gzip.decompress((home / "sts" / file.name).read_bytes())
        assert entry["sha256"] == hashlib.sha256(text).hexdigest() != file.measured
        assert entry["rows"] == file.rows and entry["revision"] == file.places[0].revision
        assert entry["licence"] == table("sts").owners[file.owner].licence
        (url,) = entry["downloads"]
        assert url == file.places[0].urls[0]
    path = next(path for path in web if path.endswith("STS2012-en-test.zip"))
    other = {**web, path: next(web[p] for p in web if p.endswith("STS2013-en-test.zip"))}
    before = (home / "sts/sts12.test.tsv.gz").read_bytes()
    with served(other) as (address, asked):
        said = here("data", "fetch", "sts", "--from", address)
        assert said.code == 0 and not asked and said.out.count(" there ") == 9
        said = here("data", "fetch", "sts", "--from", address, "--force")
        assert said.code == 2 and "is not what it was when it was fetched first" in said.errors[-1]
        assert "fetched.json" in said.errors[-1]
    assert (home / "sts/sts12.test.tsv.gz").read_bytes() == before
    (home / "sts/stsb.dev.tsv.gz").write_bytes(gzip.compress(b"mine\n"))
    said = here("data", "fetch", "sts").out
    assert "changed: not what was fetched" in said and "first fetch" in said


def test_a_file_that_is_not_the_published_one_is_refused(
    here: Cse, home: Path, web: dict[str, bytes]
) -> None:
    """By its checksum, and by its number of rows; what was whole before it is kept."""
    path = next(path for path in web if path.endswith("TREC_10.label"))
    for held, words, missing in (
        ({**web, path: b"NUM:dist How far ?\n"}, "has 1 rows, not the 500", "trec.test"),
        (web, "msr_paraphrase_train.txt: is not the file whose checksum was published",
         "mrpc.train"),
    ):  # fmt: skip
        with served(held) as (address, _):
            said = here("data", "fetch", "transfer", "--from", address)
        assert said.code == 2 and words in said.errors[-1]
        assert (home / "transfer/mr.tsv.gz").is_file()
        assert not (home / f"transfer/{missing}.tsv.gz").exists()


@pytest.mark.usefixtures("unpublished")
def test_a_login_page_or_nothing_is_never_pinned(
    here: Cse, home: Path, web: dict[str, bytes]
) -> None:
    """In place of a file or an archive; what was pinned without rows is asked for again."""
    page = b"\n<!DOCTYPE html><html><body>Please log in</body></html>"
    for content, words in ((page, "sends a web page in its place"), (b"{}", "is damaged")):
        with served(dict.fromkeys(web, content)) as (address, _):
            refused_ = here("data", "fetch", "docs", "--from", address)
        assert refused_.code == 2 and words in refused_.errors[-1]
        assert not home.exists()
    pages = {path: held if path.endswith(".zip") else b"moved" for path, held in web.items()}
    with served(pages) as (address, _):
        said = here("data", "fetch", "docs", "--from", address)
    assert said.code == 2 and "wiki_en.jsonl.gz: has no rows" in said.errors[-1]
    wiki, lock = home / "docs/wiki_en.jsonl.gz", home / "docs/fetched.json"
    assert not wiki.exists()
    pinned = json.loads(lock.read_text(encoding="utf-8"))
    pinned[wiki.name] = {**pinned["bbc_news.jsonl.gz"], "rows": 0, "downloads": {}}
    lock.write_text(json.dumps(pinned), encoding="utf-8")
    wiki.write_bytes(gzip.compress(b"\n"))
    with served(web) as (address, _):
        assert here("data", "fetch", "docs", "--from", address).code == 0
    assert len(read_documents(wiki)) == 3 * 64


def test_without_a_network_one_line_says_what_to_put_where(
    here: Cse, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def refuse(request: object, timeout: float) -> None:
        calls.append(str(getattr(request, "full_url", "")))
        raise OSError("no route to host")

    monkeypatch.setattr("cse_cli.texts.fetching.urlopen", refuse)
    said = here("data", "fetch", "sts")
    assert said.code == 2 and said.out == ""
    (line,) = (line for line in said.errors if not line.startswith("fetching "))
    assert line.startswith("error: sts: sts12.test.tsv.gz and 8 more cannot be fetched: ")
    assert "no route to host" in line
    for file in table("sts").files:
        assert file.name in line
    assert f" into {home / 'sts'} (sts12.test.tsv.gz: columns subset, score, " in line
    assert len({call.split("/")[2] for call in calls}) == len(calls)  # each host is asked once
    assert not home.exists()


@pytest.mark.usefixtures("unpublished")
def test_downloads_in_a_folder(
    here: Cse, home: Path, tmp_path: Path, web: dict[str, bytes]
) -> None:
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    for path, content in web.items():
        if path.endswith(("STS2012-en-test.zip", "SICK.zip")):
            (downloads / path.rpartition("/")[2]).write_bytes(content)
    said = here("data", "fetch", "sts", "--from", str(downloads), "--json")
    assert said.code == 2 and "STS2013-en-test.zip is not in" in said.errors[-1]
    fetched = json.loads(said.out)
    assert set(fetched["files"]) == {"sts12.test.tsv.gz", "sickr.test.tsv.gz", "sickr.dev.tsv.gz"}
    assert fetched["missing"][0] == "sts13.test.tsv.gz"
    mine = home / "sts/stsb.test.tsv.gz"
    mine.write_bytes(b"mine")
    for path, content in web.items():
        (downloads / path.rpartition("/")[2]).write_bytes(content)
    said = here("data", "fetch", "sts", "--from", str(downloads))
    assert said.code == 0 and "yours: not fetched by this" in said.out
    assert mine.read_bytes() == b"mine"


def test_reviews_become_labelled_texts(tmp_path: Path) -> None:
    names = [(part, label) for part in ("train", "test") for label in ("pos", "neg", "unsup")]
    imdb = {
        f"aclImdb/{part}/{label}/{number}_1.txt": f"A {label} film, {part}.".encode()
        for part, label in names
        for number in (1, 0)
    }
    yelp = {
        "yelp/train.csv": b'"1","Bad, ""very"".\\nYes."\n"2","Good."\n',
        "yelp/test.csv": b'"2","Fine."\n',
    }
    for name, files in (("aclImdb_v1.tar.gz", imdb), ("yelp_review_polarity_csv.tgz", yelp)):
        (tmp_path / name).write_bytes(tarred(files))
    found = {}
    for file in table("reviews").files:
        (place,) = file.places
        assert len(place.sha256[0]) == 64
        free = {"places": (place.model_copy(update={"sha256": ()}),), "rows": None}
        content, _ = fetch_file(file.model_copy(update=free), Web(str(tmp_path)), None)
        lines = map(json.loads, gzip.decompress(content).decode().splitlines())
        found[file.name.partition(".jsonl")[0]] = [tuple(line.values()) for line in lines]
    for part in ("train", "test"):
        films = [(label, f"A {label} film, {part}.") for label in ("neg", "neg", "pos", "pos")]
        assert found[f"imdb.{part}"] == films
    assert found["yelp.train"] == [("1", 'Bad, "very". Yes.'), ("2", "Good.")]
    assert found["yelp.test"] == [("2", "Fine.")]


def test_of_an_archive_only_what_is_named_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = {"sentence1": "\u82f1\u6587", "sentence2": "\u82f1\u8bed", "label": "1"}
    lines = "".join(f"{json.dumps({**pair, 'label': label})}\n" for label in "10")
    with zipfile.ZipFile(tmp_path / "simclue_public.zip", "w") as archive:
        archive.writestr("simclue_public/train_pair.json", "x" * 9_000)
        for name in ("test_public", "dev"):
            archive.writestr(f"simclue_public/{name}.json", lines)
    monkeypatch.setattr("cse_cli.texts.fetching._MAX_BYTES", 5_000)
    for file in table("simclue").files:
        content, record = fetch_file(file, Web(str(tmp_path)), None)
        rows = [json.loads(line) for line in gzip.decompress(content).decode().splitlines()]
        assert record["rows"] == 2 and [row["score"] for row in rows] == [1.0, 0.0]
        assert rows[0]["sentence1"] == pair["sentence1"]


def test_what_is_no_set_to_fetch(here: Cse, tmp_path: Path) -> None:
    refused(here("data", "fetch", "stss"), "unknown set", "did you mean sts?")
    refused(
        here("data", "fetch", "nothing"),
        "there are sts, simclue, transfer, reviews, collections, docs, simcse",
    )
    refused(here("data", "fetch", "sts", "--out", "x.parquet"), "sts is several files")
    folder = tmp_path / "home/cse/sts"
    folder.mkdir(parents=True)
    (folder / "fetched.json").write_text('{"sts12.test.tsv.gz": {}}', encoding="utf-8")
    refused(here("data", "fetch", "sts"), "fetched.json: is damaged", "remove it")


def test_the_list_shows_every_address_pin_and_licence(here: Cse) -> None:
    for name in NAMES:
        shown = here("data", "fetch", name, "--list").out
        for file in table(name).files:
            owner = table(name).owners[file.owner]
            assert file.name in shown and f"{owner.name}; licence: {owner.licence}" in shown
            for place in file.places:
                assert place.urls[0] in shown and place.revision in shown
                assert not place.sha256 or len(place.sha256) == len(place.urls)
        assert json.loads(here("data", "fetch", name, "--list", "--json").out)["folder"] == name


def raw_of_graded(rows: list[list[str]]) -> dict[str, bytes]:
    found: dict[str, list[str]] = {}
    for subset, score, first, second in rows:
        found.setdefault(f"x/STS.input.{subset}.txt", []).append(f"{first}\t{second}")
        found.setdefault(f"x/STS.gs.{subset}.txt", []).append(score)
    return {name: joined(lines) for name, lines in found.items()}


def raw_of_benchmark(rows: list[list[str]]) -> dict[str, bytes]:
    lines = ["\t".join([*row[0].split("/"), "0", *row[1:]]) for row in rows]
    return {f"x/sts-{part}.csv": joined(lines) for part in ("dev", "test")}


def raw_of_sick(rows: list[list[str]]) -> dict[str, bytes]:
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    lines = [
        head,
        *(f"1\t{first}\t{second}\t{score}\t{label}" for label, score, first, second in rows),
    ]
    return {"x/SICK_trial.txt": joined(lines)}


def raw_of_labels(rows: list[list[str]]) -> dict[str, bytes]:
    return {"x": joined([" ".join(row[-2:]) for row in rows])}


REAL: list[tuple[str, str, Callable[[list[list[str]]], dict[str, bytes]]]] = [
    ("sts", "sts12.test.tsv.gz", raw_of_graded),
    ("sts", "sts16.test.tsv.gz", raw_of_graded),
    ("sts", "stsb.test.tsv.gz", raw_of_benchmark),
    ("sts", "stsb.dev.tsv.gz", raw_of_benchmark),
    ("sts", "sickr.dev.tsv.gz", raw_of_sick),
    ("transfer", "sst2.train.tsv.gz", raw_of_labels),
    ("transfer", "sst2.dev.tsv.gz", raw_of_labels),
    ("transfer", "sst2.test.tsv.gz", raw_of_labels),
    ("transfer", "trec.train.tsv.gz", raw_of_labels),
    ("transfer", "trec.test.tsv.gz", raw_of_labels),
]


def test_the_real_sets_come_out_of_their_raw_form_as_they_are_measured() -> None:
    """The rows of a real file, put into the form of its owner, give that very file."""
    from cse_cli.texts.fetching import _converted

    for folder, name, raw_of in REAL:
        text = gzip.decompress((shared_path("data") / folder / name).read_bytes())
        rows = [line.split("\t") for line in text.decode().splitlines()[1:]]
        (file,) = (each for each in table(folder).files if each.name == name)
        count, made = _converted(file, raw_of(rows))
        assert count == len(rows) == file.rows, name
        assert made == text
        assert file.measured == hashlib.sha256(text).hexdigest()


def test_sentences_of_a_paragraph() -> None:
    text = 'Mr. Smith left. "Why?" she asked. The U.S. paid \N{POUND SIGN}3.5m. It is 4 p.m. now.'
    assert raw.sentences_of(text) == [
        "Mr. Smith left.", '"Why?" she asked.', "The U.S. paid \N{POUND SIGN}3.5m.",
        "It is 4 p.m. now.",
    ]  # fmt: skip


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(Exception, match=r"no file STS.input.x.txt in what was fetched, but a.txt"):
        list(raw.graded({"a.txt": b""}, parts=["x"]))


@pytest.mark.usefixtures("unpublished")
def test_a_fetched_set_is_a_dev_set_and_pairs_by_its_name(
    here: Cse, home: Path, tmp_path: Path, sentences: Path, monkeypatch: pytest.MonkeyPatch,
    web: dict[str, bytes],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    train = ("train", "--data", str(sentences), "--dev", "stsb.dev", "--dry-run")
    refused(
        here(*train),
        f"--dev: this set of suite sts is not in {home} (got 'stsb.dev'); `cse data fetch sts`",
    )
    with served(web) as (address, _):
        assert here("data", "fetch", "sts", "--from", address).code == 0
    said = here(*train, "--json")
    assert said.code == 0, said.err
    plan = json.loads(said.out)
    assert plan["settings"]["train"]["dev"] == [str(home / "sts/stsb.dev.tsv.gz")]
    assert plan["evaluation"]["chosen_by"] == "stsb.dev.spearman"
    scored = here("eval", "starter", "--pairs", "sickr.dev", "--json", "--no-baselines")
    assert json.loads(scored.out)["results"]["sickr.dev"]["pairs"] == 500
    (tmp_path / "stsb.dev").write_text("mine", encoding="utf-8")  # a file goes before
    refused(here(*train), "stsb.dev: unknown file type")
