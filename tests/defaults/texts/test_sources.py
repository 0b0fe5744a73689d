"""Sources that others bring: a database with options, and names that two of them read."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cse_testkit import failures
from cse_testkit.source_suite import SourceSuite

import cse
from cse_core.errors import CseError
from cse_core.records import SourceSpec
from cse_core.registry.names import source_of
from cse_core.registry.registry import Registered, Registry
from cse_core.texts import DataOptions, Wanted
from cse_defaults.texts import Corpus, load_corpus
from cse_defaults.texts.plugin import cse_sources
from tests.fixtures.methods import refusal


class Database:
    """Rows of a table of an SQLite file: ``notes.db?table=notes``."""

    opened = 0

    def rows(self, name: str, wanted: Wanted) -> Iterator[tuple[str, dict[str, Any]]]:
        table = wanted.options.get("table", "texts")
        try:
            with closing(sqlite3.connect(f"file:{name}?mode=ro", uri=True)) as base:
                base.row_factory = sqlite3.Row
                for number, row in enumerate(base.execute(f'select * from "{table}"'), 1):
                    Database.opened = number
                    yield f"{name}, {table} {number}", dict(row)
        except sqlite3.Error as error:
            raise CseError(f"cannot be read: {error}", where=name) from error

    def commit(self, name: str) -> str:
        return "v1"


SPEC = SourceSpec(
    name="sqlite",
    summary="tables of a database",
    factory=f"{__name__}:Database",
    endings=(".db",),
    parameters=("table",),
)


def registry(*others: SourceSpec) -> Registry:
    toolkit = ("cse-toolkit", "1", "cse-toolkit:texts")
    parts = [Registered(spec, *toolkit) for spec in cse_sources()]
    return Registry([*parts, *(Registered(s, "cse-db", "1", "cse-db:db") for s in (SPEC, *others))])


def load(name: str, **settings: Any) -> Corpus:
    return load_corpus(DataOptions(path=(name,), **settings), registry())


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("notes.db")) as base:
        base.execute("create table notes (body text, stars real)")
        rows = [(f" note {n} of a day", n / 2) for n in range(1, 41)]
        base.executemany("insert into notes values (?, ?)", rows)
        base.commit()
    return "notes.db?table=notes"


def test_a_database_with_options(base: str) -> None:
    corpus = load(base, columns={"text": "body"})
    assert corpus.table.slice(0, 1).to_pylist() == [{"text": "note 1 of a day", "stars": "0.5"}]
    assert (len(corpus), corpus.report.commits) == (40, {base: "v1"})
    assert len(load(base, columns={"text": "body"}, limit=3)) == Database.opened == 3
    columns, rows = cse.read_table(base, registry())
    assert (columns, len(list(rows))) == (["body", "stars"], 40)
    assert refusal(load, "notes.db?tabel=notes") == (
        "notes.db?tabel=notes: has no such option (got 'tabel'); did you mean table?"
    )
    assert refusal(load, "notes.db") == "notes.db: cannot be read: no such table: texts"
    assert refusal(load, "note.db?table=a").startswith("note.db?table=a: no such file; in folder .")
    assert refusal(load, "a.txt?table=a").startswith("a.txt?table=a: has no such option")
    values = {"source": "sqlite", "sample": base, "registry": registry()}
    assert failures(type("Suite", (SourceSuite,), values)) == {}


def test_a_file_of_the_very_name_and_a_source_that_another_has_too(base: str) -> None:
    Path(base).write_text("one\n")
    assert source_of(base, registry()) is None  # a file, and none reads its ending
    Path("a?b=c.txt").write_text("a text\n")
    assert list(load("a?b=c.txt").column("text")) == ["a text"]
    again = SourceSpec(name="base", summary="s", factory="m:C", endings=(".db",))
    with pytest.raises(CseError, match="several sources read it: cse-db/base and cse-db/sqlite"):
        source_of("notes.db", registry(again))
    longer = SourceSpec(name="base", summary="s", factory="m:C", endings=(".notes.db",))
    place = source_of("my.notes.db.gz", registry(longer))
    assert place is not None and place.spec == longer


class Wrong:
    """Places that are none, rows that change, a limit that turns them round, a bare error."""

    calls = 0

    def rows(self, name: str, wanted: Wanted) -> Iterator[tuple[Any, Any]]:
        Wrong.calls += 1
        if name.endswith(".odd"):
            Path(name).read_bytes().decode("ascii")
        yield from [("", {"text": "a"}), ("b", {"text": f"{Wrong.calls} {wanted.limit}"})]

    def pairs(self, split: str) -> list[dict[str, Any]]:
        return [{"sentence1": "a", "score": 1}]


def test_the_kit_finds_what_is_wrong_with_a_source() -> None:
    for spec, expected in (
        (SourceSpec(name="wrong", summary="s", factory=f"{__name__}:Wrong"), {
            "its_rows_are_texts": "a row's place is ''",
            "its_rows_repeat_and_end": "read twice, other rows",
            "its_pairs_are_graded": "dev lacks",
        }),
        (SourceSpec(name="odd", summary="s", factory=f"{__name__}:Wrong", endings=(".odd",)), {
            "what_it_cannot_read_is_one_line": "a broken file raised UnicodeDecodeError",
        }),
    ):  # fmt: skip
        values = {"source": spec.name, "registry": registry(spec)}
        for promise, words in expected.items():
            assert words in failures(type("Suite", (SourceSuite,), values), [promise])[promise]
