"""Sets a training run up, begins or resumes it: from a composition to a model folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from operator import call
from pathlib import Path
from typing import Any

import tomlkit
import torch

from cse_core.errors import CseError, raise_all
from cse_core.files import RUN_FILE
from cse_core.protocols import Corpus
from cse_core.registry.registry import Registry
from cse_core.reporter import Reporter
from cse_core.texts import TextReader
from cse_engine.compose.compose import resolve
from cse_engine.compose.composition import Composition
from cse_engine.compose.models import Models
from cse_engine.compose.reading import read_toml
from cse_engine.run.checkpoint import begin, last_checkpoint, restore_settings
from cse_engine.run.dev_sets import dev_sets
from cse_engine.run.export import public_name
from cse_engine.run.fingerprints import fingerprints
from cse_engine.run.recipe_file import dump_recipe
from cse_engine.run.run_folder import RunFolder, versions
from cse_engine.run.selection import Scorer
from cse_engine.run.trainer import Outcome, Trainer
from cse_engine.runtime import distributed
from cse_engine.runtime.device import resolve_device, resolve_precision
from cse_engine.runtime.sharing import all_gather_objects
from cse_engine.step.assembly import build
from cse_engine.step.optimizer import count_own, count_trained

SYNTHETIC = "the texts are synthetic: a grammar made them for trying things out, not as a benchmark"


def train(
    composition: Composition,
    registry: Registry,
    *,
    out: Path,
    reporter: Reporter,
    read_texts: TextReader,
    replace_run: bool = False,
    attach_callbacks: Callable[[Trainer], None] = lambda trainer: None,
) -> Outcome:
    """Train a composition into the new run folder ``out``; ``replace_run`` removes one there.

    Nothing is written before the model, the data and the dev sets were read without a mistake, and
    every part has prepared itself for them. ``attach_callbacks`` sets what the trainer works with
    beside the parts.

    Raises:
        CseError: If a file is missing or wrong, or the folder already holds a run.
        Stopped: If the process was asked to stop.
    """
    if not replace_run:
        RunFolder.check_free(out)
    prepared = Prepared(composition, registry, reporter, read_texts)
    # A name with the time in it differs between processes.
    out = Path(all_gather_objects(partial(str, out), str)[1][0])
    trainer = prepared.trainer(RunFolder(out), attach_callbacks)
    prepared.report()
    # Nobody may still be looking whether the folder is free when the first process begins to write.
    distributed.barrier()
    with ExitStack() as held:
        if prepared.main:
            held.enter_context(trainer.folder.held("--out"))
            if replace_run:
                trainer.folder.clear()
            RunFolder.check_free(out)
            record = prepared.record()
            trainer.settings = record.encode()
            begin(trainer.folder, trainer.settings)
            reporter.start(out, tomlkit.parse(record).unwrap())
        return trainer.run()


def resume(
    path: Path,
    registry: Registry,
    *,
    reporter: Reporter,
    read_texts: TextReader,
    attach_callbacks: Callable[[Trainer], None] = lambda trainer: None,
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
    train = composition.train.model_copy(update=here)
    prepared = Prepared(replace(composition, train=train), registry, reporter, read_texts)
    prepared.precision = replace(prepared.precision, why="as before")
    prepared.report()
    prepared.check_read(written["run"])
    for line in damaged:
        reporter.warning(line)
    reporter.message(f"resuming after step {checkpoint.values.get('step', 0)}")
    reporter.start(folder.path, written)
    trainer = prepared.trainer(folder, attach_callbacks)
    trainer.settings = settings
    return trainer.run(checkpoint if checkpoint.tensors else None)


def recorded_composition(folder: RunFolder, registry: Registry) -> Composition:
    """Return what a run trains, as its ``run.toml`` says; nothing is derived again."""
    name = read_toml(folder.recipe, str(folder.recipe)).get("name")
    return replace(resolve(registry, recipe=folder.recipe), recipe=name)


def training_corpus(composition: Composition, registry: Registry, read: TextReader) -> Corpus:
    """Read the rows that a composition trains on, numbered as its parts saw them."""
    needed, tokens = composition.needed_columns, composition.data.split_tokens
    data = composition.read or read(composition.data)
    corpus: Corpus = data.corpus(needed)
    if tokens is None:
        return corpus
    tokenizer = Models(registry).tokenizer(composition.model.name)
    pieces: Corpus = data.pieces(corpus, tokenizer, tokens, needed.required)
    return pieces


class Prepared:
    """Everything that is read before a run writes its first file: the model, data, dev sets."""

    def __init__(
        self,
        composition: Composition,
        registry: Registry,
        reporter: Reporter,
        read_texts: TextReader,
        read: Callable[..., Any] = call,
    ) -> None:
        """Read it."""
        self.reporter, self.registry, options = reporter, registry, composition.train
        self.device = distributed.join(resolve_device(options.device))
        rank, size = distributed.rank_and_size()
        self.main = rank == 0
        if options.threads is not None:
            torch.set_num_threads(options.threads)
        if options.batch_size < size:
            what = f"fewer sentences than the {size} processes"
            hint = f"use at least {size}"
            raise CseError(what, where="train.batch_size", value=options.batch_size, hint=hint)
        self.precision = resolve_precision(options.precision, self.device)
        self.corpus = training_corpus(composition, registry, read_texts)
        commits = dict(self.corpus.report.commits)
        names, warn = self.corpus.report.names, reporter.warning
        dev = dev_sets(options, names, registry, warn, commits, self.corpus)
        self.scorer = Scorer(dev, options.select, composition.says.similarity)

        def pinned(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(
                f"{name.partition('#')[0]}#{commits[name]}" if name in commits else name
                for name in names
            )

        decided = {"precision": self.precision.name, "dev": pinned(options.dev)}
        paths = {"path": pinned(composition.data.path)}
        self.composition = replace(
            composition,
            train=options.model_copy(update=decided),
            data=composition.data.model_copy(update=paths),
        )
        self.assembly = build(
            self.composition,
            corpus=self.corpus,
            device=self.device,
            models=Models(registry),
            read_texts=read_texts,
            total_steps=options.steps(len(self.corpus)),
            read=read,
        )

    def trainer(self, folder: RunFolder, attach_callbacks: Callable[[Trainer], None]) -> Trainer:
        """Return the trainer of a run in a folder, whose parts have seen the corpus."""
        composition = self.composition
        about = {
            "encoder": public_name(composition.model.name),
            "recipe": composition.recipe,
            "texts": f"{len(self.corpus)} rows of "
            + ", ".join(map(public_name, composition.data.path)),
            "note": SYNTHETIC if self.corpus.report.made_up else None,
        }
        trainer = Trainer(
            self.assembly, self.corpus, self.scorer, folder, self.precision, self.reporter, about
        )
        attach_callbacks(trainer)
        trainer.prepare()
        return trainer

    def check_read(self, then: Mapping[str, Any]) -> None:
        """Refuse to go on with a run, of this record, that read something else; name it."""
        now = {
            "data.path": self.corpus.fingerprint,
            **fingerprints(self.composition, self.registry),
        }
        was = {"data.path": then["data"]["fingerprint"], **then.get("read", {})}
        hint = "restore it as it was, or start a new run"
        changed = [name for name in was if now.get(name) != was[name]]
        what = "has changed since the run started"
        raise_all([CseError(what, where=name, hint=hint) for name in changed])

    def record(self, **train: Any) -> str:
        """Return run.toml: what repeats the run, with ``train.*`` changed, and what it ran on."""
        report, run = self.corpus.report, self.composition
        run = replace(run, train=run.train.model_copy(update=train))
        facts: dict[str, Any] = {
            "versions": versions(self.composition),
            "run": {
                "device": str(self.device),
                "precision": self.precision.name,
                "why": self.precision.why,
                "threads": torch.get_num_threads(),
                "processes": distributed.rank_and_size()[1],
                "packed": self.assembly.online.encoder.why_padded is None,
                "data": {
                    "rows": len(self.corpus),
                    "blank_dropped": report.blank_dropped,
                    "incomplete_dropped": report.incomplete_dropped,
                    "synthetic": bool(report.made_up),
                    "fingerprint": self.corpus.fingerprint,
                    "dev": list(self.scorer.dev),
                },
                "read": fingerprints(run, self.registry),
            },
        }
        return dump_recipe(run) + "\n" + tomlkit.dumps(facts)

    def report(self) -> None:
        """Report what was read, and where and in which number format it is trained."""
        report, encoder = self.corpus.report, self.assembly.online.encoder
        message = self.reporter.message
        names = ", ".join(map(public_name, self.composition.data.path))
        message(
            f"{len(self.corpus):,} rows of {names}"
            + (f", {report.blank_dropped:,} blank ones dropped" if report.blank_dropped else "")
            + (f", {len(held):,} more held out" if (held := self.corpus.held_out) else "")
        )
        for line in report.lines:
            message(line)
        message(f"on {self.device} in {self.precision.name}: {self.precision.why}")
        layers = self.composition.model.train_layers
        by = [adapter.path for adapter in self.composition.of("adapter")]
        if by or layers:
            trained, every = count_trained(encoder)
            who = by[0] if by else f"model.train_layers = {list(layers)}"
            message(f"{who} trains {trained:,} of {every:,} parameters of the encoder")
        for path, module in self.assembly.modules():
            if path.startswith("loss.") and (count := count_own(module, encoder)):
                message(f"{path} trains {count:,} parameters of its own, which are not saved")
        if encoder.only_fp32 and self.precision.dtype is not None:
            self.reporter.warning("the encoder computes in fp32: in bf16 its family overflows")
        if encoder.why_padded is not None:
            self.reporter.warning(f"rows are padded: {encoder.why_padded}")
