"""Making the runs of a plan: each in a process of its own, those first that others start from.

The processes of one thread are forks of one that has imported what they need, where a system can
fork: otherwise each imports by itself.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Literal

import tomlkit

from cse import table_name
from cse_cli.api import processor
from cse_core.errors import CseError
from cse_core.files import RESULT, atomic_write
from cse_study.definition.reading import RUN
from cse_study.execution import child
from cse_study.execution.folder import StudyFolder, parsed, read_table, write_json
from cse_study.execution.forks import Fork, Server
from cse_study.planning.composing import PlannedRun, digest
from cse_study.planning.plan import Plan

Status = Literal["done", "failed", "stopped"]
WITHOUT_WORDS = "--no-baselines"
_POLL_SECONDS = 0.5
_INTERRUPTED = 130
"""Exit code of a run that was asked to stop."""


@dataclass(frozen=True)
class Scoring:
    """How runs are scored.

    Attributes:
        key: A digest of it.
        words: Words behind ``cse eval RUN``.
        pairs: Whether there are graded pairs, whose cosines are kept.
        items: Whether there are documents or labelled texts, whose ranks and hits are kept.
        notes: What had to be left out of the study's own words.
        dev: Whether tables show the dev score, whose pairs are then scored too.
    """

    key: str
    words: tuple[str, ...] = ()
    pairs: bool = True
    items: bool = False
    notes: tuple[str, ...] = ()
    dev: bool = False

    @property
    def of_dev(self) -> str:
        """Return the key of how dev pairs are scored."""
        return f"{self.key}.dev"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run or call to make.

    Attributes:
        place: The folder of all studies.
        scoring: How the run is scored; None where it is only one to start from, or a call.
        threads: CPU threads of its process; None leaves them.
        drop_checkpoints: Whether the run's checkpoints are deleted at the end; its model stays.
    """

    place: StudyFolder
    run: PlannedRun
    scoring: Scoring | None = None
    threads: int | None = None
    drop_checkpoints: bool = False

    @property
    def key(self) -> str:
        """Return the key of the run."""
        return self.run.key

    @property
    def dev(self) -> list[str]:
        """Return the dev sets of its run, data sets by name, as its recipe has them."""
        return list(self.run.recipe.get("train", {}).get("dev", ()))

    @property
    def scorings(self) -> list[Scoring]:
        """How it is scored: on the tests, and when it has chosen by pairs, on these where asked."""
        if self.scoring is None:
            return []
        result = read_table(self.place.run(self.key) / RESULT)
        chosen = str(result.get("chosen_by"))
        of_pairs = chosen.endswith(".spearman") or (
            chosen == "mean" and not any("@" in name for name in result.get("scores", ()))
        )
        files = [self.place.dev(name) for name in self.dev if self.scoring.dev]
        if not (files and all(map(Path.is_file, files)) and of_pairs):
            return [self.scoring]
        words = [word for file in files for word in ("--pairs", str(file))]
        return [self.scoring, Scoring(self.scoring.of_dev, (*words, WITHOUT_WORDS))]

    @property
    def done(self) -> bool:
        """Tell whether everything that it makes is there."""
        files = []
        if not self.run.recipe:
            files.append(self.place.beside(self.key, "output.json"))
        # What was unpacked has no model to score again.
        scorings = self.scorings[: 1 if self.place.without_model(self.key) else None]
        files += [self.place.scores(self.key, f"{scoring.key}.json") for scoring in scorings]
        trained = not self.run.recipe or self.run.untrained or self.place.trained(self.key)
        return trained and all(file.is_file() for file in files)


@dataclass(frozen=True)
class Done:
    """What became of a job; ``line`` says in one line why it failed."""

    key: str
    status: Status
    line: str = ""
    seconds: float = 0.0


