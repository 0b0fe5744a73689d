"""Begins or resumes a training run: from a composition to a model folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import tomlkit
import torch

from cse_core.files import RUN_FILE
from cse_core.registry.registry import Registry
from cse_core.reporter import Reporter
from cse_core.texts import TextReader
from cse_engine.compose.compose import resolve
from cse_engine.compose.composition import Composition
from cse_engine.compose.reading import read_toml
from cse_engine.run.checkpoint import begin, last_checkpoint, restore_settings
from cse_engine.run.fingerprints import fingerprints
from cse_engine.run.prepare import Prepared, prepare, report_prepared
from cse_engine.run.recipe_file import dump_recipe
from cse_engine.run.run_folder import RunFolder, versions
from cse_engine.run.trainer import Outcome, Trainer
from cse_engine.runtime import distributed
from cse_engine.runtime.sharing import all_gather_objects
from cse_engine.step.training_rows import TrainingRows


def train(
    composition: Composition,
    registry: Registry,
    *,
    out: Path,
    reporter: Reporter,
    read_texts: TextReader,
    keep_tables: Callable[[TrainingRows], None] = lambda rows: None,
    replace_run: bool = False,
) -> Outcome:
    """Train a composition into the new run folder ``out``; ``replace_run`` removes one there.

    Nothing is written before all was prepared without a mistake (:func:`prepare`, which has the
    other arguments).

    Raises:
        CseError: If a file is missing or wrong, or the folder already holds a run.
        Stopped: If the process was asked to stop.
    """
    if not replace_run:
        RunFolder.check_free(out)
    prepared = prepare(
        composition, registry, reporter=reporter, read_texts=read_texts, keep_tables=keep_tables
    )
    # A name with the time in it differs between processes.
    out = Path(all_gather_objects(partial(str, out), str)[1][0])
    report_prepared(prepared, reporter)
    trainer = Trainer(prepared, RunFolder(out), reporter)
    # Nobody may still be looking whether the folder is free when the first process begins to write.
    distributed.barrier()
    with ExitStack() as stack:
        if distributed.rank_and_size()[0] == 0:
            stack.enter_context(trainer.folder.held("--out"))
            if replace_run:
                trainer.folder.clear()
            RunFolder.check_free(out)
            settings = run_file(prepared, registry)
            trainer.settings = settings.encode()
            begin(trainer.folder, trainer.settings)
            reporter.start(out, tomlkit.parse(settings).unwrap())
        return trainer.run()


def resume(
    path: Path,
    registry: Registry,
    *,
    reporter: Reporter,
    read_texts: TextReader,
    keep_tables: Callable[[TrainingRows], None] = lambda rows: None,
) -> Outcome:
    """Go on with a run from its last checkpoint, as if nothing had happened.

    It goes on with the settings that it began with, whatever ``run.toml`` says now, from the last
    checkpoint that is whole.

    Raises:
        CseError: If it is not a run, or what it reads has changed.
        Stopped: If the process was asked to stop.
    """
    folder = RunFolder.open(path)
    checkpoint, damaged = last_checkpoint(folder)
    settings = checkpoint.files[RUN_FILE]
    if os.environ.get("RANK", "0") == "0":
        restore_settings(folder, settings)
    written = tomlkit.parse(settings.decode()).unwrap()
    composition = recorded_composition(folder, registry)
    here = {name: written["run"][name] for name in ("device", "threads")}
    prepared = prepare(
        replace(composition, train=composition.train.model_copy(update=here)),
        registry,
        reporter=reporter,
        read_texts=read_texts,
        keep_tables=keep_tables,
        recorded=written["run"],
    )
    report_prepared(prepared, reporter)
    for line in damaged:
        reporter.warning(line)
    reporter.message(f"resuming after step {checkpoint.values.get('step', 0)}")
    reporter.start(folder.path, written)
    trainer = Trainer(prepared, folder, reporter, settings)
    return trainer.run(checkpoint if checkpoint.tensors else None)


def recorded_composition(folder: RunFolder, registry: Registry) -> Composition:
    """Read what a run trains from its ``run.toml``; nothing is derived again."""
    name = read_toml(folder.recipe, str(folder.recipe)).get("name")
    return replace(resolve(registry, recipe=folder.recipe), recipe=name)


def run_file(prepared: Prepared, registry: Registry, **train: Any) -> str:
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
            "packed": prepared.assembly.online.encoder.why_padded is None,
            "data": {
                "rows": len(corpus),
                "blank_dropped": corpus.report.blank_dropped,
                "incomplete_dropped": corpus.report.incomplete_dropped,
                "synthetic": bool(corpus.report.made_up),
                "fingerprint": corpus.fingerprint,
                "dev": list(prepared.scorer.dev),
            },
            "read": fingerprints(run, registry),
        },
    }
    return dump_recipe(run) + "\n" + tomlkit.dumps(facts)
