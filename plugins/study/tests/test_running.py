"""Carrying jobs out: order, workers that end, locks, and being stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cse_study.execution import jobs
from cse_study.execution.executors import executor_of, threads_of
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Done, Job
from cse_study.execution.running import TRIES, Watcher, Work, carry_out

from cse_core.errors import CseError


def work(folder: Path, after: Mapping[str, tuple[str, ...]]) -> Work:
    named = {key: Job(folder=str(folder), key=key, call="a:b") for key in after}
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    return Work(named, dict(after))


def test_what_others_start_from_is_made_before_them(tmp_path: Path) -> None:
    order: list[str] = []

    def make(job: Job) -> Done:
        order.append(job.key)
        return Done(job.key, "done")

    wanted = work(tmp_path, {"c": ("b",), "b": ("a",), "a": (), "d": ()})
    with ThreadPoolExecutor(2) as pool:
        ended = carry_out(wanted, pool, Watcher(), function=make)
    assert set(ended) == {"a", "b", "c", "d"}
    assert order.index("a") < order.index("b") < order.index("c")


def test_a_failed_run_hurts_only_those_that_start_from_it(tmp_path: Path) -> None:
    def make(job: Job) -> Done:
        return Done(job.key, "failed", "too hot") if job.key == "a" else Done(job.key, "done")

    heard: list[Done] = []

    class Hearing(Watcher):
        def ended(self, done: Done) -> None:
            heard.append(done)

    wanted = work(tmp_path, {"a": (), "b": ("a",), "c": ()})
    with ThreadPoolExecutor(1) as pool:
        ended = carry_out(wanted, pool, Hearing(), function=make)
    assert {key: done.status for key, done in ended.items()} == {
        "a": "failed", "b": "failed", "c": "done"
    }  # fmt: skip
    assert "run a, which it starts from, failed" in ended["b"].line
    assert len(heard) == 3


def test_what_is_there_is_not_made(tmp_path: Path) -> None:
    wanted = work(tmp_path, {"a": (), "b": ()})
    StudyFolder(tmp_path).output("a").write_text('{"x": 1}')
    made: list[str] = []

    def make(job: Job) -> Done:
        made.append(job.key)
        return Done(job.key, "done")

    with ThreadPoolExecutor(1) as pool:
        carry_out(wanted, pool, Watcher(), function=make)
    assert made == ["b"]


def test_checkpoints_of_a_run_that_has_not_ended_stay(tmp_path: Path) -> None:
    place = StudyFolder(tmp_path)
    checkpoint = place.run("a") / "checkpoints" / "step-1"
    checkpoint.mkdir(parents=True)
    place.drop_checkpoints("a")
    assert checkpoint.is_dir()
    (place.run("a") / "result.json").write_text("{}")
    place.drop_checkpoints("a")
    assert not checkpoint.exists()


def test_what_failed_in_an_earlier_pass_is_not_tried_again(tmp_path: Path) -> None:
    made: list[str] = []

    def make(job: Job) -> Done:
        made.append(job.key)
        return Done(job.key, "done")

    wanted = work(tmp_path, {"a": (), "b": ("a",), "c": ()})
    before = {"a": Done("a", "failed", "too hot")}
    with ThreadPoolExecutor(1) as pool:
        ended = carry_out(wanted, pool, Watcher(), before, function=make)
    assert made == ["c"]
    assert {key: done.status for key, done in ended.items()} == {
        "a": "failed", "b": "failed", "c": "done"
    }  # fmt: skip


@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize(("times", "status"), [(1, "done"), (TRIES, "failed")])
def test_a_job_whose_worker_ends_is_given_to_another(
    tmp_path: Path, times: int, status: str, stopped: bool
) -> None:
    calls: list[str] = []

    def make(job: Job) -> Done:
        calls.append(job.key)
        if len(calls) <= times and stopped:  # as a cluster does that takes a machine back
            return Done(job.key, "stopped")
        if len(calls) <= times:
            raise ConnectionError("the worker is gone")
        return Done(job.key, "done")

    with ThreadPoolExecutor(1) as pool:
        ended = carry_out(work(tmp_path, {"a": ()}), pool, Watcher(), function=make)
    assert ended["a"].status == ("stopped" if stopped and status == "failed" else status)
    assert len(calls) == min(times + 1, TRIES)


def test_two_processes_never_make_one_run(tmp_path: Path) -> None:
    """The second waits until the first, and the child that it started, have let go."""
    folder = StudyFolder(tmp_path)
    code = (
        "import subprocess, sys, os\n"
        "from pathlib import Path\n"
        "from cse_study.execution.folder import StudyFolder\n"
        "with StudyFolder(Path(sys.argv[1])).locked('k', lambda: None) as lock:\n"
        "    subprocess.Popen(['sleep', '3'], pass_fds=(lock.fileno(),))\n"
        "    print('held', flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        other.wait()
        waited: list[float] = []
        with folder.locked("k", lambda: waited.append(time.monotonic())):
            pass
    assert waited, "the child of a killed process still held the lock"


def test_waiting_for_a_lock_ends_when_the_study_is_stopped(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    job = Job(folder=str(tmp_path), key="k", call="a:b")
    jobs.stopping.clear()
    with folder.locked("k", lambda: None), ThreadPoolExecutor(1) as pool:
        future = pool.submit(jobs.make, job)
        time.sleep(0.2)
        assert not future.done()
        jobs.stop_children()
        assert future.result(10).status == "stopped"
    jobs.stopping.clear()


def test_an_interrupt_cancels_what_has_not_begun(tmp_path: Path) -> None:
    class Interrupted(Watcher):
        def look(self) -> None:
            raise KeyboardInterrupt

    begun: list[str] = []
    go = threading.Event()

    def make(job: Job) -> Done:
        begun.append(job.key)
        go.wait(0.5)
        return Done(job.key, "stopped" if jobs.stopping.is_set() else "done")

    wanted = work(tmp_path, {key: () for key in "abcd"})
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        carry_out(wanted, pool, Interrupted(), function=make)
    assert jobs.stopping.is_set()
    assert len(begun) < 4
    jobs.stopping.clear()


def test_a_function_is_called_in_a_process_and_its_mistake_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    base: dict[str, Any] = {"folder": str(tmp_path)}
    good = Job(**base, key="g", call="json:loads", settings={"a": 1})
    failed = jobs.make(good)
    assert failed.status == "failed" and "TypeError" in failed.line
    missing = jobs.make(Job(**base, key="m", call="json:nothing", settings={}))
    assert missing.line == (
        "call: module json has no nothing; the plugin's record names a class that does not "
        "exist: reinstall the plugin"
    )
    fine = Job(**base, key="f", call="builtins:dict", settings={"value": 2.5})
    assert jobs.make(fine).status == "done" and fine.done
    assert StudyFolder(tmp_path).output("f").read_text().strip() == '{"value": 2.5}'


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("slurm", "no such executor"),
        ("local:3", "no such executor"),
        ("submitit-local:partition", "is not NAME=VALUE"),
        pytest.param(
            "dask:tcp://127.0.0.1:1", "the cluster does not answer", marks=pytest.mark.slow
        ),
    ],
)
def test_executors_that_are_none_are_one_line(tmp_path: Path, name: str, words: str) -> None:
    if name.startswith(("dask", "submitit")):
        pytest.importorskip("distributed" if name.startswith("dask") else "submitit")
    with pytest.raises(CseError, match=words), executor_of(name, 1, tmp_path):
        pass


@pytest.mark.parametrize("name", ["dask", "submitit"])
def test_a_missing_package_is_named(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed" if name == "dask" else "submitit", None)
    with pytest.raises(CseError, match=rf"pip install 'cse-study\[{name}\]'"):
        with executor_of(name, 1, tmp_path):
            pass


def test_runs_at_a_time_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert threads_of("local", None) is None
    assert threads_of("local", 4) == 2
    assert threads_of("dask", None) == 4
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads_of("local", 4) is None


def ended_once(folder: Path) -> Callable[[Job], Done]:
    """Return a function whose worker is killed the first time that it is called for a job."""

    def make(job: Job) -> Done:
        import os
        import signal
        from pathlib import Path

        mark = Path(job.folder) / f"{job.key}.begun"
        if job.key == "b" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Done(job.key, "done")

    return make


@pytest.mark.parametrize("name", ["dask", pytest.param("submitit-local", marks=pytest.mark.slow)])
def test_a_killed_worker_s_job_is_done_by_another(tmp_path: Path, name: str) -> None:
    pytest.importorskip("distributed" if name == "dask" else "submitit")
    wanted = work(tmp_path, {key: () for key in "abc"})
    with executor_of(name, 2, tmp_path / "logs") as pool:
        ended = carry_out(wanted, pool, Watcher(), function=ended_once(tmp_path))
    assert [ended[key].status for key in "abc"] == ["done"] * 3
    assert (tmp_path / "b.begun").exists()


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "from cse_study.execution import child\n"
        "words = child.function('time:sleep', sys.argv[1], sys.argv[2])\n"
        "print(subprocess.Popen(words).pid, flush=True)\n"
        "import time; time.sleep(60)\n"
    )
    given = tmp_path / "given.json"
    given.write_text("60")
    with subprocess.Popen(
        [sys.executable, "-c", code, str(given), str(tmp_path / "out.json")],
        stdout=subprocess.PIPE, text=True,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        number = int(parent.stdout.readline())
        time.sleep(1.5)
        parent.kill()
    for _ in range(100):
        if not Path(f"/proc/{number}").exists() or _is_dead(number):
            return
        time.sleep(0.1)
    os.kill(number, signal.SIGKILL)
    raise AssertionError("the child lived on")


def _is_dead(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().split(") ")[1][0] == "Z"
    except OSError:
        return True