def jobs_of(
    plan: Plan, place: StudyFolder, scoring: Scoring | None, workers: int = 1
) -> dict[str, Job]:
    """Return the jobs of a plan by key.

    Checkpoints of runs that commands or functions look into stay. Runs at a time share the cores,
    where ``OMP_NUM_THREADS`` does not say how many each has.
    """
    place = StudyFolder(place.path.absolute())
    kept = {key for run in plan.runs.values() if not run.recipe for key in run.needs}
    scored = plan.scored
    shared = workers > 1 and not os.environ.get("OMP_NUM_THREADS")
    return {
        key: Job(
            place=place,
            run=run,
            scoring=scoring if key in scored else None,
            threads=max(1, (os.cpu_count() or 1) // workers) if shared else None,
            drop_checkpoints=key not in kept,
        )
        for key, run in plan.runs.items()
    }


def carry_out(
    jobs: Mapping[str, Job],
    workers: int,
    hear: Callable[[Done], object],
    before: Mapping[str, Done] = MappingProxyType({}),
    threads: Executor | None = None,
) -> Mapping[str, Done]:
    """Make every job that is not there, and return what became of each, by key.

    ``hear`` is called with what became of each when it ends. A job that needs one that failed is
    not begun, and one that failed in an earlier pass, by ``before``, is not tried again. Threads
    that are given keep the processes that they fork for the next call.

    Raises:
        KeyboardInterrupt: If it was interrupted; every process was asked to stop and has ended, as
            after any other error.
    """
    ended = dict(before)
    waiting = {key: job for key, job in jobs.items() if key not in ended and not job.done}
    running: dict[Future[Done], str] = {}
    stopping.clear()
    for job in jobs.values():
        if job.drop_checkpoints and job.done:
            job.place.drop_checkpoints(job.key)
    with nullcontext(threads) if threads is not None else ThreadPoolExecutor(workers) as pool:
        try:
            while waiting or running:
                under_way = {*waiting, *running.values()}
                for key in [k for k, job in waiting.items() if not under_way & {*job.run.needs}]:
                    job = waiting.pop(key)
                    lost = [k for k in job.run.needs if k in ended and ended[k].status != "done"]
                    if lost:
                        line = f"run {lost[0]}, which it starts from, failed"
                        ended[key] = Done(key, "failed", line)
                        with suppress(OSError):
                            write_json(job.place.beside(key, "failed.json"), {"line": line})
                        hear(ended[key])
                    else:
                        running[pool.submit(make, job)] = key
                finished, _ = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in finished:
                    key = running.pop(future)
                    ended[key] = future.result()
                    hear(ended[key])
        except BaseException:
            stop_children()
            wait([future for future in running if not future.cancel()])
            raise
    return ended


class Stop(Exception):
    """The study was asked to stop."""


stopping = threading.Event()
"""Set in the process of ``cse study`` when it was asked to stop."""
_children: set[subprocess.Popen[bytes] | Fork] = set()


class _Thread(threading.local):
    """What a thread of a study starts processes with; it is closed when the thread ends."""

    server: Server | None = None


_thread = _Thread()


def stop_children() -> None:
    """Ask every process that this one has started to stop, and let no other begin."""
    stopping.set()
    for process in tuple(_children):
        with suppress(OSError):
            process.send_signal(signal.SIGTERM)


def make(job: Job) -> Done:
    """Make what a job describes, as far as it is not there; never raises over a run's mistakes."""
    began = time.monotonic()
    place, failed = job.place, job.place.beside(job.key, "failed.json")

    def waiting() -> None:
        if stopping.is_set():
            raise Stop

    status: Status = "done"
    line = ""
    try:
        waiting()
        with place.locked(job.key, waiting) as lock:
            if not job.done:
                _make(job, lock.fileno())
            failed.unlink(missing_ok=True)
            if job.drop_checkpoints:
                place.drop_checkpoints(job.key)
    except Stop:
        status, line = "stopped", "was stopped, and resumes when the study is started again"
    except (_Failed, OSError) as error:
        status, line = "failed", str(error)
        with suppress(OSError):
            write_json(failed, {"line": line})
    return Done(job.key, status, line, time.monotonic() - began)


class _Failed(Exception):
    """A process ended with a mistake; the text is its line."""


def _make(job: Job, lock: int) -> None:
    place, key = job.place, job.key
    output = place.beside(key, "output.json")
    if not job.run.recipe:
        write_json(place.beside(key, "facts.json"), machine())
    if job.run.command:
        words = [_placed(job, word) for word in job.run.command]
        said = parsed(_run(job, lock, child.command(*words)))
        if not said:
            raise _Failed("the command printed no JSON object; add --json to its words")
        write_json(output, said)
        return
    if job.run.call:
        given = output.with_suffix(".settings")
        write_json(given, {name: _placed(job, value) for name, value in job.run.settings.items()})
        _run(job, lock, child.function(job.run.call, str(given), str(output)))
        return
    if place.without_model(key):  # asked for more than it says
        shutil.rmtree(place.run(key))
        shutil.rmtree(place.scores(key, "any").parent, ignore_errors=True)
    if not place.trained(key) and not job.run.untrained:
        words = ["--resume", str(place.run(key))]
        if not place.begun(key):
            recipe = place.beside(key, "toml")
            atomic_write(recipe, tomlkit.dumps(_recipe(job)))
            words = ["--recipe", str(recipe), "--out", str(place.run(key))]
        write_json(place.beside(key, "facts.json"), machine())
        _run(job, lock, child.command("train", *words))
    if job.scoring is None:
        return
    model = str(_recipe(job)["model"]["name"]) if job.run.untrained else str(place.run(key))
    for scoring in job.scorings:
        scores = place.scores(key, f"{scoring.key}.json")
        if not scores.is_file():
            _score(job, lock, model, scores, scoring)


def _score(job: Job, lock: int, model: str, scores: Path, scoring: Scoring) -> None:
    scores.parent.mkdir(exist_ok=True)
    # Scores of words alone are the same for every model: they are measured beside an untrained one.
    left_out = WITHOUT_WORDS if job.run.untrained and scoring is job.scoring else ""
    words = [*(word for word in scoring.words if word != left_out), "--json"]
    words += ["--pairs-out", str(scores.with_suffix(".tsv"))] if scoring.pairs else []
    words += ["--items-out", str(scores.with_suffix(".items.tsv"))] if scoring.items else []
    began = time.monotonic()
    said = parsed(_run(job, lock, child.command("eval", model, *words)))
    if not said:
        raise _Failed("cse eval printed no scores")
    took = round(time.monotonic() - began, 1)
    write_json(scores, {**said, "words": list(scoring.words), "seconds": took})


def _recipe(job: Job) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps(job.run.recipe))
    content["model"]["name"] = _placed(job, content["model"]["name"])
    return content


