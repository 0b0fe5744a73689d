from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest
from cse_evaluation.sts import score_words
from cse_evaluation.suite import (
    STS_FILES,
    STS_TESTS,
    data_folder,
    find_chinese,
    find_suite,
    locate_suite,
)

from cse_core.errors import CseError
from tests.shared import shared_path

Write = Callable[[str, str | bytes], Path]
TSV = "score\tsentence1\tsentence2\n1\ta\tb\n2\tc\td\n"


@pytest.mark.parametrize("below", ["", "sts/"])
def test_the_folder_itself_or_its_subfolder(write: Write, tmp_path: Path, below: str) -> None:
    for name in ("stsb.test.tsv.gz", "sickr.train.tsv", "stsb.train.tsv"):
        write(f"{below}{name}", TSV)
    write(f"{below}stsb.dev.tsv", TSV)
    write(f"{below}sts12.test.csv", TSV.replace("\t", ","))
    (tmp_path / below / "stsb.test.tsv.gz").unlink()
    suite = find_suite(tmp_path)
    assert [pairs.name for pairs in suite.sets] == ["sts12.test", "stsb.dev"]
    assert suite.folder == tmp_path / below
    assert suite.missing == tuple(name for name in STS_TESTS if name != "sts12.test")


def test_missing_test_files_put_beside_are_taken(write: Write, tmp_path: Path) -> None:
    for name in STS_FILES:
        write(f"{name}.tsv", TSV)
    suite = find_suite(tmp_path)
    assert tuple(pairs.name for pairs in suite.sets) == STS_FILES
    assert suite.missing == ()


def test_where_the_folder_comes_from(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("sts/stsb.dev.tsv", TSV)
    monkeypatch.delenv("CSE_DATA_DIR", raising=False)
    monkeypatch.setattr(platformdirs, "user_data_dir", lambda app: str(tmp_path / app))
    assert data_folder() == (tmp_path / "cse", "default")
    with pytest.raises(CseError, match=r"no such directory \(from default\).*--data-dir DIR"):
        find_suite()
    monkeypatch.setenv("CSE_DATA_DIR", str(tmp_path))
    assert [pairs.name for pairs in find_suite().sets] == ["stsb.dev"]
    assert data_folder("elsewhere") == (Path("elsewhere"), "--data-dir")


def test_nothing_there(write: Write, tmp_path: Path) -> None:
    with pytest.raises(CseError, match=r"no STS file is here .*sts12\.test\.tsv\.gz"):
        find_suite(tmp_path)
    assert set(locate_suite(tmp_path).values()) == {None}
    path = write("file", "x")
    with pytest.raises(CseError, match="this is not a directory"):
        find_suite(path)


def test_the_shared_suite() -> None:
    suite = find_suite(shared_path("data"))
    sizes = {pairs.name: len(pairs.pairs) for pairs in suite.sets}
    known = {"sts12.test": 3108, "sts16.test": 1186, "stsb.test": 1379, "stsb.dev": 1500}
    assert known.items() <= sizes.items()
    assert sizes["sickr.dev"] == 500
    sick = next(pairs for pairs in suite.sets if pairs.name == "sickr.dev")
    assert sick.scale == (1.0, 5.0)


def test_the_chinese_suite(write: Write, tmp_path: Path) -> None:
    with pytest.raises(CseError, match=r"no Chinese file is here .*cstsb\.test\.tsv\.gz"):
        find_chinese(tmp_path)
    write("chinese/cstsb.dev.tsv", TSV)
    suite = find_chinese(tmp_path)
    assert [pairs.name for pairs in suite.sets] == ["cstsb.dev"]
    assert suite.missing == ("cstsb.test",) and suite.folder == tmp_path / "chinese"


def test_the_shared_chinese_files() -> None:
    suite = find_chinese(shared_path("data"))
    assert [(pairs.name, len(pairs.pairs)) for pairs in suite.sets] == [
        ("cstsb.test", 1361), ("cstsb.dev", 1458),
    ]  # fmt: skip
    words = [score_words(pairs) for pairs in suite.sets]
    assert [score.units for score in words] == ["character 1-2-grams"] * 2
    assert [score.tfidf for score in words] == pytest.approx([65.59, 73.48], abs=0.005)
    assert [score.jaccard for score in words] == pytest.approx([58.89, 66.49], abs=0.005)
