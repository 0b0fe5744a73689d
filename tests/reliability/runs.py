"""Two small runs, killed and whole: what the tables of damages and kills start from."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cse_testkit import tiny_corpus, write_corpus
from cse_testkit.tiny import tiny_encoder

from tests.fixtures.tiny import metrics
from tests.reliability.faults import Fault
from tests.reliability.outcomes import Answer
from tests.reliability.server import Server

SHORT = (
    "--train.batch_size", "4", "--train.device", "cpu", "--train.precision", "fp32",
    "--train.threads", "1", "--train.log_steps", "1", "--train.chunk_size", "none",
    "--train.lr", "1e-3",
)  # fmt: skip
RECIPES = {
    "simple": (
        "--recipe", "simcse", "--negatives", "queue", "--branch", "ema", "--train.max_steps", "8",
        "--train.eval_steps", "2", "--train.save_steps", "2", "--negatives.queue.size", "8",
    ),
    "rounds": (
        "--recipe", "infocse", "--train.max_steps", "4", "--train.eval_steps", "2",
        "--train.save_steps", "2",
    ),
}  # fmt: skip
STOPS = {"simple": "step-4", "rounds": "round-2-step-2"}
"""The checkpoint after which each is killed."""


@dataclass(frozen=True)
class Base:
    """A run, as it is when it was whole and when it was killed after a checkpoint."""

    name: str
    folder: Path
    words: tuple[str, ...]

    @property
    def whole(self) -> Path:
        return self.folder / "whole"

    @property
    def killed(self) -> Path:
        return self.folder / "killed"

    def train(self, out: Path, server: Server, fault: Fault | None = None, **how: Any) -> Answer:
        words = ["train", *self.words, "--out", str(out)]
        return server.call(words, self.folder, fault=fault, **how)


def resume(out: Path, server: Server, fault: Fault | None = None, **how: Any) -> Answer:
    return server.call(["train", "--resume", str(out)], out.parent, fault=fault, **how)


@cache
def folder_of_runs() -> TemporaryDirectory[str]:
    """Return a folder for the runs of this process, which goes with it."""
    return TemporaryDirectory(prefix="cse-runs-")


@cache
def base(name: str, server: Server) -> Base:
    folder = Path(folder_of_runs().name) / name
    folder.mkdir()
    folder.parent.chmod(0o755)
    tiny_encoder(folder / "encoder", layers=1, hidden=8)
    corpus = tiny_corpus(columns=("document", "title"))
    write_corpus(corpus, folder / "rows.csv")
    texts = corpus.column("text")
    pairs = [
        f"{a}\t{b}\t{n % 5}\n" for n, (a, b) in enumerate(zip(texts[:10], texts[5:15], strict=True))
    ]
    (folder / "pairs.tsv").write_text("sentence1\tsentence2\tscore\n" + "".join(pairs))
    words = (
        "--model", str(folder / "encoder"), "--data", str(folder / "rows.csv"),
        "--dev", str(folder / "pairs.tsv"), *RECIPES[name], *SHORT,
    )  # fmt: skip
    made = Base(name, folder, words)
    log = folder / "writes"
    answer = made.train(made.whole, server, Fault(below=str(made.whole), log=str(log)))
    assert answer.code == 0, answer
    lines = log.read_text().splitlines()
    stop = f"rename checkpoints/.{STOPS[name]}-"
    (last,) = (n for n, line in enumerate(lines, 1) if line.startswith(stop))
    killed = Fault(below=str(made.killed), at=last + 2)
    answer = made.train(made.killed, server, killed)
    assert answer.code == -9, answer
    return made


def writes(base: Base) -> list[str]:
    return (base.folder / "writes").read_text().splitlines()


def difference(run: Path, whole: Path) -> str | None:
    """Return what tells a finished run from another, None where nothing does.

    Speeds and seconds are left out; every other byte of every file counts, and so does a file that
    only one of them has.
    """
    one, other = (
        {str(path.relative_to(each)): path for path in each.rglob("*") if path.is_file()}
        for each in (run, whole)
    )
    if one.keys() != other.keys():
        return f"files: {sorted(one.keys() ^ other.keys())}"
    for name, path in one.items():
        read = _READERS.get(path.name, Path.read_bytes)
        if read(path) != read(other[name]):
            return name
    return None


def _without(*names: str) -> Callable[[Path], dict[str, Any]]:
    def read(path: Path) -> dict[str, Any]:
        content = json.loads(path.read_text())
        return {name: value for name, value in content.items() if name not in names}

    return read


_READERS: dict[str, Callable[[Path], Any]] = {
    "metrics.jsonl": lambda path: metrics(path.parent),
    "result.json": _without("seconds"),
    "checksums.json": _without("metrics.jsonl"),
}


def copy(run: Path, folder: Path) -> Path:
    return Path(shutil.copytree(run, folder / "run", symlinks=True))
