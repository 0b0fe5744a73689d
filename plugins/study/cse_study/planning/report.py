"""A plan as lines for people and as data for programs."""

from __future__ import annotations

from typing import Any

from cse_study.planning.plan import Plan
from cse_study.planning.tuning import trial_seeds


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return a plan as data that JSON can hold."""
    definition = plan.definition
    study = definition.study
    return {
        "study": definition.name,
        "summary": study.summary,
        "kind": study.kind,
        "source": study.source,
        "note": study.note,
        "seeds": list(plan.seeds),
        "points": [
            {"number": point.number, "label": point.label, "axes": dict(point.labels),
             "settings": dict(point.settings)}
            for point in plan.points
        ],
        "cells": [
            {"point": cell.point.number, "seed": cell.seed, "key": cell.run.key}
            for cell in plan.cells
        ],
        "calls": [
            {"point": call.point.number, "seed": call.seed, "key": call.key,
             "command": list(call.command), "settings": dict(call.settings)}
            for call in plan.calls
        ],
        "kept": sorted(plan.kept),
        "undecided": plan.undecided,
        "runs": [
            {"key": run.key, "seed": run.seed, "steps": run.steps, "start": run.start,
             "warnings": list(run.warnings)}
            for run in plan.runs.values()
        ],
    }  # fmt: skip


def plan_lines(plan: Plan) -> list[str]:
    """Return a plan as lines of plain text."""
    definition = plan.definition
    study = definition.study
    source = f" ({study.source})" if study.source else ""
    lines = [f"study: {definition.name}{source}: {study.summary}"]
    lines += [f"paper: {definition.paper}"] if definition.paper else []
    lines += [f"note: {study.note}"] if study.note else []
    axes = [f"{axis.called} {axis.size}" for axis in study.axes]
    many = f"{len(plan.points)} point{'s' * (len(plan.points) != 1)}"
    lines.append(f"points: {many}" + (f" of axes {', '.join(axes)}" if axes else ""))
    lines.append(f"seeds: {', '.join(map(str, plan.seeds))}")
    for call in plan.calls:
        words = f"cse {' '.join(call.command)}" if call.command else study.call
        lines.append(f"  {call.point.number}. {call.point.name}: {words}")
    for point in plan.points:
        runs = [cell.run for cell in plan.cells if cell.point is point]
        if not runs:
            continue
        steps = "steps as its rounds require" if runs[0].steps is None else f"{runs[0].steps} steps"
        keys = " ".join(run.key for run in runs)
        lines.append(f"  {point.number}. {point.name}: {steps}, {keys}")
    count = len(plan.runs)
    if not count:
        return lines
    shared = f", {plan.shared} of them for several points" if plan.shared else ""
    starts = f", {len(plan.starts)} of them to start from" if plan.starts else ""
    lines.append(f"runs: {count}{starts}{shared}")
    if study.tune is not None and plan.undecided:
        more = plan.undecided * len(set(plan.seeds) - set(trial_seeds(study, plan.seeds)))
        over = ", ".join(study.tune.over)
        lines.append(f"trials of {over} choose by the dev score; then {more} more runs follow")
    return lines
