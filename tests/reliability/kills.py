"""The table of kills: a run killed at each of its writes, resumed, equals one that never was.

Of the simple run every write is killed, of the run with rounds every kind of write. ``cut`` also
cuts the file that was being written. A run that was killed before it began is begun once more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from cse_engine.run.run_folder import RunFolder
from tests.reliability.faults import Fault, label
from tests.reliability.outcomes import GOOD, Answer, Outcome, classify
from tests.reliability.runs import base, difference, resume, writes
from tests.reliability.server import Server

What = Literal["kill", "cut", "full"]


@dataclass(frozen=True)
class Kill:
    """A kill before the N-th write of a run, or a disk that is full from there on."""

    run: str
    at: int
    write: str
    what: What

    @property
    def label(self) -> str:
        return f"{self.what} {self.run} at write {self.at}: {self.write}"


def kills(server: Server) -> Iterator[Kill]:
    """Yield the table, which follows from what the whole runs wrote."""
    for run in ("simple", "rounds"):
        seen: set[str] = set()
        for at, line in enumerate(writes(base(run, server)), 1):
            kind = label(line)
            new = kind not in seen
            seen.add(kind)
            if run == "simple" or new:
                yield Kill(run, at, kind, "kill")
            if new:
                yield Kill(run, at, kind, "cut")
                if not kind.startswith(("remove", "rmdir")):
                    yield Kill(run, at, kind, "full")


def tried(kill: Kill, server: Server) -> tuple[Outcome, Answer, str]:
    """Train with the fault and resume; return what came of it, and what tells it from the whole.

    A full disk has to be reported in one line, and leave the last checkpoint to resume from.
    """
    start = base(kill.run, server)
    with TemporaryDirectory() as name:
        run = Path(name) / "run"
        fault = Fault(below=str(run), at=kill.at, what=kill.what)
        answer = start.train(run, server, fault)
        if kill.what == "full":
            outcome = classify(answer, Outcome.CLEAR, (str(run), "No space left on device"))
            if outcome is not Outcome.CLEAR:
                return outcome, answer, "the full disk"
        elif answer.code != -9:
            return Outcome.SILENT, answer, "it was not killed"
        begun = bool(RunFolder(run).checkpoints())
        finished = (run / "result.json").exists()
        answer = resume(run, server) if begun else start.train(run, server)
        if finished:
            outcome = classify(answer, Outcome.CLEAR, ("has already finished",))
            (run / ".lock").unlink(missing_ok=True)  # held by nobody, and nobody holds it again
        else:
            outcome = classify(answer, Outcome.ACCEPTED)
        printed = (difference(run, start.whole) or "") if outcome in GOOD else ""
        return (Outcome.SILENT if printed else outcome), answer, printed
