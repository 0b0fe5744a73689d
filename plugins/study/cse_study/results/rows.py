"""The results of a study as a table with one row a run: parquet and csv."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse_core.recipes.option_types import plain
from cse_core.runtime.atomic_files import atomic_file
from cse_core.runtime.model_files import RUN_FILE
from cse_core.training.run_folder import RESULT
from cse_study.definition.points import Point
from cse_study.execution.folder import StudyFolder, read_json
from cse_study.execution.jobs import Scoring
from cse_study.execution.running import after_of
from cse_study.planning.plan import Plan
from cse_study.results.scores import flat_scores, scores_of

PARQUET, CSV = "results.parquet", "results.csv"
_BASE = b"cse.base"
AXIS, COLUMN, OPTION, SCORE = "axis:", "column:", "option:", "score:"
"""What names of columns begin with: axes, columns of a study file, options and scores."""


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

    @property
    def chosen_by(self) -> str | None:
        """Return the dev score that chose the checkpoint."""
        found = self.facts.get("chosen_by")
        return None if found is None else str(found)

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
            **{f"{AXIS}{name}": label for name, label in self.point.labels.items()},
            **{f"{COLUMN}{name}": value for name, value in self.point.columns.items()},
            **{f"{OPTION}{path}": plain(value) for path, value in self.options.items()},
            **{f"{SCORE}{name}": value for name, value in self.scores.items()},
        }


def rows_of(plan: Plan, folder: StudyFolder, scoring: Scoring | None) -> list[Row]:
    """Return a row for each point and seed, with what is there of its run."""
    study = plan.definition.study
    after = after_of(study.after, scoring)
    scored = plan.scored if scoring is not None else frozenset()
    rows = []
    for cell in plan.cells:
        key, run = cell.run.key, cell.run
        about: dict[str, Any] = {}
        scores = scores_of(folder, key, scoring.key if scoring else None)
        results = read_json(folder.scores(key, scoring.key)) if scoring else {}
        if after is not None:
            found = read_json(folder.after(key, after.key))
            scores |= dict(numbers_of(found, {}))
            about |= {"after": str(folder.after(key, after.key))} if found else {}
        whole = key not in scored or (bool(results) and (after is None or "after" in about))
        status = _status(folder, key, whole, run.untrained)
        about = {**_about(folder, key, status), **about}
        about |= {"run": str(run.recipe["model"]["name"])} if run.untrained else {}
        facts = {**about, **_setting(scoring, results)}
        found = results.get("results", {})
        rows.append(Row(cell.point, cell.seed, key, status, facts, run.options, scores, found,
                        run.untrained))  # fmt: skip
    for call in plan.calls:
        output = read_json(folder.output(call.key))
        status = "done" if output else _status(folder, call.key, False)
        facts = {"line": read_json(folder.beside(call.key, "failed.json")).get("line", ""),
                 "output": str(folder.output(call.key)),
                 "command": " ".join(call.command) or study.call}  # fmt: skip
        scores = dict(numbers_of(output, study.values))
        rows.append(Row(call.point, call.seed, call.key, status, facts, call.settings, scores,
                        output))  # fmt: skip
    return rows


def numbers_of(output: Mapping[str, Any], values: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """Yield the numbers of an output: those at the paths of a study, else those at its top."""
    if not values:
        for name, value in output.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield name, float(value)
        if "results" in output and isinstance(output["results"], Mapping):
            yield from flat_scores(output["results"]).items()
    for name, path in values.items():
        value = at(output, path)
        if isinstance(value, int | float):
            yield name, float(value)


def at(output: Any, path: str) -> Any:
    """Return what stands at a path such as ``runs.0.seconds``, None where there is nothing.

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


def _status(folder: StudyFolder, key: str, scored: bool, untrained: bool = False) -> str:
    if (folder.trained(key) or untrained) and scored:
        return "done"
    if folder.beside(key, "failed.json").is_file():
        return "failed"
    return "begun" if folder.begun(key) else "missing"


def _about(folder: StudyFolder, key: str, status: str) -> dict[str, Any]:
    """Return what a run was, took and ran on."""
    result = read_json(folder.run(key) / RESULT)
    facts = read_json(folder.beside(key, "facts.json"))
    failure = read_json(folder.beside(key, "failed.json")) if status == "failed" else {}
    record = _record(folder.run(key) / RUN_FILE) or facts  # of a run that was unpacked
    ran = record.get("run", {})
    return {
        "line": failure.get("line", ""),
        "run": str(folder.run(key)),
        "steps": result.get("steps"),
        "chosen_step": result.get("step"),
        "chosen_by": result.get("chosen_by"),
        "seconds": result.get("seconds"),
        "commit": facts.get("commit", ""),
        "machine": facts.get("machine", ""),
        "system": facts.get("system", ""),
        "processor": facts.get("processor", ""),
        "device": ran.get("device", ""),
        "precision": ran.get("precision", ""),
        "threads": ran.get("threads"),
        "processes": ran.get("processes"),
        "data": ran.get("data", {}).get("fingerprint", ""),
        "synthetic": ran.get("data", {}).get("synthetic"),
        "versions": json.dumps(record.get("versions", {}), sort_keys=True),
    }


def _record(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _setting(scoring: Scoring | None, results: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a run was scored, in words."""
    if scoring is None:
        return {}
    return {
        "scoring": scoring.key,
        "scored_by": f"cse eval {' '.join(scoring.words)}",
        "setting": str(results.get("encoder", "")),
    }


def write_rows(rows: Sequence[Mapping[str, Any]], folder: Path, base: str) -> None:
    """Write the table as parquet and as csv, each whole or not at all.

    Args:
        rows: The rows.
        folder: Where it goes.
        base: A digest of what all rows have in common; it stands in the parquet file.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    table = pa.table({name: _column(values) for name, values in columns.items()})
    table = table.replace_schema_metadata({_BASE: base})
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(folder / PARQUET) as beside:
        pa.parquet.write_table(table, beside)
    with atomic_file(folder / CSV) as beside:
        pa.csv.write_csv(table, beside)


def read_rows(folder: Path, base: str) -> list[dict[str, Any]]:
    """Return the rows of a table that was written with this base, none where there is none."""
    import pyarrow.parquet

    file = folder / PARQUET
    if not file.is_file():
        return []
    table = pyarrow.parquet.read_table(file)
    if (table.schema.metadata or {}).get(_BASE) != base.encode():
        return []
    found: list[dict[str, Any]] = table.to_pylist()
    return [{name: value for name, value in row.items() if value is not None} for row in found]


def merged(
    rows: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the rows, and behind them those of before whose point and seed are not among them."""
    there = {(row["number"], row["seed"]) for row in rows}
    kept = [row for row in before if (row.get("number"), row.get("seed")) not in there]
    return sorted([*rows, *kept], key=lambda row: (row["number"], row["seed"]))


def _column(values: Sequence[Any]) -> Any:
    """Return a column of one type: numbers, truth values, or texts."""
    import pyarrow as pa

    known = [value for value in values if value is not None]
    for kind, arrow in ((bool, pa.bool_()), (int, pa.int64()), (float, pa.float64())):
        if known and all(type(value) is kind for value in known):
            return pa.array(values, arrow)
    if known and all(type(value) in (int, float) for value in known):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    texts = [None if value is None else str(value) for value in values]
    return pa.array(texts, pa.string())
