"""The numbers of finished runs by name, a row for each run, and which number a table shows."""

from __future__ import annotations

import csv
import fnmatch
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from cse_cli.api import format_value
from cse_core.files import RESULT, RUN_FILE, atomic_file
from cse_study.definition.reading import Point
from cse_study.definition.schema import DEV
from cse_study.execution.folder import StudyFolder, read_table
from cse_study.execution.jobs import Scoring
from cse_study.planning.plan import Plan

FILE = "results.csv"
_SUITES = {"sts": "spearman", "chinese": "spearman", "transfer": "accuracy",
           "classify": "accuracy", "retrieval": "recall@5", "collections": "ndcg@10"}  # fmt: skip
"""Suites whose mean ``SUITE.mean`` is, and the number that it is the mean of."""
_FOLDERS = re.compile(r"(?<!\S)/(?:[^\s/]+/)+")
"""Whole paths less the last part, in warnings: tables do not say where files lay."""
_MEAN = re.compile(r"mean\((.+)\)")
MAIN = ("spearman", "accuracy", "ndcg@10", "recall@5", "recall@1", "mean_average_precision")
"""Numbers that stand for a set, in this order, where only the set is named."""
WORDS = {"tfidf": "TF-IDF", "bm25": "BM25"}
"""What ``cse eval`` calls the scores of words alone, and what tables call them."""
ANY_TEST = "*.test"
"""What a table shows where a study names no score."""
MEAN = "mean"
"""The dev score that is the mean over several dev sets."""
DEV_SETS = ("@dev",)
"""Stand for the sets of that score."""


@dataclass(frozen=True)
class Row:
    """A point with a seed.

    Attributes:
        status: ``done``, ``failed``, ``begun`` or ``missing``.
        facts: Columns that every study has.
        options: Every resolved option.
        scores: Every number.
        results: What ``cse eval --json`` said, or the output of a command or a function.
        untrained: Whether a model was scored as it is, the same one with every seed.
        warnings: What its plan warned of, and what it warned of while it ran.
    """

    point: Point
    seed: int
    key: str
    status: str
    facts: Mapping[str, Any]
    options: Mapping[str, Any]
    scores: Mapping[str, float]
    results: Mapping[str, Any]
    untrained: bool = False
    warnings: tuple[str, ...] = ()

    def shown(self, name: str) -> Shown | None:
        """Return the score that a table shows by a name, as :func:`find_shown` does."""
        return find_shown(name, self.scores, self.results, self.facts.get("chosen_by"))

    def as_dict(self, study: str) -> dict[str, Any]:
        """Return the row as columns by name."""
        return {
            "study": study,
            "point": self.point.label,
            "number": self.point.number,
            "seed": self.seed,
            "key": self.key,
            "status": self.status,
            **self.facts,
            **{f"axis:{name}": label for name, label in self.point.labels.items()},
            **{f"column:{name}": value for name, value in self.point.columns.items()},
            **{f"option:{path}": format_value(value) for path, value in self.options.items()},
            **{f"score:{name}": value for name, value in self.scores.items()},
        }


def rows_of(plan: Plan, folder: StudyFolder, scoring: Scoring | None) -> list[Row]:
    """Return a row for each point and seed, with what is there of its run."""
    study = plan.definition.study
    rows = []
    for cell in plan.cells:
        key, run = cell.run.key, cell.run
        needed = [plan.runs[need] for need in run.needs]
        first = needed[0] if needed else run
        model = {"model": first.options.get("model.name") or first.options.get("model", "")}
        said = dict.fromkeys(_FOLDERS.sub("", line) for part in [*needed, run]
                             for line in (*part.warnings, *folder.warned(part.key)))  # fmt: skip
        results: Mapping[str, Any] = {}
        if run.recipe:
            # A model that is scored as it is was made by the run that it is of.
            made_by = needed[-1].key if run.untrained and needed else key
            about = {**_about(folder, made_by), **model}
            scores = scores_of(folder, key, scoring.key if scoring else None)
            if scoring is not None:
                file = folder.scores(key, f"{scoring.key}.json")
                output = read_table(file)
                results = output.get("results", {})
                words = " ".join(scoring.words)
                about |= {"scoring": scoring.key, "scored_by": f"cse eval {words}",
                          "setting": str(output.get("encoder", ""))}  # fmt: skip
                if output and study.after is not None:
                    scores |= numbers_of(study.after.output(folder.run(key), file), {})
            complete = key not in plan.scored or scoring is None or bool(output)
            if run.untrained:
                about |= {"run": str(run.recipe["model"]["name"]), "seconds": None}
        else:
            file = folder.beside(key, "output.json")
            results = read_table(file)
            about = {"output": str(file), "command": " ".join(run.command) or run.call, **model,
                     **_machine(folder, key)}  # fmt: skip
            scores, complete = numbers_of(results, study.values), bool(results)
        status = _status(folder, key, complete, run.untrained or not run.recipe)
        about |= {"line": _failure(folder, key) if status == "failed" else ""}
        rows.append(Row(cell.point, cell.seed, key, status, about, run.options, scores,
                        results, run.untrained, tuple(said)))  # fmt: skip
    return rows


