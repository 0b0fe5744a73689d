"""The table of what a machine says no to, and what has to come of it.

Files that grow too large, folders that may not be written, too little memory, too few files,
streams that are closed, full or without a reader, a working folder that is gone, a locale without
UTF-8, and names that no file can have. A full disk is in the table of kills.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from cse_engine.run.run_folder import RunFolder
from tests.reliability.inputs import PAIRS, TEXTS
from tests.reliability.outcomes import Answer, Outcome, classify
from tests.reliability.runs import base, copy, difference, resume
from tests.reliability.server import Server

NOBODY = 65534
LONG, BYTES = "x" * 300, "\udcff\udcfe"
READER_GONE = "|"
Streams = Mapping[int, str | None]


@dataclass(frozen=True)
class Trouble:
    """A command, the trouble, and what has to come of it.

    Attributes:
        words: The command; ``train`` and ``resume`` alone are the simple run of the other tables.
        expect: ``refused`` in one line with ``says``; ``accepted``; ``complete``: a run that ends
            with the bytes of one without trouble; ``refused, complete``: the line, and the run;
            ``refused, then complete``: the line, and whole once it is resumed without the trouble.
            ``either``: the line, or an end as if there was no trouble.
        limits: As for the server; below zero is more than what it holds itself.
        code: Exit codes that are right where it is accepted.
        real: Whether it needs an interpreter of its own, since its start reads the environment.
        gone: Whether the working folder is removed before it begins.
        before: Prepares the folder of the run.
        cwd: Name of the working folder.
    """

    name: str
    words: tuple[str, ...]
    expect: Literal["refused", "accepted", "complete", "refused, complete",
                    "refused, then complete", "either"] = "refused"  # fmt: skip
    says: tuple[str, ...] = ()
    code: tuple[int, ...] = (0,)
    streams: Streams = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    user: int | None = None
    real: bool = False
    gone: bool = False
    before: Callable[[Path], None] | None = None
    cwd: str = "here"

    @property
    def label(self) -> str:
        words = " ".join(self.words).encode("ascii", "backslashreplace").decode()
        return f"{self.name}: {words[:70]}"


PRINTING: tuple[tuple[str, ...], ...] = (
    ("list-plugins",), ("list-plugins", "--json"), ("list-recipes",), ("show-plugin", "mocose"),
    ("show-recipe", "simcse"), ("--help",), ("--version",), ("train", "--help"),
    ("data", "stats", "ok.txt"), ("data", "show", "ok.txt"), ("data", "list"),
    ("encode", "starter", "ok.txt"), ("search", "starter", "boat", "--data", "ok.txt"),
    ("eval", "starter", "--pairs", "pairs.tsv"),
    ("eval", "starter", "--pairs", "pairs.tsv", "--json"),
    ("train", "--data", "ok.txt", "--dry-run"), ("train", "--dry-run", "--json"),
)  # fmt: skip
TRAINING: tuple[tuple[str, ...], ...] = (
    ("train",), ("train", "--quiet"), ("train", "--json"), ("resume",), ("resume", "--quiet"),
)  # fmt: skip
NAMED: tuple[tuple[str, ...], ...] = (
    ("train", "--data", "{}"), ("train", "--model", "{}"), ("train", "--dev", "{}"),
    ("train", "--data", "ok.txt", "--dev", "none", "--out", "{}"), ("train", "--resume", "{}"),
    ("train", "--recipe", "{}.toml"), ("train", "--report", "{}"),
    ("train", "--dry-run", "--save-recipe", "{}"), ("train", "--set", "data.path={}"),
    ("encode", "{}", "ok.txt"), ("encode", "starter", "{}.jsonl"),
    ("encode", "starter", "ok.txt", "--out", "{}.npy"),
    ("eval", "starter", "--pairs", "{}/{}.tsv"), ("eval", "starter", "--suite", "{}"),
    ("eval", "starter", "--pairs", "pairs.tsv", "--pairs-out", "{}"),
    ("eval", "starter", "--suite", "sts", "--data-dir", "{}"), ("data", "stats", "{}"),
    ("show-recipe", "{}"), ("{}",), ("--no-plugin", "{}", "show-plugin", "{}"),
)  # fmt: skip


def troubles() -> Iterator[Trouble]:
    """Yield the table, without what this user has no right to make."""
    for trouble in _disks():
        if os.geteuid() == 0 or trouble.user is None:
            yield trouble
    yield from _limits()
    yield from _streams()
    yield from _places()


def _disks() -> Iterator[Trouble]:
    then = "refused, then complete"
    for words in (("train",), ("resume",)):
        for size in (1000, 3000, 8000, 12_000, 16_000):
            limits = {"RLIMIT_FSIZE": size}
            yield Trouble(f"files of {size} bytes at most", words, then, ("run",), limits=limits)
    yield Trouble("another user's folder", ("resume",), then, ("denied",), user=NOBODY)
    yield Trouble("another user's folder", ("train",), says=("written",), user=NOBODY)
    for name in ("checkpoints", "model"):
        yield Trouble(f"{name} is a file", ("train",), says=(name,), before=_file(name))


def _limits() -> Iterator[Trouble]:
    memory = {"RLIMIT_AS": -100 * 2**20}
    for words in (("train", "--data", "ok.txt", "--dev", "none"), ("encode", "starter", "ok.txt"),
                  ("search", "starter", "boat", "--data", "ok.txt")):  # fmt: skip
        # What is enough depends on the machine: either it ends, or it says what to lower.
        yield Trouble("little memory", words, "either", ("memory",), limits=memory)
    for few in (3, 4, 5):
        for words in (("train",), ("resume",), ("encode", "starter", "ok.txt"), ("list-plugins",)):
            yield Trouble(f"{few} open files at most", words, "refused", ("Too many open files",),
                          limits={"RLIMIT_NOFILE": few})  # fmt: skip


def _streams() -> Iterator[Trouble]:
    for words in PRINTING:
        yield Trouble("stdout closed", words, "accepted", streams={1: None})
        yield Trouble("stdout full", words, says=("No space",), streams={1: "/dev/full"})
        yield Trouble("stdout unread", words, "accepted", code=(141,), streams={1: READER_GONE})
        for number, target in enumerate((None, "/dev/full", READER_GONE)):
            name = ("closed", "full", "unread")[number]
            yield Trouble(f"stderr {name}", words, "accepted", streams={2: target})
    for words in TRAINING:
        yield Trouble("stdout closed", words, "complete", streams={1: None})
        yield Trouble("stdout unread", words, "complete", code=(141,), streams={1: READER_GONE})
        yield Trouble("stdout full", words, "refused, complete", ("stdout", "No space"),
                      streams={1: "/dev/full"})  # fmt: skip
        for target in (None, "/dev/full", READER_GONE):
            yield Trouble(f"stderr is {target}", words, "complete", streams={2: target})
        for target, code in ((None, 0), (READER_GONE, 141)):
            yield Trouble(f"both are {target}", words, "complete", code=(code,),
                          streams={1: target, 2: target})  # fmt: skip
    for words in (
        ("encode", "starter", "nothere.txt"),
        ("train", "--train.lr", "-1"),
        ("nothing",),
    ):
        for target in (None, "/dev/full", READER_GONE):
            yield Trouble(f"stderr is {target}", words, "accepted", code=(2,), streams={2: target})
    yield Trouble("stdin closed", ("encode", "starter", "-"), "refused", streams={0: None})
    yield Trouble("stdin closed", ("list-plugins",), "accepted", streams={0: None})
    yield Trouble("stdin closed", ("train",), "complete", streams={0: None})


def _places() -> Iterator[Trouble]:
    for words in (*PRINTING, ("train", "--data", "/nothere.txt"), ("train", "--resume", "run")):
        yield Trouble("the folder is gone", words, says=("working folder",), gone=True)
    for words in NAMED:
        for name, text in (("a long name", LONG), ("bytes as a name", BYTES)):
            said = ("not text",) if text is BYTES else ()
            yield Trouble(name, tuple(w.replace("{}", text) for w in words), says=said)
    deep = "a/" * 3000
    for words in (("train", "--data", deep), ("encode", "starter", deep + "x.txt"),
                  ("train", "--data", "ok.txt", "--dev", "none", "--out", deep),
                  ("encode", deep, "ok.txt"), ("train", "--resume", deep)):  # fmt: skip
        yield Trouble("a deep path", words)
    for cwd in (BYTES, "x" * 255, "ä\n\x1b[31m"):
        yield Trouble("an odd working folder", ("encode", "starter", "ok.txt", "--out", "v.npy"),
                      "accepted", cwd=cwd)  # fmt: skip
        said = ("not text",) if cwd is BYTES else ()
        yield Trouble("an odd working folder", ("train",), "refused" if said else "complete",
                      says=said, cwd=cwd)  # fmt: skip
    out = ("encode", "starter", "ok.txt", "--out", f"{'x' * 250}.npy")
    yield Trouble("the longest name", out, "accepted")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for env in ({"LC_ALL": "C"}, plain, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "nowhere"}):
        for words in (
            ("encode", "starter", "--text", "the old bôat"), ("list-plugins",),
            ("data", "show", "letters.txt"), ("--help",),
            ("search", "starter", "boat", "--data", "letters.txt"),
            ("train", "--data", "letters.txt", "--dev", "none", "--train.max_steps", "1"),
        ):  # fmt: skip
            bytes_of_text = env is plain and "ô" in words[-1]
            yield Trouble(f"the locale {env}", words, "refused" if bytes_of_text else "accepted",
                          ("not text",) * bytes_of_text, env=env, real=True)  # fmt: skip


def _file(name: str) -> Callable[[Path], None]:
    def before(folder: Path) -> None:
        (folder / name).write_text("mine\n")

    return before


def tried(trouble: Trouble, server: Server) -> tuple[Outcome, Answer, str]:
    """Run a command in trouble; return what came of it, and what was not as expected."""
    start = base("simple", server)
    with TemporaryDirectory() as name:
        here = Path(name) / trouble.cwd
        here.mkdir()
        os.chmod(name, 0o755)
        (here / "ok.txt").write_text(TEXTS)
        letters = "".join(f"die Bäume 木 ☂ {n}\n" for n in range(20))
        (here / "letters.txt").write_text(letters, encoding="utf-8")
        (here / "pairs.tsv").write_text(PAIRS)
        run = here / "run"
        if trouble.words[0] == "resume":
            copy(start.killed, here)
        elif trouble.before is not None:
            run.mkdir()
        words = list(trouble.words)
        if words[0] == "resume":
            words = ["train", "--resume", str(run) if trouble.user else "run", *words[1:]]
        elif words[0] == "train" and not set(words[1:]) - {"--quiet", "--json"}:
            words = ["train", *start.words, "--out", "run", *words[1:]]
        if trouble.before is not None:
            trouble.before(run)
        answer = _called(words, here, trouble, server)
        return _judged(trouble, answer, run, start, server)


def _called(words: list[str], here: Path, trouble: Trouble, server: Server) -> Answer:
    own = server.memory()
    limits = {name: own - size if size < 0 else size for name, size in trouble.limits.items()}
    if not trouble.real:
        return server.call(
            words, here, env=trouble.env, limits=limits, streams=trouble.streams,
            user=trouble.user, gone=trouble.gone,
        )  # fmt: skip
    from tests.reliability.server import ENVIRONMENT

    cse = str(Path(sys.executable).with_name("cse"))
    done = subprocess.run([cse, *words], cwd=here, capture_output=True, timeout=120,
                          env={**os.environ, **ENVIRONMENT, **trouble.env})  # fmt: skip
    out, err = (text.decode(errors="backslashreplace") for text in (done.stdout, done.stderr))
    return Answer(done.returncode, out, err, False, 0.0)


def _judged(
    trouble: Trouble, answer: Answer, run: Path, start: Any, server: Server
) -> tuple[Outcome, Answer, str]:
    refused = trouble.expect == "either" and answer.code != 0
    if trouble.expect.startswith("refused") or refused:
        outcome = classify(answer, Outcome.CLEAR, trouble.says)
        if outcome is not Outcome.CLEAR or refused or trouble.expect == "refused":
            return outcome, answer, ""
        if trouble.expect == "refused, then complete":
            begun = bool(RunFolder(run).checkpoints())
            answer = resume(run, server) if begun else start.train(run, server)
            if answer.code != 0:
                return Outcome.SILENT, answer, "no resume"
    elif answer.code not in trouble.code or classify(answer, Outcome.CLEAR) in (
        Outcome.TRACEBACK, Outcome.HUNG
    ):  # fmt: skip
        return classify(answer, Outcome.ACCEPTED), answer, f"exit code {answer.code}"
    printed = ""
    if "complete" in trouble.expect:
        printed = difference(run, start.whole) or ""
    elif trouble.streams and trouble.code != (2,) and "Traceback" in answer.err:
        printed = "a traceback"
    return (Outcome.SILENT if printed else Outcome.ACCEPTED), answer, printed
