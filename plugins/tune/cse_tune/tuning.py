"""A race of compositions on one's own texts: what ``cse tune`` does."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from cse_cli.api import Choice, Installed, composition_of, fingerprints, read_json
from cse_core.errors import CseError
from cse_core.files import atomic_write, lock_folder
from cse_tune.budget import Budget, Costs, beginning, lay_out
from cse_tune.picture import draw_race
from cse_tune.race import Gains, Left, as_json, look
from cse_tune.space import BESIDE, DEFAULT, STATIC, STATIC_RATE, space_of
from cse_tune.texts import Split, split_texts, write_collection, write_rows
from cse_tune.verdict import ADAPT, SIMCSE, START, Judged, agreement, judge

STATE = "tune.json"
STEPS, EPOCHS = 300, 5
"""Steps and passes over the rows at most, by default."""
LENGTH = 128
"""Tokens of the longest text."""
PROBE = 8
"""Steps of the run that is timed."""
_BATCH = 32
_LEAST_REST = 1.0
"""Seconds that a run takes beside its steps, at least."""
_FIRST = 1
"""The seed of the race, and of the model. Methods are compared with others: this one chose."""
_BESIDE = {START: 1, SIMCSE: 2, ADAPT: 3}
"""Points of the study beside the race."""
Say = Callable[[str], object]


@dataclass
class Race:
    """A race in its folder; whatever it has made is there when it is begun again."""

    plugins: Installed
    files: Sequence[str]
    model: str
    minutes: float
    out: Path
    space: Path | None = None
    seeds: int = 3
    steps: int | None = None
    workers: int = 1
    say: Say = lambda _: None
    _length: int = LENGTH
    _threads: Executor | None = None
    _began: float | None = None
    _last: Mapping[str, Any] = field(default_factory=lambda: {"rows": ()})

    def prepare(self) -> Split:
        """Write the texts, questions and studies.

        Raises:
            CseError: If something that was given is wrong, or the folder has another race.
        """
        if not math.isfinite(self.minutes):
            raise CseError("is not a number of minutes", where="--minutes", value=self.minutes,
                           hint="write 1000 to leave it open")  # fmt: skip
        state = self._state
        if not state and (names := _visible(self.out)):
            what = f"holds other things: {names[0]}"
            raise CseError(what, where="--out", value=str(self.out), hint="name a new folder")
        split = split_texts(self.files, self.plugins)
        choice = Choice(model=self.model, data=[*self.files], dev=["none"])
        composition = composition_of(choice, self.plugins)
        facts = composition.facts
        read = json.dumps(fingerprints(composition, self.plugins.registry), sort_keys=True)
        self._length = min(LENGTH, facts.positions or LENGTH)
        name, rate = (DEFAULT, None) if facts.layers else (STATIC, STATIC_RATE)
        studies = {
            "space.toml": space_of(self.space, name, length=self._length),
            "beside.toml": space_of(None, BESIDE, length=self._length, rate=rate),
        }
        given = {
            "texts": split.trained.fingerprint, "model": self.model, "weights": _digest(read),
            "minutes": self.minutes, "seeds": self.seeds, "steps": self.steps,
            "space": _digest(studies["space.toml"]),
        }  # fmt: skip
        before = state.get("given", given)
        fixed = [*given] if "layout" in state else ["texts", "model", "weights"]
        if changed := [key for key in fixed if before.get(key) != given[key]]:
            what = f"has a race with other {' and '.join(changed)}"
            raise CseError(what, where="--out", value=str(self.out), hint="name another folder")
        self.out.mkdir(parents=True, exist_ok=True)
        with self._alone():
            self._write(given=given)
            for file, text in studies.items():
                atomic_write(self._file(file), text)
            if not self._file("texts.parquet").is_file():
                write_rows(split.trained, self._file("texts.parquet"))
            for name, asked in (("race", split.race), ("judge", split.judge)):
                if not self._file(f"{name}/qrels/test.tsv").is_file():
                    write_collection(asked, self._file(name))
        return split

    def _alone(self) -> AbstractContextManager[None]:
        return lock_folder(self.out, "--out", "racing in it")

    def plan(self) -> dict[str, Any]:
        """Compose every point of the space, and what the winner is judged beside."""
        self._study("beside", run=False)
        return self._study("space", run=False, leave_out=True)

    def run(self) -> dict[str, Any]:
        """Race, judge the winner, and return what ``cse tune --json`` prints."""
        began, split = time.monotonic(), self.prepare()
        with self._alone(), ThreadPoolExecutor(self.workers) as self._threads:
            if done := self._state.get("result"):
                return dict(done)
            if "layout" not in self._state:  # what was timed in part is timed again
                shutil.rmtree(self._file("studies"), ignore_errors=True)
                self._write(seconds=0.0)
            self._began = began - float(self._state["seconds"])
            return self._run(split)

    def _run(self, split: Split) -> dict[str, Any]:
        planned = self.plan()
        accepted = [p for p in planned["points"] if p["number"] not in planned["left_out"]]
        labels = {point["number"]: point["label"] for point in accepted}
        groups = {p["number"]: next(iter(p["labels"].values()), "") for p in accepted}
        made = self._study("beside", points=[_BESIDE[START]])
        if not (starts := [*self._gains(made).values()]):
            line = made["rows"][0]["line"]
            raise CseError(f"could not be scored: {line}", where="--model", value=self.model)
        budget, points = self._laid_out(split, groups)
        self.say(f"{budget.points} of {len(labels)} compositions race for "
                 f"{', '.join(str(steps) for steps, _ in budget.rungs)} steps")  # fmt: skip
        winner, left, lines = self._race(budget, points, labels)
        judged, rows = self._judged(split, winner, labels[winner], budget)
        draw_race(lines, float(100 * starts[0].mean()), labels[winner], self._file("race.svg"))
        return self._ended(judged, winner, labels, left, lines, planned, budget, rows)

    def _race(
        self, budget: Budget, points: list[int], labels: Mapping[int, str]
    ) -> tuple[int, dict[int, tuple[int, Left]], dict[str, list[tuple[int, float]]]]:
        """Return the winner, when and why others left, and the score of each by steps."""
        left: dict[int, tuple[int, Left]] = {}
        lines: dict[str, list[tuple[int, float]]] = {}
        looks = (len(points) - 1) * len(budget.rungs)
        for rung, (steps, _) in enumerate(budget.rungs):
            if len(points) == 1 and lines and steps < budget.steps:
                continue  # nothing is left to decide
            if rung:  # before it, nothing says which points are better
                fit = self._fitting(budget, rung, steps)
                left |= {number: (rung - 1, Left(number, "room")) for number in points[fit:]}
                points = points[:fit]
            # Where all fail, those that had no room run in their place, the last to leave first.
            spare = [number for number, (_, one) in left.items() if one.why == "room"]
            spare.sort(key=lambda n: (-left[n][0], -lines[labels[n]][-1][1]))
            gains: dict[int, Gains] = {}
            while points and not gains:
                made = self._study("space", points=points, steps=steps, leave_out=True)
                gains = {number: value for (number, _), value in self._gains(made).items()}
                lost = {row["number"]: row["line"] for row in made["rows"]
                        if row["number"] not in gains}  # fmt: skip
                left |= {number: (rung, Left(number, "failed", line=line))
                         for number, line in lost.items()}  # fmt: skip
                points, spare = spare[: len(points)], spare[len(points) :]
            if not gains:
                line = next(iter(lost.values()))
                raise CseError(f"every composition failed: {line}", where="cse tune")
            left = {number: why for number, why in left.items() if number not in gains}
            for number, value in gains.items():
                lines.setdefault(labels[number], []).append((steps, float(100 * value.mean())))
            room = budget.rungs[rung + 1][1] if rung + 1 < len(budget.rungs) else 1
            points, gone = look(gains, family=looks, room=room)
            if steps < budget.steps:
                self._drop_models(made)
            else:  # the winner is judged, and runs beside it may be the same as others of these
                self._last = made
            left |= {one.number: (rung, one) for one in gone}
            self.say(f"after {steps} steps {len(points)} of {len(gains)} go on, first "
                     f"{labels[points[0]]}")  # fmt: skip
        return points[0], left, lines

    def _laid_out(self, split: Split, groups: Mapping[int, str]) -> tuple[Budget, list[int]]:
        """Return the race's layout and its points, measured once."""
        state = self._state
        if "layout" not in state:
            ends: list[float] = []
            timed = self._study(
                "beside", points=[_BESIDE[SIMCSE]], steps=PROBE,
                seeds=[_FIRST + number for number in range(2 * self.workers)],
                ended=lambda: ends.append(time.monotonic()),
            )  # fmt: skip
            rows = timed["rows"]
            if lost := [row["line"] for row in rows if row["status"] != "done"]:
                raise CseError(f"SimCSE could not be trained: {lost[0]}", where="cse tune")
            self._drop_models(timed)
            # As many runs as in the race compete for memory; the first ones also start the
            # process that all are forks of.
            later = rows[self.workers :]
            trained = sum(float(row["seconds"]) for row in later) / len(later)
            rest = max(ends[-1] - ends[self.workers - 1] - trained, _LEAST_REST)
            judging = rest * len(split.judge.texts) / max(1, len(split.race.texts))
            costs = Costs(trained / PROBE, rest, judging, self.workers)
            most = self.steps or min(STEPS, max(1, EPOCHS * len(split.trained) // _BATCH))
            seconds = 60 * self.minutes
            budget = lay_out(len(groups), self.seeds, most, costs, seconds, self._elapsed())
            chosen = beginning(groups, budget.points)
            self._write(layout=asdict(budget), costs=asdict(costs), points=chosen)
            state = self._state
        return Budget(**state["layout"]), state["points"]

    def _fitting(self, budget: Budget, rung: int, steps: int) -> int:
        """Return how many points a rung has time for, at least one, decided once."""
        known = self._state.get("fitting", {})
        if str(rung) not in known:
            costs = Costs(**self._state["costs"])
            rest = 60 * self.minutes - self._elapsed() - budget.judging(costs)
            fit = max(1, costs.workers * int(rest / costs.trained(1, steps)))
            known = {**known, str(rung): fit}
            self._write(fitting=known)
        return int(known[str(rung)])

    def _judged(
        self, split: Split, winner: int, label: str, budget: Budget
    ) -> tuple[Judged, list[dict[str, Any]]]:
        seeds = [*range(_FIRST + 1, _FIRST + 1 + budget.seeds)]
        given: dict[str, Any] = {"steps": budget.steps, "questions": "judge"}
        made = self._study(
            "space", points=[winner], leave_out=True, seeds=[_FIRST, *seeds], **given
        )
        compared = self._study("beside", seeds=seeds, **given)
        beside = self._gains(compared)
        ours = self._gains(made)
        for name, row in ((label, made["rows"][0]), (START, compared["rows"][0])):
            if row["status"] != "done":
                what = f"{name} could not be judged: {row['line']}"
                raise CseError(what, where="cse tune", hint="the same command tries it again")
        seeds = [seed for seed in seeds if (winner, seed) in ours]
        if not seeds:
            line = next(row["line"] for row in made["rows"] if row["line"])
            what = f"{label} could not be trained with another seed: {line}"
            raise CseError(what, where="cse tune", hint="the same command tries it again")
        start = next(gains for (number, _), gains in beside.items() if number == _BESIDE[START])
        others = {START: [start]}
        missing = ""
        for name in (SIMCSE, ADAPT):
            values = {seed: gains for (number, seed), gains in beside.items()
                      if number == _BESIDE[name]}  # fmt: skip
            if values.keys() >= {*seeds}:
                others[name] = [values[seed] for seed in seeds]
            else:
                lines = {row["number"]: row["line"] for row in compared["rows"] if row["line"]}
                missing += f"; not compared with {name}: {lines.get(_BESIDE[name], 'left out')}"
        before, now = (
            agreement(one, split.judge, self.plugins, max_length=self._length)
            for one in (self.model, made["rows"][0]["run"])
        )
        judged = judge(
            label, ours[winner, _FIRST], [ours[winner, seed] for seed in seeds], others,
            (before, now), ordered=split.ordered, texts=len(split.judge.texts),
        )  # fmt: skip
        for rows in (self._last, compared):
            self._drop_models(rows, {row["run"] for row in made["rows"]})
        return replace(judged, text=judged.text + missing), made["rows"]

    def _drop_models(self, made: Mapping[str, Any], kept: Collection[str] = ()) -> None:
        """Delete the models of runs that were scored, but for those that are ``kept``."""
        runs = self._file("studies").absolute()
        for row in made["rows"]:
            model = Path(row["run"]).absolute() / "model"
            if row["run"] not in kept and row["status"] == "done" and runs in model.parents:
                shutil.rmtree(model, ignore_errors=True)

    def _ended(
        self, judged: Judged, winner: int, labels: Mapping[int, str],
        left: Mapping[int, tuple[int, Left]], lines: Mapping[str, Sequence[tuple[int, float]]],
        planned: Mapping[str, Any], budget: Budget, rows: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:  # fmt: skip
        run = Path(rows[0]["run"])
        recipe = self._file("recipe.toml")
        atomic_write(recipe, run.with_suffix(".toml").read_text(encoding="utf-8"))
        model = self._file("model")
        shutil.rmtree(model, ignore_errors=True)
        if judged.better:
            shutil.copytree(run / "model", model)
        race: list[dict[str, Any]] = []
        for number, label in labels.items():
            entry: dict[str, Any] = {"number": number, "label": label}
            entry |= {"scores": lines.get(label, []), "left": "not begun"}
            if number == winner:
                entry["left"] = None
            if number in left:
                rung, why = left[number]
                entry |= {"left": why.why, "rung": rung + 1, "line": why.line}
                entry |= {"difference": as_json(why.difference)} if why.difference else {}
            race.append(entry)
        names = {point["number"]: point["label"] for point in planned["points"]}
        refused = {names[number]: faults for number, faults in planned["left_out"].items()}
        result = {
            "verdict": judged.text, "better": judged.better, "winner": labels[winner],
            "steps": budget.steps, "seeds": budget.seeds, "means": dict(judged.means),
            "differences": {name: as_json(one) for name, one in judged.differences.items()},
            "bm25_agreement": judged.agreement, "race": race, "refused": refused,
            "ends": _ends(planned["points"], winner),
            "recipe": str(recipe), "model": str(model) if judged.better else None,
            "runs": [row["run"] for row in rows], "picture": str(self._file("race.svg")),
            "seconds": round(self._elapsed(), 1),
        }  # fmt: skip
        self._write(result=result)
        return result

    def _study(
        self, name: str, *, questions: str = "race",
        ended: Callable[[], object] = lambda: None, **given: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Run a study of the folder.

        ``ended`` is called when a run ends.
        """

        def hear(point: str, seed: int, status: str, line: str) -> None:
            what = "done" if status == "done" else f"{status}: {line}"
            self.say(f"{point}, seed {seed}: {what}")
            ended()

        study = self.plugins.commands.function("study")
        data = {"texts": self._file("texts.parquet"), "questions": self._file(questions)}
        try:
            result: dict[str, Any] = study(
                self.plugins, str(self._file(f"{name}.toml")), out=self._file("studies"),
                model=self.model, data={role: str(path) for role, path in data.items()},
                workers=self.workers, threads=self._threads, hear=hear, **given,
            )  # fmt: skip
        finally:
            if self._began is not None:
                self._write()
        return result

    def _gains(self, made: Mapping[str, Any]) -> dict[tuple[int, int], Gains]:
        """Return nDCG@10 of each question, by point and seed."""
        return {
            (row["number"], row["seed"]): next(iter(row["items"].values()))["ndcg@10"]
            for row in made["rows"]
            if row["status"] == "done" and row["items"]
        }

    def _elapsed(self) -> float:
        assert self._began is not None
        return time.monotonic() - self._began

    def _file(self, name: str) -> Path:
        return self.out / name

    @property
    def _state(self) -> dict[str, Any]:
        hint = "name another --out"
        state: dict[str, Any] | None = read_json(self._file(STATE), {}, hint)
        return state or {}

    def _write(self, **changes: Any) -> None:
        spent = {} if self._began is None else {"seconds": self._elapsed()}
        state = {**self._state, **spent, **changes}
        atomic_write(self._file(STATE), json.dumps(state, indent=1, ensure_ascii=False) + "\n")


def _visible(folder: Path) -> list[str]:
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(name for name in names if not name.startswith("."))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _ends(points: Sequence[Mapping[str, Any]], winner: int) -> list[str]:
    """Say which numbers of the winner are the least or largest that its space has."""
    values: dict[str, dict[int, float]] = {}
    for point in points:
        for path, value in point["settings"].items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                values.setdefault(path, {})[point["number"]] = value
    said = []
    for path, known in values.items():
        least, largest = min(known.values()), max(known.values())
        if winner in known and least < largest and known[winner] in (least, largest):
            word = "least" if known[winner] == least else "largest"
            said.append(f"{path} {known[winner]:g} is the {word} of the space: one beyond it may "
                        "be better (--space FILE)")  # fmt: skip
    return said


def workers_of(given: int | None) -> int:
    """Return how many runs are made at a time: one on a GPU, else one for each of four cores."""
    if given is not None:
        return given
    return 1 if Path("/dev/nvidiactl").exists() else max(1, min(4, os.cpu_count() or 1))


def tune(
    plugins: Installed,
    files: Sequence[str],
    *,
    model: str,
    minutes: float = 30.0,
    out: str | Path = "tuned",
    space: str | Path | None = None,
    seeds: int = 3,
    steps: int | None = None,
    workers: int | None = None,
    say: Say = lambda _: None,
) -> dict[str, Any]:
    """Race compositions on texts, and judge the winner by documents that chose nothing.

    Args:
        plugins: The installed plugins.
        files: Texts with titles: folders of documents, or tables.
        model: The encoder to start from.
        minutes: What the whole takes, about.
        out: The folder; a race that lies in it goes on.
        space: A file with compositions, by default one of this distribution.
        seeds: Seeds with which the winner, and what it is judged beside, are trained at the end.
        steps: Steps of the winner, at most.
        workers: Runs at a time.
        say: Hears of each run.

    Returns:
        ``verdict`` in a sentence, ``better``, ``winner``, ``means`` and ``differences`` of judged
        titles, ``race`` with who left when and why, ``refused`` points, ``recipe``, ``model``.

    Raises:
        CseError: If something that was given is wrong.
        KeyboardInterrupt: If it was interrupted; the same call goes on.
    """
    race = Race(plugins, files, model, minutes, Path(out), None if space is None else Path(space),
                seeds, steps, workers_of(workers), say)  # fmt: skip
    return race.run()
