"""Makes the parts of a composition: encoder, tokenizer, poolers, branches, everything in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from operator import call
from typing import Any

import torch
from torch import nn

from cse_core.errors import CseError, PartError, raise_all
from cse_core.functional import derive_seed
from cse_core.parts import Augmenter, Branch, Part, RowPooler
from cse_core.protocols import Corpus, TextReader
from cse_core.records import Kind
from cse_engine.compose.composition import Composition, PlannedPart
from cse_engine.compose.models import Models
from cse_engine.compose.size_checks import check_dimensions
from cse_engine.step.compiled import compile_layers
from cse_engine.step.dropout import DropoutSource
from cse_engine.step.part_calls import PartCalls
from cse_engine.step.part_factory import Making, make_part, make_sentence_encoder
from cse_engine.step.sentence_encoder import SentenceEncoder


@dataclass
class BoundAugmenter:
    """An augmenter with what the engine must know of it."""

    planned: PlannedPart
    part: Augmenter
    point: str
    gradient: str | None
    views: tuple[str, ...]


@dataclass
class Assembly:
    """All parts of a run, made.

    Attributes:
        online: From texts to vectors, by the encoder in training.
        encoders: The same for each branch, the online one among them.
        parts: Every part by its path (``negatives.queue``), in recipe order.
    """

    composition: Composition
    online: SentenceEncoder
    branches: dict[str, Branch]
    encoders: dict[str, SentenceEncoder]
    augmenters: list[BoundAugmenter]
    parts: dict[str, Part]
    dropout: DropoutSource
    device: torch.device
    models: Models
    inference_pool: RowPooler | None = None
    calls: PartCalls = field(default_factory=PartCalls)

    def of(self, kind: Kind) -> dict[str, Any]:
        """Return the parts of a kind that the step calls, by their names, in recipe order."""
        return {planned.name: self.parts[planned.path] for planned in self.composition.of(kind)}

    def modules(self) -> Iterator[tuple[str, nn.Module]]:
        """Yield every part that is a module, by its path; branches' copies are not among them."""
        for path, part in self.parts.items():
            if isinstance(part, nn.Module):
                yield path, part

    def train_mode(self) -> None:
        """Put every module into the mode that it trains in."""
        for model, branch in zip(self.encoders.values(), self.branches.values(), strict=True):
            for module in (model.encoder, *model.heads.values()):
                module.train(branch.training)
        for path, module in self.modules():
            if not path.startswith("branch."):
                module.train()


def build(
    composition: Composition,
    *,
    corpus: Corpus | None,
    device: torch.device,
    models: Models,
    read_texts: TextReader,
    total_steps: int | None = None,
    read: Callable[..., Any] = call,
) -> Assembly:
    """Make every part of a checked composition on its device.

    ``models`` finds and loads models, which ``read`` calls; ``read_texts`` reads texts of parts;
    ``total_steps`` are the optimiser steps of the first round.
    """
    seed, model, calls = composition.train.seed, composition.model, PartCalls(device)
    dropout = DropoutSource()
    encoder, tokenizer = read(models.load, model.name, model, seed=derive_seed(seed, "model"))
    about_run = seed, corpus, total_steps, composition.named, read_texts
    making = Making(encoder, tokenizer, models, device, model.name, *about_run, dropout, read)
    if composition.train.compile:
        compile_layers(encoder, dropout, device)
    making.place(encoder)
    stages = composition.of("pool")
    for planned in composition.of("adapter"):
        adapter = make_part(planned, encoder.hidden_size, making)
        calls(adapter, "wrap", encoder.model)
        if not (adapter.heads_only or any(p.requires_grad for p in encoder.model.parameters())):
            raise PartError(adapter, "wrap", "left no weight of the encoder to train")
    online = make_sentence_encoder(stages, model.max_length, composition.inference, making)
    make = partial(make_part, dimension=online.dimension, making=making)
    branches: dict[str, Branch] = {
        planned.name: make(planned, heads=dict(online.heads))
        for planned in composition.of("branch")
    }
    for branch in branches.values():
        for module in (branch.encoder, *branch.heads.values()):
            dropout.serve(module)
    encoders = {
        name: online if branch.encoder is encoder else online.with_branch(branch)
        for name, branch in branches.items()
    }
    for name in composition.inference.ensemble:
        if branches[name].model is not None:
            what = "encodes with a model of its own, which is not saved"
            raise CseError(what, where="inference.ensemble", value=name, hint="leave it out")
    first = encoders[composition.views[0].branch]
    cut = first.truncate_dim if first.finished else None
    size = min(first.dimension, cut or first.dimension)
    raise_all([*check_dimensions(composition, size)])
    augmenters = [
        BoundAugmenter(
            planned,
            make(planned),
            planned.spec.declared("point", planned.options),
            planned.spec.declared("gradient", planned.options),
            tuple(view.name for view in composition.views if planned.path in view.augmenters),
        )
        for planned in composition.of("aug")
    ]
    kinds: tuple[Kind, ...] = ("transform", "positives", "negatives", "sampler", "loss", "metric")
    for planned in chain.from_iterable(map(composition.of, kinds)):
        make(planned)
    assembly = Assembly(
        composition=composition,
        online=online,
        branches=branches,
        encoders=encoders,
        augmenters=augmenters,
        parts=making.made,
        dropout=dropout,
        device=device,
        models=models,
        inference_pool=_inference_pool(composition, making),
        calls=calls,
    )
    assembly.train_mode()
    for part in making.made.values():
        calls.watch(part)
    return assembly


def _inference_pool(composition: Composition, making: Making) -> RowPooler | None:
    """Make the row pooler of the saved model, where the training does without it."""
    chosen = composition.inference_pool
    if chosen is None:
        return None
    pool: RowPooler = make_part(chosen, making.encoder.hidden_size, replace(making, made={}))
    if isinstance(pool, nn.Module) and [*pool.parameters()]:
        what = "has weights of its own, which this run would not train"
        hint = f"train with it: --pool {chosen.use}, or choose another for inference.pool"
        raise CseError(what, where="inference.pool", value=chosen.use, hint=hint)
    return pool
