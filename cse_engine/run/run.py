"""Begins or resumes a training run: from a composition to a model folder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import tomlkit
import torch

from cse_core.files import RUN_FILE
from cse_core.registry.registry import Registry
from cse_engine.compose.compose import resolve
from cse_engine.compose.composition import Composition
from cse_engine.compose.reading import read_toml
from cse_engine.run.checkpoint import Checkpoint, begin, last_checkpoint
from cse_engine.run.fingerprints import fingerprints
from cse_engine.run.prepare import Prepared, report_prepared
from cse_engine.run.recipe_file import dump_recipe
from cse_engine.run.run_folder import RunFolder, versions
from cse_engine.run.trainer import Outcome, Trainer
from cse_engine.runtime import distributed
from cse_engine.runtime.sharing import all_gather_objects


@dataclass(frozen=True)
class Recorded:
    """A run that goes on.

    Attributes:
        checkpoint: The last one that is whole; that of step 0 has no tensors.
        damaged: What is wrong with newer ones, a line each.
        settings: ``run.toml`` as it was when the run began.
        composition: What it trains, on the device and with the threads that it began with.
    """

    folder: RunFolder
    checkpoint: Checkpoint
    damaged: Sequence[str]
    settings: Mapping[str, Any]
    composition: Composition


def read_run(path: Path, registry: Registry) -> Recorded:
    """Read a run that goes on with the settings that it began with; its ``run.toml`` is restored.

    Raises:
        CseError: If it is not a run, or no checkpoint is whole.
    """
    folder = RunFolder.open(path)
    checkpoint, damaged = last_checkpoint(folder)
    written = checkpoint.files[RUN_FILE]
    if os.environ.get("RANK", "0") == "0":
        folder.write(RUN_FILE, written)
    settings = tomlkit.parse(written.decode()).unwrap()
    composition = recorded_composition(folder, registry)
    here = {name: settings["run"][name] for name in ("device", "threads")}
    composition = replace(composition, train=composition.train.model_copy(update=here))
    return Recorded(folder, checkpoint, damaged, settings, composition)


def train(prepared: Prepared, out: Path, *, replace_run: bool = False) -> Outcome:
    """Train into the new run folder ``out``; ``replace_run`` removes a run there.

    Raises:
        CseError: If the folder already holds a run.
        Stopped: If the process was asked to stop.
    """
    # A name with the time in it differs between processes.
    folder = RunFolder(Path(all_gather_objects(partial(str, out), str)[1][0]))
    report_prepared(prepared)
    # Nobody may still be looking whether the folder is free when the first process begins to write.
    distributed.barrier()
    with ExitStack() as stack:
        settings = ""
        if distributed.rank_and_size()[0] == 0:
            stack.enter_context(folder.held("--out"))
            if replace_run:
                folder.clear()
            RunFolder.check_free(folder.path)
            settings = run_file(prepared)
            begin(folder, settings.encode())
            prepared.reporter.start(folder.path, tomlkit.parse(settings).unwrap())
        return Trainer(prepared, folder, settings.encode()).run()


def resume(recorded: Recorded, prepared: Prepared) -> Outcome:
    """Go on with a run from its last checkpoint, as if nothing had happened.

    Raises:
        Stopped: If the process was asked to stop.
    """
    report_prepared(prepared)
    checkpoint, reporter = recorded.checkpoint, prepared.reporter
    for line in recorded.damaged:
        reporter.warning(line)
    reporter.message(f"resuming after step {checkpoint.values.get('step', 0)}")
    reporter.start(recorded.folder.path, recorded.settings)
    trainer = Trainer(prepared, recorded.folder, checkpoint.files[RUN_FILE])
    return trainer.run(checkpoint if checkpoint.tensors else None)


def recorded_composition(folder: RunFolder, registry: Registry) -> Composition:
    """Read what a run trains from its ``run.toml``; nothing is derived again."""
    name = read_toml(folder.recipe, str(folder.recipe)).get("name")
    return replace(resolve(registry, recipe=folder.recipe), recipe=name)


def run_file(prepared: Prepared, **train: Any) -> str:
    """Return the text of ``run.toml``: a recipe that repeats the run, with ``train.*`` changed.

    Tables ``run`` and ``versions`` say what it ran on.
    """
    corpus, precision, run = prepared.corpus, prepared.precision, prepared.composition
    run = replace(run, train=run.train.model_copy(update=train))
    facts: dict[str, Any] = {
        "versions": versions(run),
        "run": {
            "device": str(prepared.assembly.device),
            "precision": precision.name,
            "why": precision.why,
            "threads": torch.get_num_threads(),
            "processes": distributed.rank_and_size()[1],
            "data": {
                "rows": len(corpus),
                "synthetic": bool(corpus.report.made_up),
                "fingerprint": corpus.fingerprint,
                "dev": list(prepared.scorer.dev),
            },
            "read": fingerprints(run, prepared.registry),
        },
    }
    return dump_recipe(run) + "\n" + tomlkit.dumps(facts)
