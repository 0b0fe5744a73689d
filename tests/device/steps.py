"""Steps of every installed part on a pretended device and on the CPU; a line of JSON each.

``python -m tests.device.steps``, in a process of its own.
"""

from __future__ import annotations

import json
from typing import Any

import torch
from cse_testkit import installed_registry
from cse_testkit.runs import Rig

from cse_core.data import Corpus
from cse_core.recipes.composition import Composition
from cse_core.registry.registry import Registry
from tests.device.cases import CASES, Case, composed, cpu_generators, draws_dropout, named
from tests.device.pretended import WAITS, pretended, values


def losses(
    composition: Composition, corpus: Corpus, registry: Registry, device: str
) -> tuple[list[float], bool]:
    """Return the losses of three steps, and whether heads draw dropout of their own.

    ``WAITS`` has what the second and the third step waited for.
    """
    rig = Rig(composition, corpus, registry=registry, device=device)
    rig.loop.before_update = None  # the kit's look at every gradient waits for the device
    found = rig.step(1)
    WAITS.clear()
    found += rig.step(2)
    return [float(values(each.loss)) for each in found], draws_dropout(rig)


def line(case: Case, registry: Registry) -> dict[str, Any]:
    """Return what a case came to."""
    composition, corpus = composed(case, registry)
    here, drawn = losses(composition, corpus, registry, "cpu")
    try:
        with pretended() as device:
            there, _ = losses(composition, corpus, registry, device)
    except Exception as error:
        return {"case": named(case), "error": f"{type(error).__name__}: {error}"}
    return {"case": named(case), "cpu": here, "there": there, "drawn": drawn, "waits": WAITS}


def main() -> None:
    """Run every case."""
    torch.set_num_threads(1)
    registry = installed_registry()
    with cpu_generators():
        for case in CASES:
            print(json.dumps(line(case, registry)), flush=True)


if __name__ == "__main__":
    main()