def numbers_of(output: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, float]:
    """Return the numbers of an output: those at the paths of a study, else those at its top."""
    picked = {name: at(output, path) for name, path in values.items()} if values else dict(output)
    numbers = {name: float(value) for name, value in picked.items()
               if _is_score(value)}  # fmt: skip
    if not values and isinstance(output.get("results"), Mapping):
        numbers |= flat_scores(output["results"])
    return numbers


def _is_score(value: Any) -> TypeGuard[float]:
    """Check for a finite number: one that is not could only be compared wrongly."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def at(output: Any, path: str) -> Any:
    """Look up the value at a path such as ``runs.0.seconds``, None where there is nothing.

    A name may hold dots itself: the longest that is there is taken.
    """
    if not path:
        return output
    steps = path.split(".")
    if isinstance(output, list):
        place = int(steps[0]) if steps[0].lstrip("-").isdigit() else len(output)
        return (
            at(output[place], ".".join(steps[1:])) if -len(output) <= place < len(output) else None
        )
    if isinstance(output, Mapping):
        for end in range(len(steps), 0, -1):
            name = ".".join(steps[:end])
            if name in output:
                return at(output[name], ".".join(steps[end:]))
    return None


def _status(folder: StudyFolder, key: str, complete: bool, untrained: bool = False) -> str:
    if (folder.trained(key) or untrained) and complete:
        return "done"
    if folder.beside(key, "failed.json").is_file():
        return "failed"
    return "begun" if folder.begun(key) else "missing"


def _failure(folder: StudyFolder, key: str) -> str:
    return str(read_table(folder.beside(key, "failed.json")).get("line", ""))


def _machine(folder: StudyFolder, key: str) -> dict[str, Any]:
    """Read the machine, commit and date of a run or call."""
    facts = read_table(folder.beside(key, "facts.json"))
    return {name: facts.get(name, "")
            for name in ("commit", "date", "machine", "system", "processor")}  # fmt: skip


def _about(folder: StudyFolder, key: str) -> dict[str, Any]:
    """Read the facts of a run: its steps, time, data, machine and versions."""
    result = read_table(folder.run(key) / RESULT)
    facts = read_table(folder.beside(key, "facts.json"))
    record = facts  # of a run that was unpacked
    with suppress(OSError, ValueError):
        record = tomllib.loads((folder.run(key) / RUN_FILE).read_text(encoding="utf-8")) or facts
    ran = record.get("run", {})
    return {
        "run": str(folder.run(key)),
        "steps": result.get("steps"),
        "chosen_step": result.get("step"),
        **{name: result.get(name) for name in ("chosen_by", "seconds")},
        **_machine(folder, key),
        **{name: ran.get(name, "") for name in ("device", "precision")},
        **{name: ran.get(name) for name in ("threads", "processes")},
        "data": ran.get("data", {}).get("fingerprint", ""),
        "synthetic": ran.get("data", {}).get("synthetic"),
        "versions": json.dumps(record.get("versions", {}), sort_keys=True),
    }


def write_rows(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Write the table as csv, whole or not at all; a column that a row lacks is empty there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as beside, beside.open("w", encoding="utf-8", newline="") as to:
        writer = csv.DictWriter(to, names)
        writer.writeheader()
        writer.writerows(rows)


@dataclass(frozen=True)
class Shown:
    """A score as a table shows it, by its full name.

    ``sets`` are the test sets that it is the mean over; empty of scores that are no such mean.
    """

    name: str
    value: float
    sets: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        """The number that is shown of each set, ``spearman`` or ``recall@5``."""
        return self.name.removesuffix(")").rpartition(".")[2]


def scores_of(folder: StudyFolder, key: str, scoring: str | None) -> dict[str, float]:
    """Return every number of a run: its dev scores, and what ``cse eval`` said of it."""
    result = read_table(folder.run(key) / RESULT)
    scores = {name: float(value) for name, value in result.get("scores", {}).items()
             if _is_score(value)}  # fmt: skip
    if isinstance(result.get("step"), int):
        scores["chosen_step"] = float(result["step"])
    if _is_score(chosen := result.get("score")):
        scores.setdefault(str(result.get("chosen_by")), float(chosen))  # a mean over dev sets
    if scoring is not None:
        said = read_table(folder.scores(key, f"{scoring}.json"))
        scores |= flat_scores(said.get("results", {}))
    return scores


def flat_scores(results: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of ``cse eval --json`` by ``SET.NUMBER``."""
    scores: dict[str, float] = {}
    for name, content in results.items():
        for number, value in content.items() if isinstance(content, Mapping) else ():
            if isinstance(value, Mapping):
                value = value.get("value")
            if isinstance(value, float) and _is_score(value):
                scores[f"{name}.{number}"] = value
    return scores