def _placed(job: Job, value: Any) -> Any:
    """Return a value with the folder of a run in the place of its key."""
    if not isinstance(value, str) or not value.startswith(RUN):
        return value
    start = value.removeprefix(RUN)
    key = start.partition("/")[0]
    if job.place.without_model(key):
        raise _Failed(f"starts from run {key}, unpacked without its model; delete {key}")
    return str(job.place.run(start))


def _run(job: Job, lock: int, words: Sequence[str]) -> str:
    """Run a process to its end, and return what it printed on stdout."""
    env = dict(os.environ)
    if job.threads is not None:
        env["OMP_NUM_THREADS"] = str(job.threads)
    log = job.place.beside(job.key, "log")
    with log.open("ab") as said:
        start = said.tell()
        process = _begin(words, said, env, lock)
    _children.add(process)
    try:
        if stopping.is_set():
            process.send_signal(signal.SIGTERM)
        out = process.communicate()[0].decode(errors="replace")
    finally:
        _children.discard(process)
        with suppress(OSError):
            process.send_signal(signal.SIGKILL)
    if process.returncode == 0:
        return out
    if stopping.is_set() or process.returncode == _INTERRUPTED:
        raise Stop
    with log.open("rb") as file:
        file.seek(start)
        raise _Failed(_line(file.read(), process.returncode))


def _begin(
    words: Sequence[str], said: IO[bytes], env: Mapping[str, str], lock: int
) -> subprocess.Popen[bytes] | Fork:
    """Begin a process, a fork where there can be one.

    It inherits the lock: as long as it lives, nobody else makes the run.
    """
    here = threading.current_thread()
    if here is not threading.main_thread() and sys.platform == "linux":  # others: not safely
        if _thread.server is None:
            _thread.server = Server(child.server(), env)
        with suppress(OSError):
            return _thread.server.fork(words[len(child.start()) :], said, lock)
    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, env=env,
        pass_fds=(lock,),
    )  # fmt: skip


def check_scoring(scoring: Scoring | None, jobs: Iterable[Job]) -> None:
    """Have ``cse eval`` read what runs are scored on, before the first of them begins.

    A test set with the name of another dev set is refused: results have one score of a name.
    """
    jobs = list(jobs)
    if scoring is None or all(job.done for job in jobs):
        return
    dev = {file for job in jobs for file in job.run.recipe.get("train", {}).get("dev", ())}
    for test, other in product(filter(os.path.isfile, scoring.words), sorted(dev)):
        if table_name(test) == table_name(other) and digest(test) != digest(other):
            what = f"two sets are called {table_name(test)!r}, a test set and the dev set {other}"
            raise CseError(what, where="cse study", value=test, hint="rename one of the files")
    for job in jobs:
        model = str(job.run.recipe.get("model", {}).get("name", ""))
        if not model or model.startswith(RUN):
            continue
        _check_eval(model, *scoring.words)
        return


@cache  # all studies of a race are scored in the same way
def _check_eval(*words: str) -> None:
    dry = child.command("eval", *words, "--dry-run", "--json")
    tried = subprocess.run(dry, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if tried.returncode:
        line = _line(tried.stderr, tried.returncode)
        raise CseError(f"runs could not be scored: {line}", where="cse eval")


def _line(said: bytes, code: int) -> str:
    """Return the line that says why a process failed."""
    lines = said.decode(errors="replace").splitlines()
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    if errors:
        return errors[-1]
    if code < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    return f"exit code {code}: {last[:300]}"


def machine() -> dict[str, Any]:
    """Describe the commit of the toolkit and the machine that a run is made on."""
    spec = find_spec("cse_core")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    words = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--exclude", "*"]
    commit = ""  # outside of a checkout
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True)
        commit = done.stdout.strip()
    return {
        "commit": commit,
        "date": date.today().isoformat(),
        "machine": platform.node(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cpus": os.cpu_count(),
    }
