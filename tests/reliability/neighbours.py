"""Others on the same machine: planted links, the umask, a second run, files that change meanwhile.

Each case is a function of a folder and the server that returns what went wrong, or nothing.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import NamedTuple

from tests.fixtures.tiny import make_encoder
from tests.reliability.inputs import PAIRS, TEXTS
from tests.reliability.outcomes import Answer, Outcome
from tests.reliability.server import Server

Case = Callable[[Path, Server], str]
TRAIN = ("train --model ./tiny --data ok.txt --dev none --train.batch_size 4 --train.log_steps 1 "
         "--train.save_steps 2 --train.device cpu --out run")  # fmt: skip
OUTPUTS = {
    f"{TRAIN} --train.max_steps 2 --report csv --save-recipe saved.toml": "run saved.toml",
    "encode ./tiny ok.txt --out v.npy": "v.npy",
    "encode ./tiny ok.txt --out v.jsonl": "v.jsonl",
    "eval ./tiny --pairs pairs.tsv --pairs-out scored.tsv": "scored.tsv",
}
"""Commands that write, and what they write."""


class Neighbour(NamedTuple):
    """A case and its name."""

    label: str
    run: Case


def lay_out(folder: Path) -> None:
    """Make a tiny encoder, texts and pairs."""
    make_encoder(folder / "tiny")
    (folder / "ok.txt").write_text(TEXTS, encoding="utf-8")
    (folder / "pairs.tsv").write_text(PAIRS, encoding="utf-8")


def clear(answer: Answer, *says: str) -> str:
    """Return what is wrong with a refusal, or nothing."""
    lines = [line for line in answer.err.splitlines() if line.startswith("error: ")]
    if answer.hung or answer.code != 2 or "Traceback" in answer.err or len(lines) != 1:
        return f"exit code {answer.code}: {answer.err[-500:]}"
    return "" if all(word in lines[0] for word in says) else f"says not {says}: {lines[0]}"


def ended(answer: Answer) -> str:
    """Return what is wrong with an end that is either whole or refused in one line."""
    return clear(answer) if answer.code else ""


def _umask(words: str, written: str, umask: int) -> Case:
    def case(folder: Path, server: Server) -> str:
        answer = server.call(words.split(), folder, umask=umask)
        if answer.code:
            return answer.err
        made = [folder / name for name in written.split()]
        every = [*made, *(each for top in made for each in top.rglob("*"))]
        wrong = [
            f"{each.relative_to(folder)} {each.stat().st_mode & 0o777:o}"
            for each in every
            if each.stat().st_mode & 0o777 != (0o777 if each.is_dir() else 0o666) & ~umask
        ]
        return ", ".join(wrong)

    return case


def _cache(folder: Path, server: Server) -> str:
    """The token cache is private whatever the umask is, and no planted folder is used."""
    lines = "".join(f"ba be {n}\n" for n in range(50_001))
    (folder / "ok.txt").write_text(lines, encoding="utf-8")
    words = f"{TRAIN} --train.max_steps 1".split()
    answer = server.call(words, folder, env={"CSE_CACHE": str(folder / "a/cache")}, umask=0)
    found = {
        f"{each.name} {each.stat().st_mode & 0o777:o}"
        for each in (folder / "a").rglob("*")
        if each.stat().st_mode & 0o077
    }
    if answer.code or found or not list((folder / "a").rglob("*.arrow")):
        return f"{found} {answer.err}"
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (folder / "b").mkdir()
    (folder / "b/tokens").symlink_to(elsewhere)
    shutil.rmtree(folder / "run")
    answer = server.call(words, folder, env={"CSE_CACHE": str(folder / "b")})
    kept = "the token cache is not written" in answer.err
    return "" if not (answer.code or list(elsewhere.iterdir())) and kept else answer.err


def _planted(words: str, at: str, to: str) -> Case:
    def case(folder: Path, server: Server) -> str:
        victim = folder / "victim"
        if to == "folder":
            victim.mkdir()
            (victim / "step-1").mkdir()
        else:
            victim.write_text("precious")
        (folder / at).parent.mkdir(exist_ok=True)
        (folder / at).symlink_to(victim if to != "nothing" else folder / "nothing")
        answer = server.call(words.split(), folder)
        if (folder / "nothing").exists():
            return f"wrote through the link: {answer.err}"
        if to == "folder" and [each.name for each in victim.iterdir()] != ["step-1"]:
            return f"wrote into the folder: {answer.err}"
        if to == "file" and victim.read_text() != "precious":
            return f"wrote over the file: {answer.err}"
        return ended(answer)

    return case


def _unfinished(folder: Path, server: Server) -> str:
    """Leave a run that a resume goes on with; returns what went wrong."""
    answer = server.call(f"{TRAIN} --train.max_steps 6".split(), folder)
    (folder / "run/result.json").unlink()
    shutil.rmtree(folder / "run/model")
    return answer.err if answer.code else ""


def _resumed_link(name: str) -> Case:
    def case(folder: Path, server: Server) -> str:
        wrong = _unfinished(folder, server)
        at, moved = folder / "run" / name, folder / "moved"
        if at.exists():
            at.rename(moved)
        else:
            moved.mkdir()
        at.symlink_to(moved)
        before = sorted(each.name for each in moved.rglob("*")) if moved.is_dir() else []
        answer = server.call(["train", "--resume", "run"], folder)
        after = sorted(each.name for each in moved.rglob("*")) if moved.is_dir() else []
        return wrong or clear(answer, name, "link") or ("" if before == after else str(after))

    return case


def _held(words: str) -> Case:
    def case(folder: Path, server: Server) -> str:
        wrong = _unfinished(folder, server)
        with (folder / "run/.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write("4711\n")
            lock.flush()
            answer = server.call(words.split(), folder)
        return wrong or clear(answer, "run")

    return case


def _stale(content: str) -> Case:
    def case(folder: Path, server: Server) -> str:
        wrong = _unfinished(folder, server)
        (folder / "run/.lock").write_text(content)
        answer = server.call(["train", "--resume", "run"], folder)
        if (folder / "run/.lock").exists():
            return "the lock is still there"
        return wrong or (answer.err if answer.code else "")

    return case


def _two_at_once(folder: Path, server: Server) -> str:
    """Of two that begin at the same time one trains, and the other is refused."""
    other, answers = Server(), list[Answer]()
    words = f"{TRAIN} --train.max_steps 30".split()
    first = threading.Thread(target=lambda: answers.append(other.call(words, folder)))
    first.start()
    answers.append(server.call(words, folder))
    first.join()
    other.close()
    answers.sort(key=lambda answer: answer.code)
    lines = (folder / "run/metrics.jsonl").read_text().splitlines()
    if [json.loads(line)["step"] for line in lines] != list(range(1, 31)):
        return "metrics.jsonl is of two runs"
    return (answers[0].err if answers[0].code else "") or clear(answers[1], "--out")


def _meanwhile(change: Callable[[Path], object], *, must_end_well: bool = False) -> Case:
    def case(folder: Path, server: Server) -> str:
        def wait_and_change() -> None:
            for _ in range(3000):
                if (folder / "run/metrics.jsonl").is_file():
                    break
                time.sleep(0.01)
            time.sleep(0.2)
            change(folder)

        neighbour = threading.Thread(target=wait_and_change)
        neighbour.start()
        answer = server.call(f"{TRAIN} --train.max_steps 60".split(), folder)
        neighbour.join()
        if must_end_well and answer.code:
            return answer.err
        return ended(answer)

    return case


def _moved(folder: Path, then: Callable[[Path], object]) -> None:
    (folder / "run").rename(folder / "was")
    then(folder / "run")


def _checkpoints(folder: Path, then: Callable[[Path], object] = Path) -> None:
    shutil.rmtree(folder / "run/checkpoints", ignore_errors=True)
    then(folder / "run/checkpoints")


def _a_file(path: Path) -> object:
    return path.write_text("a file")


def _cut(folder: Path) -> None:
    for file in folder.iterdir():
        os.truncate(file, 0)


READ: dict[str, Callable[[Path], object]] = {
    "data gone": lambda folder: (folder / "ok.txt").unlink(),
    "data cut": lambda folder: os.truncate(folder / "ok.txt", 0),
    "data other": lambda folder: (folder / "ok.txt").write_bytes(b"\xff\x00" * 1000),
    "model gone": lambda folder: shutil.rmtree(folder / "tiny"),
    "model cut": lambda folder: _cut(folder / "tiny"),
}
"""Changes meanwhile of what a run has read, which it does not need any more."""
WRITTEN: dict[str, Callable[[Path], object]] = {
    "run gone": lambda folder: shutil.rmtree(folder / "run", ignore_errors=True),
    "run a file": lambda folder: _moved(folder, _a_file),
    "run a link": lambda folder: _moved(folder, lambda path: path.symlink_to("was")),
    "checkpoints gone": _checkpoints,
    "checkpoints a file": lambda folder: _checkpoints(folder, _a_file),
    "metrics gone": lambda folder: (folder / "run/metrics.jsonl").unlink(),
    "model there": lambda folder: _a_file(folder / "run/model"),
}
"""Changes meanwhile of what it writes."""


def tried(case: Neighbour, server: Server) -> tuple[Outcome, Answer, str]:
    """Run a case in a folder of its own; the text says what went wrong."""
    with TemporaryDirectory() as name:
        shutil.copytree(_laid_out(), name, dirs_exist_ok=True)
        wrong = case.run(Path(name), server)
    outcome = Outcome.TRACEBACK if "Traceback" in wrong else Outcome.SILENT
    return outcome if wrong else Outcome.CLEAR, Answer(0, "", wrong, False, 0.0), wrong


@cache
def _laid_out() -> Path:
    folder = Path(mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    lay_out(folder)
    return folder


def neighbours() -> list[Neighbour]:
    """Return every case."""
    return [Neighbour(label, run) for label, run in _cases()]


def _cases() -> Iterator[tuple[str, Case]]:
    for words, written in OUTPUTS.items():
        for umask in (0o022, 0o077, 0o027, 0o002, 0o000):
            yield f"umask {umask:03o}: {words.split()[0]} {written}", _umask(words, written, umask)
        for at in written.split():
            if at != "run":
                for to in ("file", "folder", "nothing"):
                    yield f"{at} links to a {to}", _planted(words, at, to)
    yield "the cache is private", _cache
    for name in ("checkpoints", "rounds", "model", "metrics.jsonl", "result.json", ".lock"):
        words = f"{TRAIN} --train.max_steps 2"
        for to in ("file", "folder", "nothing"):
            yield f"run/{name} links to a {to}", _planted(words, f"run/{name}", to)
    for name in ("checkpoints", "rounds", "model", "metrics.jsonl", "run.toml",
                 "checkpoints/step-6", "checkpoints/step-6/state.json"):  # fmt: skip
        yield f"resume with {name} a link", _resumed_link(name)
    yield "resume while it is held", _held("train --resume run")
    yield "train while it is held", _held(f"{TRAIN} --train.max_steps 2")
    for content in ("", "99999999\n", "-1\n", "no number", f"{os.getpid()}\n", "\x00" * 100):
        yield f"stale lock {content[:12]!r}", _stale(content)
    yield "two at once", _two_at_once
    for name, change in READ.items():
        yield f"meanwhile {name}", _meanwhile(change, must_end_well=True)
    for name, change in WRITTEN.items():
        yield f"meanwhile {name}", _meanwhile(change)
