"""Runs side by side: settings that differ, and scores in equal settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cse_study.pages.run_files import Run, shown
from cse_study.results.scores import MAIN

UNSET = "-"
"""What a run has at a path that it does not know."""


def called(runs: Sequence[Run]) -> list[str]:
    """Return a name for each run: that of its folder, or as much of its path as tells them apart.

    Runs that cannot be distinguished so have a number behind the name.
    """
    paths = [Path(shown(run.path.resolve())).parts for run in runs]
    for count in range(1, max(map(len, paths), default=0) + 1):
        names = ["/".join(parts[-count:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{run.name} ({number})" for number, run in enumerate(runs, 1)]


def different_settings(runs: Sequence[Run], *, every: bool = False) -> dict[str, list[Any]]:
    """Return the settings that differ, by path, with the value of each run.

    Texts in files of one name, and how far runs came, count as settings.

    Args:
        runs: The runs.
        every: Whether to return each option of a part that a run lacks; else such a part is one
            setting, ``aug.fgsm``.
    """
    options = [run.options for run in runs]
    paths = dict.fromkeys(path for each in options for path in each)
    parts = {path.removesuffix(".use") for path in paths if path.endswith(".use")}
    found: dict[str, list[Any]] = {}
    for path in paths:
        part = next((part for part in parts if path.startswith(f"{part}.")), None)
        if part is not None and path == f"{part}.name":
            continue
        values = [each.get(path, UNSET) for each in options]
        if part is not None and any(f"{part}.use" not in each for each in options) and not every:
            path, values = part, [each.get(f"{part}.use", UNSET) for each in options]
        if any(value != values[0] for value in values):
            found[path] = values
    for name, values in (
        ("contents of the texts", [run.texts for run in runs]),
        ("state", [run.state for run in runs]),
    ):
        if any(value != values[0] for value in values):
            found[name] = values
    return found


def scores_beside(runs: Sequence[Run], *, every: bool = False) -> dict[str, list[float | None]]:
    """Return scores by name, with the value of each run, None where it was not measured.

    Scores of other settings or other texts are rows of their own, with the setting behind the name.

    Args:
        runs: The runs.
        every: Whether to return every number; else one of each set and the dev score.
    """
    names: dict[tuple[str, str, str], list[float | None]] = {}
    for place, run in enumerate(runs):
        if run.dev is not None:
            name, value = run.dev
            so_far = "" if run.result else " so far"
            _put(names, (f"dev{so_far}: {name}", "", ""), place, value, len(runs))
        for score in run.scores:
            if every or score.number in MAIN:
                key = (score.name, score.setting, score.texts)
                _put(names, key, place, score.value, len(runs))
    heads = [name for name, _, _ in names]
    settings = {name: {setting for head, setting, _ in names if head == name} for name in heads}
    found: dict[str, list[float | None]] = {}
    for (name, setting, texts), values in names.items():
        label = f"{name} ({setting})" if len(settings[name]) > 1 else name
        if label in found:
            label = f"{label} [texts {texts[:30]}]"
        found[label] = values
    return found


def _put(
    found: dict[tuple[str, str, str], list[float | None]],
    key: tuple[str, str, str],
    place: int,
    value: float,
    count: int,
) -> None:
    found.setdefault(key, [None] * count)[place] = value
