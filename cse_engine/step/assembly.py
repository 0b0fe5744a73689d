"""Makes the parts of a composition: encoder, tokenizer, poolers, branches, everything in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from operator import call
from typing import Any, cast

import torch
from torch import nn

from cse_core.errors import CseError, PartError, raise_all
from cse_core.functional import derive_seed
from cse_core.parts import Adapter, Augmenter, Branch, Part, RowPooler
from cse_core.protocols import Corpus, Data, Encoder, Tokenizer
from cse_core.records import Kind
from cse_core.texts import DataOptions
from cse_engine.compose.checks import check_dimensions
from cse_engine.compose.composition import Composition, PlannedPart
from cse_engine.compose.models import Models
from cse_engine.compose.settings import ModelOptions
from cse_engine.step.dropout import DropoutSource
from cse_engine.step.part_calls import PartCalls
from cse_engine.step.part_factory import PartFactory, WithHead
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
    read_texts: Callable[[DataOptions], Data],
    total_steps: int | None = None,
    read: Callable[..., Any] = call,
) -> Assembly:
    """Make every part of a checked composition on its device.

    ``models`` finds and loads models, which ``read`` calls; ``read_texts`` reads texts of parts;
    ``total_steps`` are the optimiser steps of the first round.
    """
    train, model = composition.train, composition.model
    source = DropoutSource()

    def load(name: str, seed: int, options: ModelOptions) -> tuple[Encoder, Tokenizer]:
        loaded, tok = read(models.load, name, options, seed=seed)
        source.serve(loaded.to(device))
        return loaded, tok

    encoder, tokenizer = load(model.name, derive_seed(train.seed, "model"), model)
    named: dict[int, SentenceEncoder] = {}

    def load_named(name: str) -> tuple[Encoder, Tokenizer]:
        """Load a second model, which encodes as its folder says where that was read."""
        says = composition.named.get(name)
        prompt = says.model.prompt if says else None
        loaded, tok = load(name, train.seed, ModelOptions(prompt=prompt or ""))
        if says is not None:
            most = loaded.max_positions
            tok.longest = longest = min(says.inference.max_length or most, most)
            made = PartFactory(loaded, tok, device, folder=models.weights(name), models=models)
            second = made.sentence_encoder(says.of("pool"), longest, says.inference)
            for head in second.heads.values():
                head.requires_grad_(False)
            named[id(loaded)] = replace(second, finished=True)
        return loaded, tok

    def load_headed(name: str | None) -> WithHead:
        """Load an encoder and the head that predicts masked tokens; by no name the run's own."""
        seed = derive_seed(train.seed, "masked-lm")
        loaded, head, tok = read(models.load_masked_lm, name or model.name, seed=seed)
        source.serve(loaded.to(device))
        return loaded, head.to(device), tok

    factory = PartFactory(
        encoder, tokenizer, device, train.seed, corpus, total_steps, load_named, dropout=source,
        folder=models.weights(model.name), named=named, load_masked_lm=load_headed,
        models=models, read_texts=read_texts,
    )  # fmt: skip
    calls = PartCalls(device)
    for planned in composition.of("adapter"):
        adapter = cast(Adapter, factory(planned, encoder.hidden_size))
        calls(adapter, "wrap", encoder.model)
        if not (adapter.heads_only or any(p.requires_grad for p in encoder.model.parameters())):
            raise PartError(adapter, "wrap", "left no weight of the encoder to train")
    online = factory.sentence_encoder(
        composition.of("pool"), model.max_length, composition.inference
    )
    dimension = online.dimension
    inference_pool = None
    if (chosen := composition.inference_pool) is not None:
        apart = replace(factory, made={})  # it is not part of the training
        inference_pool = cast(RowPooler, apart(chosen, encoder.hidden_size))
        if isinstance(inference_pool, nn.Module) and [*inference_pool.parameters()]:
            what = "has weights of its own, which this run would not train"
            hint = f"train with it: --pool {chosen.use}, or choose another for inference.pool"
            raise CseError(what, where="inference.pool", value=chosen.use, hint=hint)
    branches: dict[str, Branch] = {}
    for planned in composition.of("branch"):
        branch = cast(Branch, factory(planned, dimension, dict(online.heads)))
        branches[planned.name] = branch
        source.serve(branch.encoder)
        for head in branch.heads.values():
            source.serve(head)
    encoders = {
        name: online
        if branch.encoder is encoder
        else online.with_branch(branch, named.get(id(branch.encoder)))
        for name, branch in branches.items()
    }

    size = encoders[composition.views[0].branch].vector_size
    raise_all([*check_dimensions(composition, size)])
    augmenters = [
        BoundAugmenter(
            planned,
            cast(Augmenter, factory(planned, dimension)),
            planned.spec.declared("point", planned.options),
            planned.spec.declared("gradient", planned.options),
            tuple(view.name for view in composition.views if planned.path in view.augmenters),
        )
        for planned in composition.of("aug")
    ]
    kinds: tuple[Kind, ...] = ("transform", "positives", "negatives", "sampler", "loss", "metric")
    for kind in kinds:
        for planned in composition.of(kind):
            factory(planned, dimension)
    assembly = Assembly(
        composition=composition,
        online=online,
        branches=branches,
        encoders=encoders,
        augmenters=augmenters,
        parts=factory.made,
        dropout=source,
        device=device,
        models=models,
        inference_pool=inference_pool,
        calls=calls,
    )
    assembly.train_mode()
    for part in factory.made.values():
        calls.watch(part)
    return assembly
