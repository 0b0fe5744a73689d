"""Rows of a pack made again on this machine, and compared with what the pack says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from cse_cli.api import Installed
from cse_core.errors import CseError
from cse_study.definition.reading import Definition
from cse_study.execution.folder import StudyFolder, facts_of, unpack
from cse_study.execution.jobs import Done, carry_out, check_scoring, jobs_of
from cse_study.planning.composing import Wish
from cse_study.results.rows import Row, scores_of
from cse_study.session import Session

TOLERANCE = {"fp32": 0.1}
"""Points by which scores may differ on another machine, by number format; else ``_COARSE``."""
_COARSE = 0.5
_MACHINE = ("processor", "system")
_RUN = ("device", "precision", "threads", "processes")


@dataclass(frozen=True)
class Verified:
    """A row that was made again.

    Attributes:
        verdict: ``equal`` bit for bit, ``near`` within the format's tolerance, ``other``, or
            ``failed``.
        largest: The largest difference of a score, in points.
        score: The score that it is of.
        parted: Where both first part, and what was not the same; empty where nothing parts.
    """

    point: str
    seed: int
    key: str
    verdict: Literal["equal", "near", "other", "failed"]
    largest: float = 0.0
    score: str = ""
    parted: str = ""


def verify(
    definition: Definition,
    wish: Wish,
    plugins: Installed,
    packed: Path,
    workers: int,
    *,
    begin: Callable[[list[Row], float], object],
    hear: Callable[[Row, Done], object],
) -> list[Verified]:
    """Make the rows of a pack again that belong to the study's points and seeds.

    The rates that trials chose are those of the pack; the trials are not made again. Nothing is
    kept. ``begin`` hears of the rows, and of the seconds that they took where the pack was made.

    Raises:
        CseError: If the pack has no such row: its model, texts and dev sets have to be named, too.
    """
    with TemporaryDirectory(prefix="cse-verify-") as name:
        known = Session(definition, wish, plugins, Path(name, "known"), workers)
        unpack(known.folder, packed)
        rows = {row.key: row for row in known.results.rows if row.status == "done"}
        if not rows:
            hint = (
                "name the model, texts, dev sets and suites with which it was made, and its seeds"
            )
            what = "has no row of these points and seeds"
            raise CseError(what, where="--verify", value=str(packed), hint=hint)
        place = StudyFolder(Path(name, "again"))
        place.runs.mkdir(parents=True)
        jobs = jobs_of(known.plan, place, known.scoring, workers)
        wanted, todo = dict.fromkeys(rows), [*rows]
        while todo:
            needs = [key for key in jobs[todo.pop()].run.needs if key not in wanted]
            wanted |= dict.fromkeys(needs)
            todo += needs
        jobs = {key: jobs[key] for key in wanted}
        check_scoring(known.scoring, jobs.values())
        known.write_dev_sets(place)
        begin([*rows.values()], sum(row.facts.get("seconds") or 0.0 for row in rows.values()))
        ended = carry_out(
            jobs, workers, lambda done: done.key in rows and hear(rows[done.key], done)
        )
        scoring = None if known.scoring is None else known.scoring.key
        made = []
        for row in rows.values():
            done = ended[row.key]
            about = row.point.name, row.seed, row.key
            if done.status != "done":
                made.append(Verified(*about, "failed", parted=done.line))
                continue
            again = scores_of(place, row.key, scoring)
            facts = [facts_of(folder, row.key) for folder in (known.folder, place)]
            made.append(_compared(about, row.scores, again, facts[0], facts[1]))
        return made


def _compared(
    about: tuple[str, int, str],
    before: Mapping[str, float],
    now: Mapping[str, float],
    facts: Mapping[str, Any],
    facts_now: Mapping[str, Any],
) -> Verified:
    lost = sorted(before.keys() - now.keys())
    apart = {name: abs(now[name] - before[name]) for name in before.keys() & now.keys()}
    score = max(sorted(apart), key=apart.__getitem__, default="")
    largest = apart.get(score, 0.0)
    parts = [f"{lost[0]} is not there now"] if lost else []
    if largest or lost:
        parts += [*_first_step(facts, facts_now), *_changes(facts, facts_now)]
    run: Mapping[str, Any] = facts.get("run", {})
    most = TOLERANCE.get(str(run.get("precision")), _COARSE)
    same_step = before.get("chosen_step") == now.get("chosen_step")
    points = max((v for name, v in apart.items() if name != "chosen_step"), default=0.0)
    if not lost and not largest:
        return Verified(*about, "equal")
    near = not lost and same_step and points <= most
    return Verified(*about, "near" if near else "other", largest, score, "; ".join(parts))


def _first_step(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name the first dev score that differs, where the pack keeps them."""
    pairs = zip(before.get("evaluations", ()), now.get("evaluations", ()), strict=False)
    for (number, step, value), (*_, other) in pairs:
        if value != other:
            return [f"round {number}, step {step}: dev {value:.4f} then, {other:.4f} now"]
    return []


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say what of the machine, the run and the packages is another."""
    changes = []
    for names, one, other in (
        (_MACHINE, before, now),
        (_RUN, before.get("run", {}), now.get("run", {})),
        (before.get("versions", {}), before.get("versions", {}), now.get("versions", {})),
    ):
        changes += [
            f"{name}: {one[name]} then, {other.get(name)} now"
            for name in names
            if name in one and one[name] != other.get(name)
        ]
    return changes
