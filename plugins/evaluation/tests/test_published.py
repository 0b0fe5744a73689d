"""STS as its publishers wrote it, in SentEval's folders: SemEval's files, the benchmark, SICK."""

import gzip
import json
from pathlib import Path

import pytest
from cse_evaluation.pairs import read_pairs
from cse_evaluation.published import find_published, layouts
from cse_evaluation.suites import Sts

from cse_core.errors import CseError
from tests.fixtures.command_line import Cse

HEAD = "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tSemEval_set"
QUOTED = [
    ('He said ""no"".', '"It is ""so""", she said.', 4.2),
    ('"', 'An inch is 2.54 cm (1").', 0.0),
    ('"A whole sentence in quotes."', 'A "word" in quotes', 5.0),
    (
        "It's fine.",
        "caf\N{LATIN SMALL LETTER E WITH ACUTE}, na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve",
        1.5,
    ),
]
"""Sentences with doubled quotes, one that nothing closes, and whole ones in quotes."""


def written(folder: Path, end: str = "\n", mark: str = "", year: str = "STS") -> None:
    """Write the seven sets into a folder, in the folders of SentEval."""

    def put(name: str, lines: list[str]) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((mark + end.join([*lines, ""])).encode())

    for name, layout in layouts().items():
        if "parts" in layout.options:
            for part in layout.options["parts"]:
                inner = f"STS/STS{name[3:5]}-en-test"
                pairs = [f"{a}\t{b}" for a, b, _ in QUOTED]
                put(f"{inner}/{year}.input.{part}.txt", [*pairs, "Not\tjudged"])
                put(f"{inner}/{year}.gs.{part}.txt", [*(f"{s:g}" for *_, s in QUOTED), ""])
        elif name.startswith("stsb"):
            rows = [f"main-news\tMSRpar\t2012test\t{n}\t{s}\t{a}\t{b}"
                    for n, (a, b, s) in enumerate(QUOTED)]  # fmt: skip
            put(f"STS/STSBenchmark/sts-{name[5:]}.csv", rows)
        else:
            rows = [f"{n}\t{a}\t{b}\tNEUTRAL\t{max(s, 1)}\t{part}"
                    for n, (a, b, s) in enumerate(QUOTED)
                    for part in ("TRAIN", "TRIAL", "TEST")]  # fmt: skip
            put("SICK/SICK.txt", [HEAD, *rows])


@pytest.mark.parametrize(
    ("end", "mark", "year"), [("\n", "", "STS"), ("\r\n", "\ufeff", "STS2016")]
)
def test_every_set_is_read_with_its_quotes(tmp_path: Path, end: str, mark: str, year: str) -> None:
    written(tmp_path / "data/downstream", end, mark, year)
    suite = Sts()
    files = suite.locate(tmp_path / "data")
    assert not files.missing
    for pairs in suite.read(files.there):
        parts = len(layouts()[pairs.name].options.get("parts", ("one",)))
        assert len(pairs.pairs) == len(QUOTED) * parts, pairs.name
        for (first, second, score), pair in zip(QUOTED * parts, pairs.pairs, strict=True):
            assert (pair.sentence1, pair.sentence2) == (first, second)
            assert pair.score == (max(score, 1) if pairs.name.startswith("sickr") else score)
    assert files.there["sickr.dev"] == files.there["sickr.test"] != files.there["stsb.dev"]


def test_published_files_are_pairs_and_tables_go_first(cse: Cse, tmp_path: Path) -> None:
    written(tmp_path)
    named = tmp_path / "STS/STSBenchmark/sts-test.csv"
    assert read_pairs(named).name == "stsb.test"
    assert read_pairs(tmp_path / "STS/STS15-en-test").name == "sts15.test"
    shown = cse("eval", "starter", "--pairs", str(named), "--json", "--no-baselines")
    assert json.loads(shown.out)["results"]["stsb.test"]["pairs"] == len(QUOTED)
    mine = tmp_path / "sts15.test.tsv.gz"
    rows = ["score\tsentence1\tsentence2", *(f"{s}\t{a}\t{b}" for a, b, s in QUOTED)]
    mine.write_bytes(gzip.compress("\n".join(rows).encode()))
    assert Sts().locate(tmp_path).there["sts15.test"] == mine
    found = read_pairs(mine).pairs
    assert [(p.sentence1, p.sentence2, p.score) for p in found] == QUOTED, (
        "quotes are text in a tsv"
    )


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    written(tmp_path)
    folder = tmp_path / "STS/STS12-en-test"
    scores = folder / "STS.gs.MSRpar.txt"
    mistakes = {
        "1\n2\n": "line 4: has no score",
        "1\n2\n3\n4\n5\n6\n": "line 6: has no pair of sentences",
        "1\n2\nx\n4\n\n": "line 3: is not a score",
    }
    for text, words in mistakes.items():
        scores.write_text(text, encoding="utf-8")
        with pytest.raises(CseError, match=words.replace(":", r".*")):
            read_pairs(folder)
    scores.unlink()
    assert "sts12.test" not in find_published(tmp_path)
    (tmp_path / "STS/STSBenchmark/sts-dev.csv").write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(CseError, match="2 fields, and its publisher has 7"):
        read_pairs(tmp_path / "STS/STSBenchmark/sts-dev.csv")
