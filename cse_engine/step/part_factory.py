"""Parts made of their records: in one way for a run, for a saved model and for a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from cse_core.errors import CseError, PartError, describe
from cse_core.loading import load_factory
from cse_core.model_card import AGAIN
from cse_core.parts import Part, RowPooler, Setup, SlicePooler
from cse_core.protocols import Corpus, Data, Encoder, MaskedHead, Tokenizer
from cse_core.records import HeadSpec, SliceSpec
from cse_core.registry.plugin_info import TOOLKIT
from cse_core.texts import DataOptions
from cse_core.weights import check_finite
from cse_engine.compose.composition import PlannedPart
from cse_engine.compose.models import Models
from cse_engine.compose.settings import InferenceOptions
from cse_engine.runtime.seeds import generator
from cse_engine.step.dropout import DropoutSource
from cse_engine.step.sentence_encoder import SentenceEncoder

WithHead = tuple[Encoder, MaskedHead, Tokenizer]


def _no_second_encoder(name: Any) -> Any:
    raise RuntimeError(f"a part asked for encoder {name!r} outside training")


@dataclass(frozen=True)
class PartFactory:
    """What all parts of a model are made with; without ``dropout``, theirs stays as it is.

    ``made`` are the parts by their paths, in the order in which they were made. ``folder`` is that
    of the model, which has weights for poolers and heads that begin with those. ``named`` are the
    models that ``load_encoder`` loaded, by ``id(encoder)``.
    """

    encoder: Encoder
    tokenizer: Tokenizer
    device: torch.device
    seed: int = 0
    corpus: Corpus | None = None
    total_steps: int | None = None
    load_encoder: Callable[[str], tuple[Encoder, Tokenizer]] = _no_second_encoder
    load_masked_lm: Callable[[str | None], WithHead] = _no_second_encoder
    read_texts: Callable[[DataOptions], Data] = _no_second_encoder
    dropout: DropoutSource | None = None
    made: dict[str, Part] = field(default_factory=dict)
    folder: Path | None = None
    models: Models | None = None
    named: dict[int, SentenceEncoder] = field(default_factory=dict)

    def sentence_encoder(
        self, stages: Sequence[PlannedPart], longest: int, inference: InferenceOptions
    ) -> SentenceEncoder:
        """Return texts to vectors by a row pooler, heads, and a slicer if there is one.

        ``longest`` is ``SentenceEncoder.max_length``.
        """
        slicer: Any = None
        pooler: Any = None
        heads: dict[str, Any] = {}
        dimension = self.encoder.hidden_size
        for choice in stages:
            part: Any = self(choice, dimension)
            if isinstance(choice.spec, SliceSpec):
                slicer = part
                continue
            dimension = _dimension(part, dimension)
            if isinstance(choice.spec, HeadSpec):
                heads[choice.name] = part
            else:
                pooler = part
        online = frozenset(c.name for c in stages if getattr(c.options, "branches", "") == "online")
        made = SentenceEncoder(self.encoder, self.tokenizer, pooler, heads, longest, slicer, online)
        width, cut = self.encoder.hidden_size, inference.truncate_dim
        return replace(made, width=width, normalize=inference.normalize, truncate_dim=cut)

    def __call__(
        self, choice: PlannedPart, dimension: int, heads: Mapping[str, nn.Module] | None = None
    ) -> Part:
        """Return a part on the device, which vectors of ``dimension`` reach."""

        def named(
            load: Callable[[Any], Any], name: str | None = None, option: str = "model"
        ) -> Any:
            """Load a model by name; an error says which option of the part has the name."""
            try:
                return load(name)
            except CseError as error:
                where = f"{choice.path}.{option}"
                raise CseError(error.what, where=where, value=name, hint=error.hint) from error

        load_encoder = partial(named, self.load_encoder)

        def text_encoder(
            model: str | None,
            pooling: Literal["cls", "mean"] | None = None,
            option: str = "model",
        ) -> Callable[..., Tensor]:
            default = self.encoder, self.tokenizer
            encoder, tokenizer = default if model is None else load_encoder(model, option)
            sentences = self.named.pop(id(encoder), None)
            if pooling is not None or sentences is None:
                wide = replace(setup, dimension=encoder.hidden_size)
                assert self.models is not None, "poolers are found by name"
                record = self.models.registry.find("pool", pooling or "mean").spec
                pooler = load_factory(record.factory)(record.options_class(), wide)
                longest = encoder.max_positions
                sentences = SentenceEncoder(encoder, tokenizer, pooler, {}, longest)

            def encode(texts: Sequence[str], longest: int | None = None) -> Tensor:
                at_most = replace(sentences, max_length=longest or sentences.max_length)
                return at_most.encode(texts, self.device, shared=True)

            return encode

        setup = Setup(
            name=choice.name,
            dimension=dimension,
            hidden_size=self.encoder.hidden_size,
            embedding_size=self.encoder.embedding_size,
            layers=self.encoder.layer_count,
            tokenizer=self.tokenizer,
            encoder=self.encoder,
            heads=heads or {},
            corpus=self.corpus,
            total_steps=self.total_steps,
            seed=self.seed,
            device=self.device,
            generator=lambda name: generator(
                torch.device("cpu"), self.seed, "setup", choice.path, name
            ),
            load_encoder=load_encoder,
            text_encoder=text_encoder,
            load_texts=lambda file: self.read_texts(DataOptions(path=(file,))).corpus(),
            load_masked_lm=partial(named, self.load_masked_lm),
        )
        part = make_part(choice, setup)
        if isinstance(part, nn.Module):
            if self.dropout is not None:
                self.dropout.serve(part)
            if getattr(choice.options, "weights", None) == "model":
                assert self.folder and self.models, "the weights of a model lie in its folder"
                load_weights(part, choice.name, self.folder, self.models)
        self.made[choice.path] = part
        return part


def _dimension(part: Any, given: int) -> int:
    """Return the dimension of what a pooler or head makes; a pooler that says none keeps it."""
    if isinstance(part, RowPooler) and not hasattr(part, "dimension"):
        part.dimension = given
    if not isinstance(size := getattr(part, "dimension", None), int):
        what = f"promised {type(part).__name__}.dimension, an integer such as {given}, has {size}"
        raise PartError(part, "__init__", what)
    return size


def load_weights(part: nn.Module, name: str, folder: Path, models: Models) -> None:
    """Give a pooler or head the weights that a model's folder has for it."""
    state = models.head_weights(folder, name)
    try:
        part.load_state_dict(state)
    except RuntimeError:
        what = f"the weights of its pooler or head {name} are missing or do not fit"
        raise CseError(what, where="model.name", value=str(folder), hint=AGAIN) from None
    check_finite(state, str(folder))


def make_part(choice: PlannedPart, setup: Setup) -> Part:
    """Return a part as its record, options and setup make it, on the setup's device."""
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
    part.name, part.path, part.owner = choice.name, choice.path, choice.owner
    if wrong := _lost(part, choice, setup):
        raise PartError(part, "__init__", wrong)
    if isinstance(part, SlicePooler):
        part.slices_wrapped = choice.spec.declared("slices_wrapped", choice.options)
    if isinstance(part, nn.Module):
        part.to(setup.device)
    return part


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
    trained = {*_trainable(setup.encoder, *setup.heads.values())}
    for name, value in vars(part).items():
        frozen = isinstance(value, nn.Module) and not value.training  # such as a teacher
        if not frozen and not trained.issuperset(_trainable(value)):
            what = f"made a part whose {name} has parameters that no optimiser has"
            return f"{what}: call {name}.requires_grad_(False), or subclass nn.Module first"
    return None


def _trainable(*values: Any) -> Iterator[int]:
    """Yield the ids of the tensors that ask for a gradient: of modules, or values themselves."""
    for value in values:
        for tensor in value.parameters() if isinstance(value, nn.Module) else (value,):
            if isinstance(tensor, Tensor) and tensor.requires_grad:
                yield id(tensor)
