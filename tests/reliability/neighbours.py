"""Others on the same machine: planted links, the umask, a second run.

Each case is a function of a folder and the server that returns what went wrong, or nothing.
"""

import atexit
import fcntl
import json
import os
import shutil
import threading
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
    label: str
    run: Case


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
    make_encoder(folder / "tiny")
    (folder / "ok.txt").write_text(TEXTS, encoding="utf-8")
    (folder / "pairs.tsv").write_text(PAIRS, encoding="utf-8")
    return folder


def neighbours() -> Iterator[Neighbour]:
    for words, written in OUTPUTS.items():
        command = words.split()[0]
        for umask in (0o077, 0o002):
            case = _umask(words, written, umask)
            yield Neighbour(f"umask {umask:03o}: {command} {written}", case)
        for at in written.split():
            if at != "run":
                for to in ("file", "folder", "nothing"):
                    yield Neighbour(f"{at} links to a {to}", _planted(words, at, to))
    for name in ("checkpoints", "rounds", "model", "metrics.jsonl", "result.json", ".lock"):
        words = f"{TRAIN} --train.max_steps 2"
        for to in ("file", "folder", "nothing"):
            yield Neighbour(f"run/{name} links to a {to}", _planted(words, f"run/{name}", to))
    yield Neighbour("resume while it is held", _held("train --resume run"))
    yield Neighbour("train while it is held", _held(f"{TRAIN} --train.max_steps 2"))
    for content in ("", "99999999\n", "-1\n", "no number", f"{os.getpid()}\n", "\x00" * 100):
        yield Neighbour(f"stale lock {content[:12]!r}", _stale(content))
    yield Neighbour("two at once", _two_at_once)