def find_shown(
    wanted: str,
    scores: Mapping[str, float],
    results: Mapping[str, Any],
    chosen_by: str | None = None,
) -> Shown | None:
    """Return the score that a study shows, None where the run has none like it.

    A full name is wanted, a set, a pattern, ``SUITE.mean``, ``dev`` or ``dev.NUMBER``, or
    ``mean(A, B)`` of such. ``results`` is what ``cse eval --json`` said, ``chosen_by`` the dev
    score that chose the checkpoint.
    """
    wanted = wanted.strip()
    if match := _MEAN.fullmatch(wanted):
        parts = [find_shown(item, scores, results, chosen_by) for item in match[1].split(",")]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        sets = tuple(name for part in known for name in part.sets)
        whole = all(len(part.sets) == 1 for part in known)
        whole = whole and len({part.number for part in known}) == 1
        value = sum(part.value for part in known) / len(known)
        name = f"mean({', '.join(part.name for part in known)})"
        return Shown(name, value, sets if whole else ())
    if wanted == DEV and chosen_by in scores:
        wanted = str(chosen_by)
    suite, _, rest = wanted.partition(".")
    if suite == DEV and rest:
        own = f"{str(chosen_by).rpartition('.')[0]}.{rest}"
        wanted = own if own in scores else f"*.{wanted}"
    ends = ("", ".test")  # a collection is called by its folder and its judgements
    patterns = [wanted, *(f"{wanted}{end}.{number}" for end in ends for number in MAIN)]
    if rest == "mean" and suite in _SUITES:
        # Means of graded pairs have no suite in their names; one set alone has no mean.
        graded = _SUITES[suite] == "spearman"
        mean = "mean" if graded else wanted
        heads = [mean, f"{mean}-of-*"]
        if not any(fnmatch.filter(results, head) for head in heads):
            heads = ["sts*.test", "sickr.test", "cstsb.test"] if graded else ["*"]
        patterns = [f"{head}.{_SUITES[suite]}" for head in heads]
    for pattern in patterns:
        names = [pattern] if pattern in scores else fnmatch.filter(scores, pattern)
        if names:
            sets = _sets(names[0], results) or (DEV_SETS if names[0] == chosen_by else ())
            return Shown(names[0], scores[names[0]], sets)
    return None


def scores_of_words(shown: Shown, results: Mapping[str, Any]) -> dict[str, float]:
    """Return what words alone score on the sets behind a score, by the method's name."""
    parts = shown.sets if shown.name.startswith("mean(") else (shown.name.rpartition(".")[0],)
    found: dict[str, float] = {}
    for key, name in WORDS.items():
        values = [results[part].get(key) for part in parts if part in results]
        values = [v.get(shown.number) if isinstance(v, Mapping) else v for v in values]
        if values and all(map(_is_score, values)):
            found[name] = sum(values) / len(values)
    return found


def first_score(
    scores: Mapping[str, float], results: Mapping[str, Any], wanted: str = ""
) -> Shown | None:
    """Find the score to show where the score of the study was not measured.

    It is that of the first test set: its number of the name that was wanted, the uniformity in the
    place of ``stsb.dev.uniformity``, else its main one.
    """
    last = wanted.rpartition(".")[2]
    for name, content in results.items():
        for number in (last, *MAIN):
            full = f"{name}.{number}"
            if full in scores and isinstance(content, Mapping):
                return Shown(full, scores[full], _sets(full, results))
    return None


def _sets(name: str, results: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sets behind a score, nothing where it is not a mean over their items."""
    head, _, number = name.rpartition(".")
    if head not in results or not (
        number in ("spearman", "accuracy", "map") or number.startswith(("recall@", "ndcg@", "mrr@"))
    ):
        return ()
    content = results[head] if isinstance(results[head], Mapping) else {}
    lists = (content.get(key) for key in ("sets", "tasks"))
    return tuple(next((item for item in lists if isinstance(item, list)), (head,)))
