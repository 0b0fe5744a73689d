"""Parts made of their records: in one way for a run, for a saved model and for a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import call
from typing import Any, cast

import torch
from torch import Tensor, nn

from cse_core.errors import CseError, PartError, describe
from cse_core.functional import derive_seed
from cse_core.loading import load_factory
from cse_core.model_card import AGAIN
from cse_core.parts import (
    Branch,
    Head,
    MultiVectorPooler,
    Part,
    RowPooler,
    Setup,
    SlicePooler,
    TextModel,
)
from cse_core.protocols import Corpus, Encoder, MaskedHead, TextReader, Tokenizer
from cse_core.records import HeadSpec
from cse_core.registry.plugin_info import TOOLKIT
from cse_core.texts import DataOptions
from cse_core.weights import check_finite
from cse_engine.compose.checks import BASE_LEVELS
from cse_engine.compose.compose import model_alone
from cse_engine.compose.composition import Composition, PlannedPart
from cse_engine.compose.models import Models
from cse_engine.compose.settings import InferenceOptions, ModelOptions
from cse_engine.compose.size_checks import several_sizes
from cse_engine.runtime.seeds import generator
from cse_engine.step.dropout import DropoutSource
from cse_engine.step.sentence_encoder import SentenceEncoder


@dataclass(frozen=True)
class Making:
    """What all parts of a model are made with.

    Attributes:
        name: Name of the model, whose folder has weights for poolers and heads.
        named: How models encode that options of parts name; others as their folders say.
        dropout: What modules draw their dropout from; None leaves it as it is.
        read: Calls what loads a model.
        made: The parts by their paths, in the order in which they were made.
    """

    encoder: Encoder
    tokenizer: Tokenizer
    models: Models
    device: torch.device
    name: str
    seed: int = 0
    corpus: Corpus | None = None
    total_steps: int | None = None
    named: Mapping[str, Composition] = field(default_factory=dict)
    read_texts: TextReader | None = None
    dropout: DropoutSource | None = None
    read: Callable[..., Any] = call
    made: dict[str, Part] = field(default_factory=dict)

    def place(self, module: Any) -> Any:
        """Move a module to the device, and let its dropout draw from the source."""
        if self.dropout is not None:
            self.dropout.serve(module)
        return module.to(self.device)

    def second(self, name: str) -> SentenceEncoder:
        """Load a second model, which encodes as its folder says."""
        says = self.named.get(name) or model_alone(name, self.models.registry)
        options = ModelOptions(prompt=says.model.prompt or "")
        encoder, tokenizer = self.read(self.models.load, name, options, seed=self.seed)
        most = encoder.max_positions
        tokenizer.longest = longest = min(says.inference.max_length or most, most)
        place = self.models, self.device, name
        making = Making(self.place(encoder), tokenizer, *place, dropout=self.dropout)
        sentences = make_sentence_encoder(says.of("pool"), longest, says.inference, making)
        for head in sentences.heads.values():
            head.requires_grad_(False)
        return replace(sentences, finished=True)

    def load_model(
        self, path: str, name: str | None, pooling: str | None = None, option: str = "model"
    ) -> TextModel:
        """Give ``Setup.load_model`` to the part at a path."""
        making = replace(self, made={})
        if name is not None:
            with _at(f"{path}.{option}", name):
                sentences = self.second(name)
            making = replace(making, encoder=sentences.encoder, tokenizer=sentences.tokenizer)
        if name is None or pooling is not None:
            record = self.models.registry.find("pool", pooling or "mean")
            stages, longest = [PlannedPart.of(record)], making.encoder.max_positions
            sentences = make_sentence_encoder(stages, longest, InferenceOptions(), making)

        def encode(texts: Sequence[str], longest: int | None = None) -> Tensor:
            limited = replace(sentences, max_length=longest or sentences.max_length)
            return limited.encode(texts, self.device, shared=True)

        return TextModel(sentences.encoder, sentences.tokenizer, encode, sentences)

    def load_masked_lm(
        self, path: str, name: str | None = None, option: str = "model"
    ) -> tuple[Encoder, MaskedHead, Tokenizer]:
        """Give ``Setup.load_masked_lm`` to the part at a path."""
        load, seed = self.models.load_masked_lm, derive_seed(self.seed, "masked-lm")
        with _at(f"{path}.{option}", name):
            encoder, head, tokenizer = self.read(load, name or self.name, seed=seed)
        return self.place(encoder), head.to(self.device), tokenizer

    def load_texts(self, file: str) -> Corpus:
        """Read the rows of another file."""
        assert self.read_texts is not None, "only a run in training reads texts"
        return self.read_texts(DataOptions(path=(file,))).corpus()


def make_part(
    choice: PlannedPart, dimension: int, making: Making, heads: Mapping[str, Any] | None = None
) -> Any:
    """Make a part, which vectors of ``dimension`` reach, on the device.

    Raises:
        PartError: If its class fails, or makes what a run would lose.
    """
    encoder, path = making.encoder, choice.path
    setup = Setup(
        name=choice.name,
        dimension=dimension,
        hidden_size=encoder.hidden_size,
        embedding_size=encoder.embedding_size,
        layers=encoder.layer_count,
        tokenizer=making.tokenizer,
        encoder=encoder,
        heads=heads or {},
        corpus=making.corpus,
        total_steps=making.total_steps,
        seed=making.seed,
        device=making.device,
        generator=partial(generator, torch.device("cpu"), making.seed, "setup", path),
        load_model=partial(making.load_model, path),
        load_masked_lm=partial(making.load_masked_lm, path),
        load_texts=making.load_texts,
    )
    try:
        part = cast(Part, load_factory(choice.spec.factory)(choice.options, setup))
    except (CseError, MemoryError, torch.OutOfMemoryError):
        raise
    except (Exception, SystemExit) as error:
        if choice.distribution == TOOLKIT:
            raise
        raise PartError(choice, "__init__", f"raised {describe(error)}") from error
    if not isinstance(part, Part):
        raise PartError(choice, "__init__", f"promised a Part, made a {type(part).__name__}")
    for name in ("encoder", "heads") if isinstance(part, Branch) else ():
        if not hasattr(part, name):
            raise PartError(choice, "__init__", f"promised {type(part).__name__}.{name}, has none")
    part.name, part.path, part.owner = choice.name, path, choice.owner
    if wrong := _lost(part, choice, setup):
        raise PartError(part, "__init__", wrong)
    if isinstance(part, RowPooler | MultiVectorPooler) and not hasattr(part, "dimension"):
        part.dimension = dimension
    if isinstance(part, Head):
        part.level = getattr(choice.options, "level", "all")
    if isinstance(part, SlicePooler):
        part.slices_wrapped = choice.spec.declared("slices_wrapped", choice.options)
    if isinstance(part, nn.Module):
        making.place(part)
        if getattr(choice.options, "weights", None) == "model":
            _load_weights(part, making)
    making.made[path] = part
    return part


def make_sentence_encoder(
    stages: Sequence[PlannedPart], longest: int, inference: InferenceOptions, making: Making
) -> SentenceEncoder:
    """Make what leads from texts to vectors: a row pooler, heads, a slicer if there is one.

    ``longest`` is ``SentenceEncoder.max_length``.
    """
    slicer: Any = None
    pooler: Any = None
    heads: dict[str, Any] = {}
    several: dict[str, MultiVectorPooler] = {}
    sizes = {"row": making.encoder.hidden_size}
    for choice in stages:
        level = getattr(choice.options, "level", "row")
        given = {sizes.get(level)} if level != "all" else {*sizes.values()}
        if len(given) > 1:  # the plan did not know the sizes of other plugins' parts
            raise several_sizes(choice.path, sizes)
        if (dimension := given.pop()) is None:
            what = "nothing makes vectors of this level"
            raise CseError(what, where=f"{choice.path}.level", value=level)
        part = make_part(choice, dimension, making)
        if isinstance(part, SlicePooler):
            slicer = part
            continue
        size = getattr(part, "dimension", None)
        if not isinstance(size, int):
            what = f"promised {type(part).__name__}.dimension, an integer such as {dimension}"
            raise PartError(part, "__init__", f"{what}, has {size}")
        if isinstance(part, MultiVectorPooler):
            said = [need.name for need in choice.provides if need.kind == "level"]
            if said != [getattr(part, "level", None)] or part.level in ("row", "all", *BASE_LEVELS):
                what = f"has level {part.level!r}, and its record provides {said}"
                raise PartError(part, "__init__", what)
            several[part.level], sizes[part.level] = part, size
        elif isinstance(choice.spec, HeadSpec):
            heads[choice.name] = part
            sizes |= dict.fromkeys(sizes, size) if level == "all" else {level: size}
        else:
            pooler, sizes["row"] = part, size
    online = frozenset(s.name for s in stages if getattr(s.options, "branches", "") == "online")
    made = SentenceEncoder(making.encoder, making.tokenizer, pooler, heads, longest, slicer, online)
    width, cut = making.encoder.hidden_size, inference.truncate_dim
    made = replace(made, several=several)
    return replace(made, width=width, normalize=inference.normalize, truncate_dim=cut)


@contextmanager
def _at(where: str, name: str | None) -> Iterator[None]:
    """Let an error of a model say which option of a part has its name."""
    try:
        yield
    except CseError as error:
        raise CseError(error.what, where=where, value=name, hint=error.hint) from error


def _load_weights(part: Any, making: Making) -> None:
    """Give a pooler or head the weights that the model's folder has for it."""
    folder = making.models.weights(making.name)
    state = making.models.head_weights(folder, part.name)
    try:
        part.load_state_dict(state)
    except RuntimeError:
        what = f"the weights of its pooler or head {part.name} are missing or do not fit"
        raise CseError(what, where="model.name", value=str(folder), hint=AGAIN) from None
    check_finite(state, str(folder))


