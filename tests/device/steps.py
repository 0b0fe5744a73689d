"""Steps of every installed part on a pretended device and on the CPU, in a process of its own.

Parts that may stand together share a run: what a part waits for is known by its line of the code.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from cse_testkit import installed_registry
from cse_testkit.runs import Rig

from cse_core.errors import CseError
from cse_core.registry.registry import Registry
from cse_engine.compose.composition import Composition
from tests.device.cases import (
    CASES,
    CHUNKS,
    JOINED,
    Case,
    composed,
    cpu_generators,
    draws_dropout,
    named,
)
from tests.device.pretended import WAITS, pretended, values

PARTS_OF_A_RUN = 6


def runs(registry: Registry) -> list[list[Case]]:
    """Return the cases, those together that may stand in one run."""
    found: list[list[Case]] = []
    for case in CASES:
        room = (run for run in found if len(run) < PARTS_OF_A_RUN and fits(run, case, registry))
        run = next(room, None)
        if run is None:
            found.append([case])
        else:
            run.append(case)
    return found


def fits(run: list[Case], case: Case, registry: Registry) -> bool:
    """Return whether a case can share a run, and its losses can still be compared there."""
    chunks, heads, alone = (
        {test(each) for each in (run[0], case)}
        for test in (
            lambda each: each[2] == CHUNKS,
            lambda each: each[0] == "pool",  # some of them draw dropout
            lambda each: named(each) in JOINED,
        )
    )
    if len(chunks) > 1 or len(heads) > 1 or True in alone:
        return False
    try:
        composed([*run, case], registry)
    except CseError:
        return False
    return True


def losses(composition: Composition, device: str) -> tuple[list[float], bool]:
    """Return the losses of three steps, and whether heads draw dropout of their own.

    ``WAITS`` has what the second and the third step waited for.
    """
    with patch("cse_engine.run.prepare.resolve_device", lambda _: torch.device(device)):
        rig = Rig(composition)
        found = [rig.session.prepare().step(count_negatives=True)]
    WAITS.clear()
    found += [rig.session.step(count_negatives=True) for _ in range(2)]
    return [float(values(each.loss)) for each in found], draws_dropout(rig)


def lines(run: list[Case], registry: Registry) -> Iterator[dict[str, Any]]:
    """Yield what a run came to, or each of its parts where heads draw dropout."""
    name = ", ".join(map(named, run))
    composition = composed(run, registry)
    here, drawn = losses(composition, "cpu")
    if drawn and len(run) > 1:
        for case in run:
            yield from lines([case], registry)
        return
    try:
        with pretended() as device:
            there, _ = losses(composition, device)
    except Exception as error:
        yield {"run": name, "error": f"{type(error).__name__}: {error}"}
    else:
        yield {"run": name, "cpu": here, "there": there, "drawn": drawn, "waits": WAITS}


def write(path: Path, step: int) -> None:
    """Write what every run, or each ``step``-th, came to: a line of JSON each."""
    torch.set_num_threads(1)
    registry = installed_registry()
    with cpu_generators(), path.open("w") as out:
        for run in runs(registry)[::step]:
            out.writelines(f"{json.dumps(line)}\n" for line in lines(run, registry))
