"""Carrying jobs out: order, workers that end, locks, being stopped, and runs packed into a file."""

import gzip
import json
import lzma
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cse_study.execution import child, jobs, packs
from cse_study.execution import folder as runs
from cse_study.execution.folder import ITEMS, StudyFolder, read_table, write_json
from cse_study.execution.forks import Server
from cse_study.execution.jobs import Done, Job, Scoring, carry_out, jobs_of
from cse_study.execution.packs import pack, unpack
from cse_study.measures import read_cosines
from cse_study.planning.composing import PlannedRun
from cse_study.planning.plan import Plan
from cse_study.results.rows import scores_of

from cse_core.errors import CseError
from cse_core.files import RESULT, RUN_FILE
from tests.fixtures.methods import refusal

TRAINED, LOST, AS_IT_IS, UNDER_WAY = "a" * 16, "b" * 16, "c" * 16, "d" * 16
SCORING = "5" * 16
PAGES = Path(__file__).parents[3] / "docs" / "studies"


def work(folder: Path, needs: Mapping[str, tuple[str, ...]]) -> dict[str, Job]:
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    return {key: Job(place=StudyFolder(folder), run=PlannedRun(key, call="a:b", needs=each))
            for key, each in needs.items()}  # fmt: skip


def test_runs_are_made_once_those_first_that_others_start_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def statuses(ended: Mapping[str, Done]) -> dict[str, str]:
        return {key: done.status for key, done in ended.items()}

    order: list[str] = []

    def make(job: Job) -> Done:
        order.append(job.key)
        return Done(job.key, "failed" if job.key == "x" else "done", "too hot")

    monkeypatch.setattr(jobs, "make", make)
    needs = {"c": ("b",), "b": ("a",), "a": (), "there": (), "x": (), "y": ("x",)}
    wanted = work(tmp_path, needs)
    heard: list[Done] = []
    StudyFolder(tmp_path).beside("there", "output.json").write_text('{"x": 1}')
    ended = carry_out(wanted, 2, heard.append)
    expected = {"a": "done", "b": "done", "c": "done", "x": "failed", "y": "failed"}
    assert statuses(ended) == expected
    assert order.index("a") < order.index("b") < order.index("c")
    assert "run x, which it starts from, failed" in ended["y"].line
    assert len(heard) == 5 and "y" not in order and "there" not in order
    # What failed in an earlier pass is not tried again.
    order.clear()
    again = carry_out(wanted, 2, heard.append, {"x": ended["x"]})
    assert statuses(again) == expected and "x" not in order


def test_dev_pairs_are_scored_where_tables_show_their_score(tmp_path: Path) -> None:
    place, key = StudyFolder(tmp_path), "k"
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("sentence1\tsentence2\tscore\n")
    recipe = {"model": {"name": "x"}, "train": {"dev": [str(pairs), "starter"]}}
    scoring = Scoring("s", dev=True)
    job = Job(place=place, run=PlannedRun(key, recipe), scoring=scoring)
    write_json(place.scores(key, "s.json"), {})
    write_json(place.run(key) / RESULT, {"chosen_by": "mean", "scores": {"a.spearman": 1.0}})
    assert job.scorings == [scoring] and job.done, "the pairs of the data set are not here"
    write_json(place.dev("starter"), {})
    words = ("--pairs", str(pairs), "--pairs", str(place.dev("starter")), "--no-baselines")
    assert job.scorings == [scoring, Scoring("s.dev", words)]
    assert job.done, "a run that was unpacked has no model to score"
    (place.run(key) / RUN_FILE).write_text("")
    assert not job.done
    write_json(place.scores(key, "s.dev.json"), {})
    assert job.done
    assert replace(job, scoring=Scoring("s")).scorings == [Scoring("s")]
    for chosen in ("news.dev.ndcg@10", "mean"):
        result = {"chosen_by": chosen, "scores": {"news.dev.ndcg@10": 1.0, "a.spearman": 1.0}}
        write_json(place.run(key) / RESULT, result)
        assert job.scorings == [scoring]


