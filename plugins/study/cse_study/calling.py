"""A study from Python: what ``cse study FILE`` runs, with the items behind each score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from cse_cli.api import Installed
from cse_core.errors import CseError
from cse_study.definition.reading import find_study
from cse_study.execution.jobs import Done
from cse_study.measures import read_items
from cse_study.planning.composing import Inputs, Wish
from cse_study.planning.scoring import showing
from cse_study.session import Session


def study(
    plugins: Installed,
    name: str,
    *,
    out: str | Path = "studies",
    points: Sequence[int] = (),
    seeds: Sequence[int] | None = None,
    steps: int | None = None,
    model: str | None = None,
    data: Mapping[str, str] | None = None,
    workers: int = 1,
    run: bool = True,
    leave_out: bool = False,
    threads: Executor | None = None,
    hear: Callable[[str, int, str, str], object] = lambda *_: None,
) -> dict[str, Any]:
    """Run a study of runs that train, and return its rows.

    Args:
        plugins: The installed plugins.
        name: An installed study, or a TOML file.
        out: Folder of all studies; runs that are there are not made again.
        points: Numbers of the points, by default all.
        seeds: By default those of the study.
        steps: Steps of every run.
        model: The encoder of ``@model``.
        data: Files and folders by role.
        workers: Runs at a time.
        run: Whether runs are made; without it, rows say what is there.
        leave_out: Leave out points that cannot be composed; all of them are refused still.
        threads: Threads that make the runs, ``workers`` of them. They keep the processes that runs
            are forks of, so that a further study with them starts at once.
        hear: Called with point, seed, status and the line of an error when a run ends.

    Returns:
        ``left_out``: the lines of what is wrong, by the number of a point; ``points``: ``number``,
        ``label``, ``labels`` by axis and ``settings``; ``rows``: ``number``, ``seed``, ``key``,
        ``status``, ``line``, ``steps``, ``seconds`` of training, ``run``, ``scores``, ``results``
        as ``cse eval --json`` has them, and ``items``, the measures ``[N]`` behind the scores of
        titles, labels and judged queries by set.

    Raises:
        CseError: If the study, a point or a file is wrong.
        KeyboardInterrupt: If it was interrupted; what was made is kept.
    """
    roles = [f"{role}={path}" for role, path in (data or {}).items()]
    inputs = Inputs.of([f"={model}"] if model else (), roles, ()).whole(plugins)
    definition = showing(find_study(name, plugins), inputs)
    if definition.study.kind != "train":
        raise CseError("does not train", where="study", value=name, hint="run it by cse study")
    wish = Wish(seeds, tuple(map(str, points)), steps, inputs=inputs)
    session = Session(definition, wish, plugins, Path(out), workers, leave_out,
                      threads)  # fmt: skip
    if run:
        cells = {cell.run.key: cell for cell in session.plan.cells}

        def ended(done: Done) -> None:
            if (cell := cells.get(done.key)) is not None:
                hear(cell.point.label, cell.seed, done.status, done.line)

        session.run(shown=False, hear=ended)
    scoring = session.scoring
    rows = []
    for row in session.rows():
        file = session.folder.scores(row.key, f"{scoring.key if scoring else ''}.items.tsv")
        rows.append({
            "number": row.point.number,
            **{name: getattr(row, name) for name in ("seed", "key", "status", "scores", "results")},
            **{name: row.facts.get(name) for name in ("line", "steps", "seconds", "run")},
            "items": read_items(file) if file.is_file() else {},
        })  # fmt: skip
    return {
        "left_out": {number: [f"{fault.where}: {fault.what}" for fault in faults]
                     for number, faults in session.plan.left_out.items()},
        "points": [
            {"number": point.number, "label": point.label, "labels": dict(point.labels),
             "settings": {**definition.study.settings, **point.settings}}
            for point in session.plan.points
        ],
        "rows": rows,
    }  # fmt: skip