def _lost(part: Part, choice: PlannedPart, setup: Setup) -> str | None:
    """Describe the state of a part that would be lost or never trained; None if there is none."""
    if isinstance(part, nn.Module):
        what = "made a module, whose state is its parameters and buffers: leave remembers out"
        return what if part.remembers else None
    if part.remembers and choice.kind == "pool":
        return "remembers what no saved model holds: make the part an nn.Module with buffers"
    states = [name for name in part.remembers if hasattr(getattr(part, name, None), "state_dict")]
    if len(states) > 1:
        return f"remembers {' and '.join(states)}: only one may have a state_dict"
    trained = set[int]().union(*map(_trainable, (setup.encoder, *setup.heads.values())))
    for name, value in vars(part).items():
        frozen = isinstance(value, nn.Module) and not value.training  # such as a teacher
        if not frozen and not trained.issuperset(_trainable(value)):
            what = f"made a part whose {name} has parameters that no optimiser has"
            return f"{what}: call {name}.requires_grad_(False), or subclass nn.Module first"
    return None


def _trainable(value: Any) -> set[int]:
    """Return the ids of the tensors that ask for a gradient: of a module, or the value itself."""
    tensors = value.parameters() if isinstance(value, nn.Module) else (value,)
    return {id(item) for item in tensors if isinstance(item, Tensor) and item.requires_grad}