def test_runs_at_a_time_share_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = PlannedRun("k", {"model": {"name": "x"}})
    plan = SimpleNamespace(runs={"k": run}, scored=frozenset({"k"}))

    def threads(workers: int) -> int | None:
        place = StudyFolder(tmp_path)
        return jobs_of(cast(Plan, plan), place, Scoring("s"), workers)["k"].threads

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert (threads(1), threads(4)) == (None, 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads(4) is None


def test_checkpoints_of_a_run_that_has_not_ended_stay(tmp_path: Path) -> None:
    place = StudyFolder(tmp_path)
    checkpoint = place.run("a") / "checkpoints" / "step-1"
    checkpoint.mkdir(parents=True)
    place.drop_checkpoints("a")
    assert checkpoint.is_dir()
    (place.run("a") / "result.json").write_text("{}")
    place.drop_checkpoints("a")
    assert not checkpoint.exists()


def test_two_processes_never_make_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second waits until the first, and the child that it started, have let go."""
    monkeypatch.setattr(runs, "_WAIT", 0.02)
    folder = StudyFolder(tmp_path)
    code = (
        "import subprocess, sys, os\n"
        "from pathlib import Path\n"
        "from cse_study.execution.folder import StudyFolder\n"
        "with StudyFolder(Path(sys.argv[1])).locked('k', lambda: None) as lock:\n"
        "    subprocess.Popen(['cat'], pass_fds=(lock.fileno(),))\n"
        "    print('held', flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        other.wait()
        with folder.locked("k", other.stdin.close):  # the child reads to the end of its input
            assert other.stdin.closed, "the child of a killed process still held the lock"


def test_waiting_for_a_lock_ends_when_the_study_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_WAIT", 0.02)
    folder = StudyFolder(tmp_path)
    jobs.stopping.clear()
    with folder.locked("k", lambda: None), ThreadPoolExecutor(1) as pool:
        future = pool.submit(jobs.make, Job(place=folder, run=PlannedRun("k", call="a:b")))
        time.sleep(0.2)
        assert not future.done()
        jobs.stop_children()
        assert future.result(10).status == "stopped"
    jobs.stopping.clear()


def test_an_interrupt_cancels_what_has_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(done: Done) -> None:
        raise KeyboardInterrupt

    begun: list[str] = []

    def make(job: Job) -> Done:
        begun.append(job.key)
        if len(begun) > 1:
            jobs.stopping.wait(60)
        return Done(job.key, "stopped" if jobs.stopping.is_set() else "done")

    monkeypatch.setattr(jobs, "make", make)
    wanted = work(tmp_path, {key: () for key in "abcd"})
    with pytest.raises(KeyboardInterrupt):
        carry_out(wanted, 1, interrupted)
    assert jobs.stopping.is_set() and len(begun) < 4
    jobs.stopping.clear()


def test_a_function_is_called_in_a_process_and_its_mistake_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    folder = StudyFolder(tmp_path)
    missing = jobs.make(Job(place=folder, run=PlannedRun("m", call="json:nothing")))
    assert missing.status == "failed"
    assert missing.line.startswith("call: module json has no nothing; correct the name in")
    call = PlannedRun("f", call="builtins:dict", settings={"value": 2.5})
    fine = Job(place=folder, run=call)
    assert jobs.make(fine).status == "done" and fine.done
    output = folder.beside("f", "output.json")
    assert output.read_text().strip() == '{"value": 2.5}'


def soon(true: Callable[[], bool]) -> bool:
    return any(true() or time.sleep(0.02) for _ in range(1000))


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """It is reading what nobody writes."""
    pipe, ends = tmp_path / "pipe", list[int]()
    os.mkfifo(pipe)

    def read() -> bool:
        with suppress(OSError):  # while nobody reads
            ends.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        return bool(ends)

    def ended() -> bool:
        with suppress(OSError):
            return ") Z " in Path(f"/proc/{number}/stat").read_text()
        return True

    code = (
        "import subprocess, sys\n"
        "from cse_study.execution import child\n"
        "words = child.function('linecache:getlines', sys.argv[1], sys.argv[2])\n"
        "print(subprocess.Popen(words).pid, flush=True)\n"
        "import time; time.sleep(60)\n"
    )
    (tmp_path / "given.json").write_text(json.dumps(str(pipe)))
    words = [sys.executable, "-c", code, str(tmp_path / "given.json"), str(tmp_path / "out.json")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        number = int(parent.stdout.readline())
        assert soon(read) and not ended()
        parent.kill()
    assert soon(ended)
    os.close(*ends)


def test_forks_share_imports_and_nothing_else(tmp_path: Path) -> None:
    """A fork that crashes harms no other; where there can be no fork, a process is started."""
    given, output, said = (tmp_path / name for name in ("given", "output", "log"))
    server = Server(child.server(), os.environ)

    def asked(code: str, server: Server = server) -> tuple[int | None, bytes, str]:
        given.write_text(json.dumps(code))
        output.write_text("")
        words = child.function("builtins:eval", str(given), str(output))[len(child.start()) :]
        with said.open("ab") as log:
            fork = server.fork(words, log, log.fileno())
        out, _ = fork.communicate()
        return fork.returncode, out, output.read_text()

    known = "'colorsys' in __import__('sys').modules"
    assert asked(known)[2] == "false\n"
    assert asked("__import__('colorsys') and print('out')") == (0, b"out\n", "null\n")
    assert asked(known)[2] == "true\n"
    code, _, none = asked("__import__('builtins').__dict__.update(x=1) or __import__('x.y')")
    assert (code, none) == (1, "") and "No module named 'x'" in said.read_text()
    assert asked("'x' in __import__('builtins').__dict__")[2] == "false\n"
    assert asked("__import__('os').abort()")[0] == -signal.SIGABRT
    handled = "__import__('signal').getsignal(2) is __import__('signal').default_int_handler"
    # A process that ignores interrupts, such as a job of nohup, has children that ignore them.
    here_too = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    assert asked(handled)[2] == f"{str(here_too).lower()}\n"
    here = int(asked("__import__('os').getppid()")[2])
    gpu = (  # what has used one imports for itself
        "import sys, types, wave\n"
        "sys.modules['torch'] = torch = types.ModuleType('torch')\n"
        "torch.accelerator = types.SimpleNamespace(is_available=lambda: True)\n"
    )
    assert asked(f"exec({gpu!r})")[0] == 0
    assert asked("'wave' in __import__('sys').modules")[2] == "false\n"
    server.close()
    assert not Path(f"/proc/{here}").exists()
    with pytest.raises(OSError):
        asked("1")

    def begin() -> bytes:  # in a thread of a study, whose server is gone
        jobs._thread.server = server
        with said.open("ab") as log:
            process = jobs._begin([sys.executable, "-c", "print(1)"], log, os.environ, log.fileno())
        return process.communicate()[0]

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(begin).result() == b"1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="others start a process for each run")
def test_threads_that_are_given_fork_for_the_next_study_too(tmp_path: Path) -> None:
    servers: list[Any] = []
    with ThreadPoolExecutor(1) as threads:
        for key in "ab":
            run = PlannedRun(key, call="builtins:dict", settings={"value": 1})
            (tmp_path / "runs").mkdir(exist_ok=True)
            wanted = {key: Job(place=StudyFolder(tmp_path), run=run)}
            ended = carry_out(wanted, 1, lambda _: None, threads=threads)
            assert ended[key].status == "done", ended[key].line
            servers.append(threads.submit(lambda: jobs._thread.server._process.pid).result())
        assert servers[0] == servers[1] and Path(f"/proc/{servers[0]}").exists()
    assert not Path(f"/proc/{servers[0]}").exists()


@pytest.fixture
def here(tmp_path: Path) -> StudyFolder:
    """A run, a trial that lost, a model that nobody trained, and a run that is not finished."""
    folder = StudyFolder(tmp_path / "here")
    for number, key in enumerate((TRAINED, LOST)):
        dev = {"dev.spearman": 70.0 + number}
        content = {"scores": dev, "chosen_by": "dev.spearman", "steps": 9, "model": "model"}
        write_json(folder.run(key) / RESULT, content)
        (folder.run(key) / RUN_FILE).write_text('[data]\npath = ["/x"]\n[run]\ndevice = "cpu"\n')
    write_json(folder.beside(TRAINED, "facts.json"), {"commit": "c0", "machine": "mine"})
    for key, value in ((TRAINED, 61.5), (AS_IT_IS, 60.5)):
        said = {"model": "/x", "results": {"stsb.test": {"spearman": value}}, "words": ["/x"]}
        said["folder"] = "/x/sts"
        write_json(folder.scores(key, f"{SCORING}.json"), said)
    folder.run(UNDER_WAY).mkdir()
    (folder.run(UNDER_WAY) / RUN_FILE).write_text("")
    return folder


def test_what_is_packed_comes_out_again(here: StudyFolder, tmp_path: Path) -> None:
    file, there = tmp_path / "runs.gz", StudyFolder(tmp_path / "there")
    keys = (TRAINED, LOST, AS_IT_IS, UNDER_WAY)
    assert pack(here, keys, file) == 3
    text = gzip.decompress(file.read_bytes()).decode()
    assert "/x" not in text and "mine" not in text
    assert unpack(there, file) == (3, 3)
    for key in keys:
        assert scores_of(there, key, SCORING) == scores_of(here, key, SCORING)
        assert there.trained(key) == here.trained(key)
    facts = read_table(there.beside(TRAINED, "facts.json"))
    assert facts == {"commit": "c0", "run": {"device": "cpu"}}
    assert unpack(there, file) == (0, 3), "a run that is there stays"
    again = tmp_path / "again.gz"
    assert pack(there, keys, again) == 3 and again.read_bytes() == file.read_bytes()
    smaller = tmp_path / "runs.xz"
    pack(here, keys, smaller)
    assert lzma.decompress(smaller.read_bytes()).decode() == text
    assert unpack(StudyFolder(tmp_path / "by xz"), smaller) == (3, 3)
    recipe = {"model": {"name": f"@run:{TRAINED}"}}
    done = jobs.make(Job(place=there, run=PlannedRun(UNDER_WAY, recipe)))
    assert done.status == "failed"
    assert done.line == f"starts from run {TRAINED}, unpacked without its model; delete {TRAINED}"


def test_items_are_packed_without_sentences(here: StudyFolder, tmp_path: Path) -> None:
    file, there = tmp_path / "runs.gz", StudyFolder(tmp_path / "there")
    pairs, ranks = (here.scores(TRAINED, f"{SCORING}{ending}") for ending in ITEMS)
    pairs.write_text(
        'set\tgold\tcosine\tsubset\tsentence1\tsentence2\na\t4.5\t0.25\t\t"a\u2028secret\x0c\tb\n'
    )
    shutil.copy(pairs, here.scores(TRAINED, f"{SCORING}.dev.tsv"))
    write_json(here.scores(TRAINED, f"{SCORING}.dev.json"), {"results": {}})
    ranks.write_text("set\titem\trank\tright\nt\t1\t3\t\nt\t2\t\t1\n")
    assert pack(here, [TRAINED], file) == 1
    assert "secret" not in gzip.decompress(file.read_bytes()).decode()
    unpack(there, file)
    came = [there.scores(TRAINED, f"{SCORING}{ending}") for ending in ITEMS]
    assert [len(part) for part in read_cosines(came[0])["a"]] == [1, 1]
    assert came[1].read_text() == ranks.read_text()
    dev = there.scores(TRAINED, f"{SCORING}.dev.tsv")
    assert dev.read_text() == came[0].read_text(), "dev scores are drawn from a pack too"


def test_what_is_scored_already_stays(here: StudyFolder, tmp_path: Path) -> None:
    file, there = tmp_path / "runs.gz", StudyFolder(tmp_path / "there")
    pack(here, [AS_IT_IS], file)
    mine = there.scores(AS_IT_IS, f"{SCORING}.json")
    write_json(mine, {"results": {"stsb.test": {"spearman": 1.5}}})
    write_json(here.scores(AS_IT_IS, f"{'e' * 16}.json"), {"results": {}})
    pack(here, [AS_IT_IS], file)
    assert unpack(there, file) == (1, 1) and scores_of(there, AS_IT_IS, "e" * 16) == {}
    assert read_table(mine)["results"]["stsb.test"] == {"spearman": 1.5}


def test_what_stands_beside_a_page_names_no_folder() -> None:
    for file in PAGES.glob("*.[gx]z"):
        unpacked = lzma.decompress if file.suffix == ".xz" else gzip.decompress
        text = unpacked(file.read_bytes()).decode()
        text = re.sub(r'"name": "[^"/][^"]*", "size"', "", text)  # below what was named
        assert text.count("\n") > 5
        assert not re.search(r'"(folder|file|machine|model)": (?!"@)|"[^"]*\S/\S+/\S+"', text), file


NO_NUMBERS: list[dict[str, Any]] = [
    {"result": {"scores": {"dev.spearman": math.nan}}},
    {"scores": {SCORING: {"results": {"stsb.test": {"spearman": math.inf}}}}},
    {"items": {SCORING: {".tsv": "set\tgold\tcosine\na\t1\tx\n"}}},
    {"items": {SCORING: {".tsv": "set\tgold\tcosine\na\t1\tnan\n"}}},
    {"items": {SCORING: {".items.tsv": "set\titem\trank\na\t1\n"}}},
    {"items": {SCORING: {".items.tsv": ""}}},
    {"items": {SCORING: {".toml": "set\titem\n"}}},
    {"items": {SCORING: {".items.tsv": "item\trank\n1\t1\n"}}},
    {"scores": {SCORING: {"results": {"stsb.test": {"spearman": 10**400}}}}},
]
OTHER_TYPES: dict[str, dict[str, Any]] = {
    "result.steps is 'many'": {"result": {"steps": "many"}},
    "result.step is 1.5": {"result": {"step": 1.5}},
    "result.scores is [1.0]": {"result": {"scores": [1.0]}},
    "result.scores.dev.spearman is '70'": {"result": {"scores": {"dev.spearman": "70"}}},
    "facts.run is 'cpu'": {"facts": {"run": "cpu"}},
    "facts.run.data is []": {"facts": {"run": {"data": []}}},
    "facts.commit is 5": {"facts": {"commit": 5}},
    f"scores.{SCORING}.results is 5": {"scores": {SCORING: {"results": 5}}},
    f"scores.{SCORING}.results.stsb.test is 60.5": {
        "scores": {SCORING: {"results": {"stsb.test": 60.5}}}
    },
    f"scores.{SCORING}.seconds is 'long'": {"scores": {SCORING: {"seconds": "long"}}},
    f"scores.{SCORING}.results.a.tasks is 5": {
        "scores": {SCORING: {"results": {"a": {"tasks": 5}}}}
    },
}


def test_packed_runs_of_other_types_are_not_taken(tmp_path: Path) -> None:
    file, there = tmp_path / "runs.gz", StudyFolder(tmp_path / "there")
    for said, wrong in OTHER_TYPES.items():
        line = {"key": TRAINED, "result": {}, "facts": {}, "scores": {}, **wrong}
        file.write_bytes(gzip.compress(json.dumps(line).encode() + b"\n"))
        assert f"is damaged: line 1.{said}; cse study NAME --pack" in refusal(unpack, there, file)
        assert not there.path.exists()


def test_a_file_of_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def packed(line: object) -> bytes:
        return gzip.compress(json.dumps(line).encode() + b"\n")

    assert packs._MAX_BYTES == 2**28
    monkeypatch.setattr(packs, "_MAX_BYTES", 2**16)  # as many bytes take seconds
    empty = {"result": {}, "facts": {}, "scores": {}}
    files = [
        (packed({"key": "../../x", **empty}), "line 1 is not a run"),
        (packed({**empty, "key": TRAINED, "scores": {"../x": {}}}), "line 1 is not a run"),
        (packed({"key": TRAINED}), "line 1 is not a run"),
        *(
            (packed({"key": TRAINED, **empty, **wrong}), "line 1 is not a run")
            for wrong in NO_NUMBERS
        ),
        (b"plain", "cannot be read: it is neither of gzip nor of xz"),
        (packed({})[:-12], "was cut short"),
        (lzma.compress(b"{}")[:-12], "was cut short"),
        (lzma.compress(b"{}")[:9] + b"other", "was cut short"),
        (gzip.compress(b"x" * 2**16 + b"y"), "unpacks to more than 65,536 bytes"),
        (None, "cannot be read: No such file or directory"),
    ]
    file, there = tmp_path / "runs.gz", StudyFolder(tmp_path / "there")
    for content, said in files:
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)
        line = refusal(unpack, there, file)
        hint = "pack fewer" if "more than" in said else "cse study NAME --pack FILE writes such"
        assert line.startswith(f"--unpack: {said} (got {str(file)!r}); {hint}")
        assert not there.path.exists()
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    with pytest.raises(CseError, match="is not a regular file"):
        unpack(there, file)
