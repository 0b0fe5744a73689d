"""Reads all that a run needs, before it writes anything: the model, the data, dev sets, parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import call
from typing import Any

import torch

from cse_core.errors import CseError, raise_all
from cse_core.parts import Adapter
from cse_core.protocols import Corpus, TextReader
from cse_core.registry.registry import Registry
from cse_core.reporter import Reporter
from cse_engine.compose.checks import check_only, no_room, prompts_of
from cse_engine.compose.composition import Composition
from cse_engine.compose.models import Models
from cse_engine.run.checkpoint import part_states
from cse_engine.run.dev_sets import dev_sets
from cse_engine.run.export import inference_encoder, public_name
from cse_engine.run.fingerprints import fingerprints
from cse_engine.run.selection import Scorer
from cse_engine.runtime import distributed
from cse_engine.runtime.device import Precision, resolve_device, resolve_precision
from cse_engine.step.assembly import Assembly, build
from cse_engine.step.optimizer import count_own, count_trained
from cse_engine.step.training_rows import TableMaker, TrainingRows, plain_table


@dataclass(frozen=True)
class Prepared:
    """What a run trains, on what, and by what it is scored.

    Attributes:
        composition: With the precision that was decided, and names of the hub with their commits.
        registry: The installed parts.
        reporter: Watches the run.
        corpus: All rows of the data.
        rows: The corpus as it is trained on where a round brings no pairs.
        assembly: The parts, which have seen the corpus.
    """

    composition: Composition
    registry: Registry
    reporter: Reporter
    precision: Precision
    corpus: Corpus
    rows: TrainingRows
    scorer: Scorer
    assembly: Assembly


def prepare(
    composition: Composition,
    registry: Registry,
    *,
    reporter: Reporter,
    read_texts: TextReader,
    make_table: TableMaker = plain_table,
    load: Callable[..., Any] = call,
    recorded: Mapping[str, Any] | None = None,
) -> Prepared:
    """Read what a composition trains, and let every part see the corpus; nothing is written.

    Args:
        composition: What to train.
        registry: The installed parts.
        reporter: Watches the run.
        read_texts: Reads ``data.*``, where the composition has not read it.
        make_table: Tokenises a column.
        load: Calls what loads a model.
        recorded: Table ``run`` of the ``run.toml`` of a run that goes on.

    Raises:
        CseError: If a file is missing or wrong, or is not what the recorded run read.
    """
    options = composition.train
    device = distributed.join(resolve_device(options.device))
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    processes = distributed.rank_and_size()[1]
    if options.batch_size < processes:
        what, hint = f"fewer sentences than the {processes} processes", f"use at least {processes}"
        raise CseError(what, where="train.batch_size", value=options.batch_size, hint=hint)
    precision = resolve_precision(options.precision, device)
    corpus = training_corpus(composition, registry, read_texts)
    raise_all([*check_only(composition, corpus)])
    report, commits = corpus.report, dict(corpus.report.commits)
    dev = dev_sets(options, report.names, registry, reporter.warning, commits, corpus)
    scorer = Scorer(dev, options.select, composition.says.similarity)
    composition = replace(
        composition,
        train=options.model_copy(
            update={"precision": precision.name, "dev": _pinned(options.dev, commits)}
        ),
        data=composition.data.model_copy(update={"path": _pinned(composition.data.path, commits)}),
    )
    if recorded is not None:
        precision = replace(precision, why="as before")
        before = {"data.path": recorded["data"]["fingerprint"], **recorded["read"]}
        now = {"data.path": corpus.fingerprint, **fingerprints(composition, registry)}
        changed = [name for name, value in before.items() if now.get(name) != value]
        what, hint = "has changed since the run started", "restore it as it was, or start a new run"
        raise_all([CseError(what, where=name, hint=hint) for name in changed])
        if recorded["processes"] != processes:
            was = f"{recorded['processes']} process{'es' * (recorded['processes'] > 1)}"
            reporter.warning(f"the run began with {was}, and has other dropout masks from here on")
    assembly = build(
        composition,
        corpus=corpus,
        device=device,
        models=Models(registry),
        read_texts=read_texts,
        total_steps=options.steps(len(corpus)),
        read=load,
    )
    for adapter in assembly.of("adapter").values() if options.merge else ():
        if type(adapter).merged is not Adapter.merged:
            what = f"the mean of the matrices of {adapter.path} is not the mean of what they change"
            raise CseError(what, where="train.merge", value=options.merge, hint="leave one out")
    rows = TrainingRows(corpus, composition.model.max_length, make_table=make_table)
    show_corpus(assembly, corpus)
    return Prepared(composition, registry, reporter, precision, corpus, rows, scorer, assembly)


def show_corpus(assembly: Assembly, corpus: Corpus) -> None:
    """Try what would stop the first step, and let every part see the corpus.

    A prompt that leaves no place for a text, a corpus that a part cannot use and a state that
    cannot be saved are found before the run's folder is begun.
    """
    encoders = [(assembly.encoders[v.branch], v.name) for v in assembly.composition.views]
    for sentence_encoder, view in [*encoders, (inference_encoder(assembly), "anchor")]:
        sentence_encoder.rows(sentence_encoder.tokenizer.content([""]), view)
    online = assembly.online
    for where, view, prompt in prompts_of(assembly.composition):
        rows = online.tokenizer.with_prompt(prompt).content([""])
        longest = online.max_length
        if online.slicer is None:
            rows, longest = online.rows(rows, view), min(longest, online.encoder.max_positions)
        if len(rows.ids) >= longest:
            raise no_room(where, prompt, longest)
    for part in assembly.parts.values():
        part.prepare(corpus)
    part_states(assembly)


def training_corpus(composition: Composition, registry: Registry, read: TextReader) -> Corpus:
    """Read the rows that a composition trains on, numbered as its parts saw them."""
    needed, tokens = composition.needed_columns, composition.data.split_tokens
    data = composition.read or read(composition.data)
    corpus: Corpus = data.corpus(needed)
    if tokens is None:
        return corpus
    tokenizer = Models(registry).tokenizer(composition.model.name)
    return corpus.pieces(tokenizer, tokens, needed.required)


def report_prepared(prepared: Prepared) -> None:
    """Report what was read, and where and in which number format it is trained."""
    composition, precision, corpus = prepared.composition, prepared.precision, prepared.corpus
    report, encoder = corpus.report, prepared.assembly.online.encoder
    message, warn = prepared.reporter.message, prepared.reporter.warning
    names = ", ".join(map(public_name, composition.data.path))
    message(
        f"{len(corpus):,} rows of {names}"
        + (f", {report.blank_dropped:,} blank ones dropped" if report.blank_dropped else "")
        + (f", {len(corpus.held_out):,} more held out" if corpus.held_out else "")
    )
    for line in report.lines:
        message(line)
    message(f"on {prepared.assembly.device} in {precision.name}: {precision.why}")
    if composition.train.compile:
        message("layers are compiled, which the first step waits for")
    layers = composition.model.train_layers
    by = [adapter.path for adapter in composition.of("adapter")]
    if by or layers:
        trained, total = count_trained(encoder)
        who = by[0] if by else f"model.train_layers = {list(layers)}"
        message(f"{who} trains {trained:,} of {total:,} parameters of the encoder")
    for path, module in prepared.assembly.modules():
        if path.startswith("loss.") and (count := count_own(module, encoder)):
            message(f"{path} trains {count:,} parameters of its own, which are not saved")
    if encoder.only_fp32 and precision.dtype is not None:
        warn("the encoder computes in fp32: in bf16 its family overflows")
    if encoder.why_padded is not None:
        warn(f"rows are padded: {encoder.why_padded}")


def _pinned(names: tuple[str, ...], commits: Mapping[str, str]) -> tuple[str, ...]:
    """Add their commits to names of the hub."""
    return tuple(
        f"{name.partition('#')[0]}#{commits[name]}" if name in commits else name for name in names
    )
