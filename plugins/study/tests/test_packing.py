"""Finished runs in one file, for another machine to add to."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from cse_study.execution.folder import StudyFolder, read_json, write_json
from cse_study.execution.jobs import Job, make
from cse_study.execution.packing import pack, unpack
from cse_study.results.scores import scores_of

from cse_core.errors import CseError
from cse_core.runtime.model_files import RUN_FILE
from cse_core.training.run_folder import RESULT
from tests.fixtures.command_line import Cse, refused

TRAINED, LOST, AS_IT_IS, UNDER_WAY = "a" * 16, "b" * 16, "c" * 16, "d" * 16
SCORING = "5" * 16
PAGES = Path(__file__).parents[3] / "docs" / "studies"


@pytest.fixture
def here(tmp_path: Path) -> StudyFolder:
    """A run, a trial that lost, a model that nobody trained, and a run that is not finished."""
    folder = StudyFolder(tmp_path / "here")
    for number, key in enumerate((TRAINED, LOST)):
        dev = {"dev.spearman": 70.0 + number}
        content = {"scores": dev, "chosen_by": "dev.spearman", "steps": 9, "model": "model"}
        write_json(folder.run(key) / RESULT, content)
        (folder.run(key) / RUN_FILE).write_text('[data]\npath = ["/x"]\n[run]\ndevice = "cpu"\n')
    write_json(folder.beside(TRAINED, "facts.json"), {"commit": "c0", "machine": "mine"})
    for key, value in ((TRAINED, 61.5), (AS_IT_IS, 60.5)):
        said = {"model": "/x", "results": {"stsb.test": {"spearman": value}}, "words": ["/x"]}
        said["folder"] = "/x/sts"
        write_json(folder.scores(key, SCORING), said)
    folder.run(UNDER_WAY).mkdir()
    (folder.run(UNDER_WAY) / RUN_FILE).write_text("")
    return folder


def test_what_is_packed_comes_out_again(here: StudyFolder, tmp_path: Path) -> None:
    file, there = tmp_path / "runs.gz", StudyFolder(tmp_path / "there")
    keys = (TRAINED, LOST, AS_IT_IS, UNDER_WAY)
    assert pack(here, keys, file) == 3
    text = gzip.decompress(file.read_bytes()).decode()
    assert "/x" not in text and "mine" not in text
    assert unpack(there, file) == (3, 3)
    for key in keys:
        assert scores_of(there, key, SCORING) == scores_of(here, key, SCORING)
        assert there.trained(key) == here.trained(key)
    facts = read_json(there.beside(TRAINED, "facts.json"))
    assert facts == {"commit": "c0", "run": {"device": "cpu"}}
    assert unpack(there, file) == (0, 3)
    again = tmp_path / "again.gz"
    assert pack(there, keys, again) == 3 and again.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("file", sorted(PAGES.glob("*.gz")), ids=lambda file: file.name)
def test_what_stands_beside_a_page_names_no_folder(file: Path) -> None:
    text = gzip.decompress(file.read_bytes()).decode()
    assert text.count("\n") > 5
    assert not re.search(r'"(folder|file|machine|model)":|"[^"]*\S/\S+/\S+"', text)


def test_a_run_that_is_there_stays(here: StudyFolder, tmp_path: Path) -> None:
    file, there = tmp_path / "runs.gz", StudyFolder(tmp_path / "there")
    pack(here, [TRAINED], file)
    write_json(there.run(TRAINED) / RESULT, {"steps": 3})
    assert unpack(there, file) == (0, 1)
    assert read_json(there.run(TRAINED) / RESULT) == {"steps": 3}


def test_a_run_that_others_start_from_needs_its_model(here: StudyFolder, tmp_path: Path) -> None:
    file, there = tmp_path / "runs.gz", StudyFolder(tmp_path / "there")
    pack(here, [TRAINED], file)
    unpack(there, file)
    recipe = {"model": {"name": f"@run:{TRAINED}"}}
    done = make(Job(folder=str(there.path), key=UNDER_WAY, recipe=recipe))
    assert done.status == "failed"
    assert done.line == f"starts from run {TRAINED}, unpacked without its model; delete {TRAINED}"


def test_numbers_of_commands_are_not_packed(cse: Cse, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('summary = "x"\nkind = "command"\ncommand = ["bench", "--json"]\n')
    printed = cse("study", str(file), "--pack", str(tmp_path / "runs.gz"))
    refused(printed, "--pack: is for runs, and this study calls commands or functions")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"key": "../../x", "result": {}, "facts": {}, "scores": {}}, "line 1 is not a run"),
        (
            {"key": TRAINED, "result": {}, "facts": {}, "scores": {"../x": {}}},
            "line 1 is not a run",
        ),
        ({"key": TRAINED}, "line 1 is not a run"),
        (None, "cannot be read: it is not gzipped"),
        ("cut", "was cut short"),
        ("missing", "cannot be read: No such file or directory"),
    ],
)
def test_a_file_of_something_else(line: object, said: str, tmp_path: Path) -> None:
    file, there = tmp_path / "runs.gz", StudyFolder(tmp_path / "there")
    whole = gzip.compress(json.dumps(line).encode() + b"\n")
    if line != "missing":
        file.write_bytes(b"plain" if line is None else whole[:-12] if line == "cut" else whole)
    with pytest.raises(CseError) as caught:
        unpack(there, file)
    assert str(caught.value) == (
        f"--unpack: {said} (got {str(file)!r}); cse study NAME --pack FILE writes such a file"
    )
    assert not there.path.exists()
