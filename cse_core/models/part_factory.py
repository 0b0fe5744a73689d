"""Parts made of their records: in one way for a run, for a saved model and for a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import nn

from cse_core.encoders.dropout import DropoutSource, replace_dropout
from cse_core.encoders.encoder import PackedEncoder
from cse_core.parts import Branch, Part, Setup, SlicePooler
from cse_core.recipes.composition import PlannedPart
from cse_core.records import BranchSpec, SliceSpec
from cse_core.runtime.loading import load_factory
from cse_core.runtime.seeds import generator
from cse_core.tokenization.tokenizer import TextTokenizer

if TYPE_CHECKING:
    from cse_core.data import Corpus


def _no_second_encoder(name: str) -> tuple[PackedEncoder, TextTokenizer]:
    raise RuntimeError(f"a part asked for encoder {name!r} outside training")


@dataclass(frozen=True)
class PartFactory:
    """What all parts of a model are made with; without ``dropout``, theirs stays as it is."""

    encoder: PackedEncoder
    tokenizer: TextTokenizer
    device: torch.device
    seed: int = 0
    corpus: Corpus | None = None
    total_steps: int | None = None
    load_encoder: Callable[[str], tuple[PackedEncoder, TextTokenizer]] = _no_second_encoder
    dropout: DropoutSource | None = None

    def __call__(
        self, choice: PlannedPart, dimension: int, heads: Mapping[str, nn.Module] | None = None
    ) -> Part:
        """Return a part on the device.

        Args:
            choice: Its record, options and name.
            dimension: That of the vectors that reach it.
            heads: The online heads by instance name.
        """
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
            load_encoder=self.load_encoder,
        )
        part = make_part(choice, setup)
        if isinstance(part, nn.Module) and self.dropout is not None:
            replace_dropout(part, self.dropout)
        return part


def make_part(choice: PlannedPart, setup: Setup) -> Part:
    """Return a part as its record, options and setup make it, on the setup's device."""
    part = cast(Part, load_factory(choice.spec.factory)(choice.options, setup))
    part.name = choice.name
    if isinstance(part, SlicePooler):
        part.slices_wrapped = cast(SliceSpec, choice.spec).cuts_wrapped(choice.options)
    if isinstance(part, Branch):
        part.trainable = cast(BranchSpec, choice.spec).trainable
    if isinstance(part, nn.Module):
        part.to(setup.device)
    return part
