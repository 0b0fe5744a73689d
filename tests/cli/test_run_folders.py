"""Runs are found again from anywhere, replaced on purpose alone, and keep their evaluations."""

import errno
import fcntl
import json
import os
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from socket import gethostname
from typing import Any

import pytest
from cse_testkit.tiny import tiny_encoder

from cse_cli.main import run as cse_run
from cse_cli.plugins.installed import Installed
from cse_cli.training.resolving import absolute_path
from cse_core.errors import CseError
from cse_core.files import atomic_folder, lock_folder, remove_stale_files
from cse_engine.run.run_folder import RunFolder
from tests.fixtures.command_line import Cse, refused

SHORT = ("--train.max_steps", "2", "--train.batch_size", "8", "--train.save_steps", "1")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a finished run whose files were named by relative paths."""
    folder = tmp_path_factory.mktemp("trained")
    tiny_encoder(folder / "encoder")
    texts = [f"the {thing} is {how}" for thing in ("dog", "boat", "goal") for how in "abcdefgh"]
    (folder / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    rows = [f"the dog {n}\tthe boat {m}\t{n * m % 5}" for n in range(5) for m in range(5)]
    (folder / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = ("--model", "./encoder", "--data", "texts.txt", "--dev", "pairs.tsv", *SHORT)
        assert cse_run(["train", *words, "--out", "runs/one", "-q"]) == 0
        yield folder


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the run, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(trained / "pairs.tsv", tmp_path)
    return Path(shutil.copytree(trained / "runs/one", tmp_path / "run"))


def test_a_run_goes_on_from_anywhere(cse: Cse, trained: Path, run: Path, tmp_path: Path) -> None:
    recipe = tomllib.loads((run / "run.toml").read_text(encoding="utf-8"))
    assert recipe["data"]["path"] == [str(trained / "texts.txt")]
    assert recipe["train"]["dev"] == [str(trained / "pairs.tsv")]
    assert recipe["model"]["name"] == str(trained / "encoder")
    assert recipe["train"]["precision"] != "auto", "but what it became"
    assert (trained / "runs/latest").readlink() == Path("one")
    read = "pairs.tsv?quotes=no"
    assert absolute_path(read, Installed().registry) == str(tmp_path / read)
    assert cse("train", "--recipe", "run", "--out", "again", "-q").code == 0
    assert not (tmp_path / "latest").exists()
    whole = Path(shutil.move(run / "model", tmp_path / "whole"))
    refused(cse("train", "--resume", "run"), "is finished, and of its model every file is missing")
    (run / "result.json").unlink()
    shutil.rmtree(run / "checkpoints/step-2")
    written = (run / "run.toml").read_text(encoding="utf-8")
    (run / "run.toml").write_text(written.replace("batch_size = 8", "batch_size = 4"))
    refused(cse("train", "--resume", "run"), "train.batch_size: was 8 when the run began (got 4)")
    (run / "run.toml").write_text(written)
    assert cse("train", "--resume", "run", "-q").code == 0
    weights = (tmp_path / "again/model/model.safetensors").read_bytes()
    assert weights == (run / "model/model.safetensors").read_bytes()
    for file in filter(Path.is_file, whole.rglob("*")):
        resumed = run / "model" / file.relative_to(whole)
        if file.name != "README.md":  # which names the run by its folder
            assert resumed.read_bytes() == file.read_bytes(), file


def test_a_folder_that_was_being_replaced_is_put_back(tmp_path: Path) -> None:
    for name in ("step-0", "step-1"):
        with atomic_folder(tmp_path / name) as made:
            (made / "state.json").write_text(name)
    os.replace(tmp_path / "step-0", tmp_path / ".step-0-old-0123abcd")  # killed here
    shutil.copytree(tmp_path / "step-1", tmp_path / ".step-1-old-0123abcd")
    (tmp_path / ".step-0-0123abcd").mkdir()
    remove_stale_files(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-0", "step-1"]
    assert (tmp_path / "step-0/state.json").read_text() == "step-0"


def test_a_run_is_replaced_by_force_alone(cse: Cse, run: Path, tmp_path: Path) -> None:
    said = cse("train", "--resume", "run")
    refused(said, "run 'run' has already finished", "--recipe run --out DIR", "--model run")
    before = (run / "model/model.safetensors").read_bytes()
    words = ("train", "--recipe", "run", "--seed", "5", "--out", "run", "-q")
    refused(cse(*words), "already holds a run", "--resume", "--force replaces it")
    refused(cse(*words, "--train.device", "cuda:99", "--force"), "cuda")
    assert (run / "model/model.safetensors").read_bytes() == before
    (run / "notes.txt").write_text("mine")
    manifest = (run / "model/cse.json").read_text().replace('"origin": null', '"origin": "starter"')
    (run / "model/cse.json").write_text(manifest)
    (run / "model/checksums.json").unlink()
    assert cse(*words, "--force", "--model", "run").code == 0
    assert json.loads((run / "model/cse.json").read_text())["origin"] == "starter"
    assert (run / "model/model.safetensors").read_bytes() != before
    assert (run / "notes.txt").read_text() == "mine"
    assert json.loads((run / "result.json").read_text())["steps"] == 2
    (tmp_path / "other").mkdir()
    (tmp_path / "other/thesis.tex").write_text("dear")
    said = cse("train", "--recipe", "run", "--out", "other", "--force", *SHORT)
    refused(said, "holds other things", "thesis.tex")
    refused(cse("train", "--resume", "other", "--force"), "--force")


def test_evaluations_are_kept_in_the_run(cse: Cse, run: Path, tmp_path: Path) -> None:
    words = ("eval", "starter", "run", "--pairs", "pairs.tsv", "--max-length", "16", "--json")
    said = json.loads(cse(*words).out)
    assert cse("eval", "run", "--pairs", "pairs.tsv").code == 0
    kept = run / "evaluations.jsonl"
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    pairs = [str(tmp_path / "pairs.tsv")]
    assert lines[0]["results"] == said["models"][1]["results"]
    assert lines[0]["options"] == {"pairs": pairs, "max_length": 16}
    assert lines[1]["options"] == {"pairs": pairs}
    assert len(lines) == 2
    (tmp_path / "target").write_text("kept")
    kept.unlink()
    kept.symlink_to(tmp_path / "target")
    said = cse("eval", "run", "--pairs", "pairs.tsv", "--no-baselines")
    assert said.code == 0 and "is not a regular file" in said.err, (
        "nothing is written through links"
    )
    assert (tmp_path / "target").read_text() == "kept"


@pytest.mark.parametrize("locks", [True, False])
def test_two_processes_never_write_into_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locks: bool
) -> None:
    """Where a file system has no locks, as some of networks, the process in the file counts."""

    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if not locks:
        monkeypatch.setattr(fcntl, "flock", none)
    folder = RunFolder(tmp_path / "run")
    with (
        folder.held("--out"),
        pytest.raises(CseError, match=rf"into it, {os.getpid()} on ") as refusal,
        folder.held("--out"),
    ):
        raise AssertionError("it is held")
    assert (refusal.value.hint or "").startswith("name another" if locks else "if that one has")
    lock = tmp_path / "run" / ".lock"
    assert not lock.exists()
    lock.write_text(f"{2**22 + 1} on {gethostname()}\n")  # one that was killed
    with folder.held("--out"):
        pass
    lock.write_text("7 on elsewhere\n")
    if not locks:
        with pytest.raises(CseError, match="into it, 7 on elsewhere"), folder.held("--out"):
            pass


def test_a_lock_is_that_of_the_file_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process before removes its lock between opening and locking it."""
    lock, locked = tmp_path / ".lock", fcntl.flock
    ended = iter([True])

    def after_it_ended(*given: Any) -> None:
        if next(ended, False):
            lock.unlink()
        locked(*given)

    monkeypatch.setattr(fcntl, "flock", after_it_ended)
    with (
        lock_folder(tmp_path, "--out", "writing"),
        pytest.raises(CseError, match=rf"another process is writing, {os.getpid()} on "),
        lock_folder(tmp_path, "--out", "writing"),
    ):
        raise AssertionError("it is locked")
    for make in (os.mkfifo, lambda path: path.symlink_to("elsewhere")):
        make(lock)
        with (
            pytest.raises(CseError, match="cannot be written"),
            lock_folder(tmp_path, "--out", "writing"),
        ):
            raise AssertionError("it is not a file")
        lock.unlink()
    assert not (tmp_path / "elsewhere").exists()
