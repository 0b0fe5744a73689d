"""What the machine says no to is one line; anything else keeps its traceback."""

from __future__ import annotations

import errno
import os

import pytest

from cse_cli.machine.refusals import refusal

OF_MEMORY = (
    MemoryError(),
    MemoryError("Unable to allocate 7.45 GiB for an array"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
    type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory. Tried to allocate 2 GiB"),
    OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    ImportError("failed to map segment from shared object: Cannot allocate memory"),
)


@pytest.mark.parametrize("error", OF_MEMORY, ids=repr)
def test_too_little_memory_says_what_to_lower(error: Exception) -> None:
    said = refusal(error, ["train", "--data", "x"])
    assert said is not None and said.line().startswith("cse train: out of memory; ")
    assert "train.chunk_size" in said.line()
    said = refusal(error, ["encode", "model"])
    assert said is not None and "--batch-tokens" in said.line()


def test_a_file_is_named() -> None:
    said = refusal(OSError(errno.ENOSPC, "No space left on device", "a/file"), ["train"])
    assert said is not None and said.line() == "a/file: No space left on device"


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(errno.ENOENT, "x"), RuntimeError("shapes"), ValueError(), KeyError()],
)
def test_a_bug_is_none(error: Exception) -> None:
    assert refusal(error, ["train"]) is None
