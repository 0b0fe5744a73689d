"""What the five papers print: all of it is entered, and every number stands in its study."""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from cse_study.definition.printed import Cell, Printed, read_printed

from cse_core.errors import CseError
from tests.fixtures.studies import definition, names
from tests.shared import shared_path

ROOT = Path(__file__).parents[3]
PAPERS = ("hicl", "iscse", "infocse", "ifcl", "mocose")
STS = ["sts12.test", "sts13.test", "sts14.test", "sts15.test", "sts16.test", "stsb.test",
       "sickr.test"]  # fmt: skip
TRANSFER = ["mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc"]
SLIPS = {("iscse", "first-last average"): 0.1, ("iscse", "CARDS"): 0.033}
"""Printed averages that are not those of their scores, and by how much."""
WITHOUT_STUDY = {"GloVe", "BERT-flow", "IS-BERT", "CT-BERT", "DeCLUTR", "Skip-thought", "BERT",
                 "BERT, mean", "BERT, [CLS]", "BERT-whitening", "VaSCL", "PT-BERT",
                 "as reported, SimCSE", "first-last average", "whitening", "test set"}  # fmt: skip
"""Rows that no point of a study stands beside."""
OF_TEXT = {"hicl/table-13", "hicl/table-14", "infocse/table-5", "iscse/table-9"}
"""Studies whose points are not the printed rows: choices, names of settings, sentences."""


def printed(paper: str) -> tuple[Printed, ...]:
    return read_printed(ROOT / f"plugins/{paper}/cse_{paper}/studies/paper.tsv")


def place_of(place: str) -> str:
    """Return a place as the counts name it: parts of InfoCSE's Table 3 are one table."""
    name = place.partition(",")[0]
    if not name.startswith("Table"):
        return "text and figures"
    return name[:-1] if name.startswith("Table 3") and name[-1].isalpha() else name


def rows_of(file: Path) -> Iterator[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


@pytest.mark.parametrize("paper", PAPERS)
def test_as_many_numbers_are_entered_as_are_printed(paper: str) -> None:
    expected = {row["place"]: (int(row["numbers"]), int(row["deviations"]))
                for row in rows_of(Path(__file__).with_name("printed.tsv"))
                if row["paper"] == paper}  # fmt: skip
    numbers: Counter[str] = Counter()
    deviations: Counter[str] = Counter()
    for table in printed(paper):
        assert len({table.block, *table.columns}) == 1 + len(table.columns)
        numbers[place_of(table.place)] += len(table.cells)
        deviations[place_of(table.place)] += sum("±" in cell.text for cell in table.cells)
    assert {place: (count, deviations[place]) for place, count in numbers.items()} == expected


@pytest.mark.parametrize("paper", PAPERS)
def test_numbers_are_those_that_were_read_from_the_paper(paper: str) -> None:
    wanted: Counter[tuple[str, str]] = Counter()
    for row in rows_of(shared_path("reference/seed-tables") / f"{paper}.tsv"):
        text = "±".join(filter(None, (row["value"], row["spread"])))
        if row["value"] not in ("none", "none in the text", "-"):
            wanted[place_of(row["place"]), text] += 1
    found = Counter((place_of(t.place), cell.text) for t in printed(paper) for cell in t.cells)
    lost = {text for place, text in (wanted - found) if place.startswith("Table")}
    assert not lost
    # Four statements of InfoCSE are sentences in the paper, and stand in other words here.
    assert (wanted - found).total() == (found - wanted).total() <= (4 if paper == "infocse" else 0)


@pytest.mark.parametrize("paper", PAPERS)
def test_printed_averages_are_those_of_their_scores(paper: str) -> None:
    means = 0
    for table in printed(paper):
        for columns, mean in ((STS, "sts.mean"), (TRANSFER, "transfer.mean")):
            if not {*columns, mean} <= {*table.columns}:
                continue
            for label, row in table.rows.items():
                scores = [row[name].value or 0.0 for name in columns]
                gap = abs(sum(scores) / 7 - (row[mean].value or 0.0))
                slip = SLIPS.get((paper, label), 0.0) if table.place == "Table 1" else 0.0
                assert gap <= max(0.0201, slip + 0.001), (table.place, table.block, label, gap)
                means += 1
    assert means == {"hicl": 63, "iscse": 36, "infocse": 0, "ifcl": 16, "mocose": 23}[paper]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_is_that_of_a_study(paper: str) -> None:
    tables = printed(paper)
    studies = [definition(name) for name in names(paper)]
    of_studies = {study.study.source for study in studies}
    numbered = {table.place for table in tables if table.place.startswith(("Table", "Figure"))}
    assert {place for place in numbered if "," not in place} <= of_studies
    for study in studies:
        if study.name in OF_TEXT or study.study.kind == "function":
            continue
        labels = {study.row(label) for label in study.labels}
        for table in study.printed:
            if table.block != "text":
                assert {*table.rows} - labels <= WITHOUT_STUDY, study.name


def test_what_is_no_table_of_a_paper_is_refused(tmp_path: Path) -> None:
    mistakes = {
        "Table 1\ta\nx\t1\n": "line 1: no head of a table",
        "Table 1 | b\ta\n\nTable 2 | b\ta\tc\nx\t1\n": "line 4: 1 cells for 2 columns",
        "Table 1 | b\ta\nx\t1\nx\t2\n": "line 3: row 'x' is there twice",
    }
    for number, (text, words) in enumerate(mistakes.items()):
        file = tmp_path / f"{number}.tsv"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(CseError, match=words):
            read_printed(file)
    assert Cell.of("74.53±1.8") == ("74.53±1.8", 74.53, 1.8)
    assert Cell.of("0.3236", 100).value == pytest.approx(32.36)
    assert Cell.of("28,475").value == 28475 and Cell.of("5e-6").value == 5e-6
    assert Cell.of("38K") == ("38K", None, None)
