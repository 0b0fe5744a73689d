"""What the machine says no to and whose bug it is are one line; other bugs keep their traceback."""

import errno
import os
from importlib.metadata import distributions
from pathlib import Path

import pytest

from cse_cli.machine import processor
from cse_cli.machine.out_files import check_out_folder
from cse_cli.machine.refusals import check_typed, plugin_from_traceback, refusal
from cse_cli.main import BROKEN_PIPE, PLUGIN_BUG, run
from cse_core.errors import CseError
from cse_core.parts import Part

OF_MEMORY = (
    MemoryError(),
    MemoryError("Unable to allocate 7.45 GiB for an array"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
    type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory. Tried to allocate 2 GiB"),
    OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
)
BUGS = (FileNotFoundError(errno.ENOENT, "x"), RuntimeError("shapes"), ValueError(), KeyError())


def test_what_the_machine_refuses(tmp_path: Path) -> None:
    for error in OF_MEMORY:
        said = refusal(error, ["train", "--data", "x"])
        assert said is not None and said.line().startswith("cse train: out of memory; ")
        assert "train.chunk_size" in said.line()
        said = refusal(error, ["encode", "model"])
        assert said is not None and "--batch-tokens" in said.line()
    for rest in ("", ": Cannot allocate memory"):
        no_room = ImportError(f"libtorch_cpu.so: failed to map segment from shared object{rest}")
        said = refusal(no_room, ["train"])
        assert said is not None and "out of memory; allow the process more address" in said.line()
    said = refusal(OSError(errno.ENOSPC, "No space left on device", "a/file"), ["train"])
    assert said is not None and said.line() == "a/file: No space left on device"
    assert [refusal(error, ["train"]) for error in BUGS] == [None] * len(BUGS)
    (folder := tmp_path / "zz-1.0.dist-info").mkdir()
    (folder / "METADATA").write_text("Name: zz\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[cse]\nno equals sign\n")
    (found,) = distributions(path=[str(tmp_path)])
    with pytest.raises(TypeError) as caught:
        found.entry_points  # noqa: B018
    said = refusal(caught.value, ["train"])
    assert said is not None and said.what == "the metadata of zz cannot be read"


def test_words_of_bytes_and_a_folder_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CseError, match="contains bytes that are not text"):
        check_typed(["train", "\udcff"])
    (odd := tmp_path / "\udcff").mkdir()
    monkeypatch.chdir(odd)
    with pytest.raises(CseError, match="contains bytes that are not text"):
        check_out_folder(Path("run"))
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(CseError, match="the working folder no longer exists"):
        check_typed(["train"])
    monkeypatch.undo()


@pytest.mark.parametrize(("module", "named"), [("cse_mine.loss", True), ("cse_core.x", False)])
def test_a_bug_in_a_part_names_its_plugin(
    module: str, named: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(Part):
        path, owner = "loss.broken", "cse-mine 0.1.0"

        def __init__(self) -> None:
            """Take no options."""

        def after_step(self, *_: object) -> None:
            raise RuntimeError("shapes")

    Broken.__module__ = module
    with pytest.raises(RuntimeError) as raised:
        Broken().after_step()
    line = plugin_from_traceback(raised.value, {})
    assert line == ("loss.broken of cse-mine 0.1.0: after_step raised RuntimeError: shapes"
                    if named else None)  # fmt: skip
    monkeypatch.setattr("cse_cli.main.build_app", lambda *_: Broken().after_step())
    if not named:
        with pytest.raises(RuntimeError, match="shapes"):
            run(["list-recipes"])
        return
    assert run(["list-recipes"]) == PLUGIN_BUG
    assert "this is a bug in the plugin; add --debug to see where" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="shapes"):
        run(["list-recipes", "--debug"])


def test_a_reader_that_has_left_and_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, code, line in (
        (errno.EPIPE, BROKEN_PIPE, ""),
        (errno.ENOSPC, 2, "error: stdout: cannot be written: No space left on device\n"),
    ):

        def write(text: str, number: int = number) -> int:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr("sys.stdout.write", write)
        assert run(["list-recipes", "--json"]) == code
        assert capsys.readouterr().err == line


def test_the_name_of_a_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(
        "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: Some CPU\n"
        "stepping\t: 1\nflags\t\t: fpu avx2 avx512_bf16\n\nprocessor\t: 1\nmodel name\t: Other\n"
    )
    monkeypatch.setattr(processor, "_CPU", file)
    assert processor.processor.__wrapped__() == "Some CPU (25/17/1), avx2, avx512_bf16"
    monkeypatch.setattr(processor, "_CPU", tmp_path / "nothing")
    assert processor.processor.__wrapped__()
