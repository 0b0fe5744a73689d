"""Base classes of parts: subclass them and override what you need; the defaults do nothing.

All extend ``Part``, are created as ``Class(options, setup)`` and have ``self.options``. If a part
creates more of itself, it calls ``super().__init__(options, setup)``. If it has parameters, it
subclasses ``nn.Module`` first, then its kind, ``class Mlp(nn.Module, Head)``, and stores what it
needs itself after ``super().__init__()``; its parameters join the optimiser.

Only ``after_step`` may change a part in a step; all other methods are pure.
"""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from cse_core.functional import owner_means
from cse_core.token_batch import TokenBatch, TokenStates, TokenSums, Units
from cse_core.types import Batch, Embeddings, Negatives, Positives, StepContext, View

if TYPE_CHECKING:
    from pathlib import Path

    from cse_core.protocols import Corpus, Encoder, MaskedHead, Rows, Tokenizer
    from cse_core.types import Hidden, LossOutput, Round


@dataclass(frozen=True)
class TextModel:
    """Another model than the run's, as ``setup.load_model`` returns it.

    Attributes:
        encoder: Its encoder.
        tokenizer: Its tokenizer.
        encode: ``encode(texts, longest=None)`` returns ``[N, D]`` vectors on the CPU; ``longest``
            limits the tokens of a row.
        pipeline: What the engine encodes with it.
    """

    encoder: Encoder
    tokenizer: Tokenizer
    encode: Callable[..., Tensor]
    pipeline: Any = None


@dataclass(frozen=True)
class Setup:
    """What a part may know when it is created.

    Attributes:
        name: Name of the instance.
        dimension: Dimension of its input: hidden states for row poolers, vectors for heads, the
            run's sentence vectors for all others.
        hidden_size: Dimension of the encoder's token states.
        embedding_size: Dimension of its word embeddings.
        layers: Number of its layers.
        tokenizer: The run's tokenizer.
        encoder: The online encoder, with the weights of the start of the run, also in a resumed
            run; None without one.
        heads: The online heads by instance name.
        corpus: The training rows; None at inference.
        total_steps: Optimiser steps of the first round, if known.
        seed: The run's seed.
        device: Where tensors belong.
        generator: ``generator(name)`` draws on the CPU while the part is created.
        load_model: ``load_model(model, pooling=None, option="model")`` returns another model as a
            ``TextModel``; errors name that option of the part. It encodes as its folder says, or
            pooled by ``cls`` or ``mean`` without heads; with model None it is the run's own encoder
            at the time of each call.
        load_masked_lm: ``load_masked_lm(model=None, option="model")`` returns a second encoder, its
            head for masked tokens, and its tokenizer; with None those in the folder of the run's
            own model.
        load_texts: ``load_texts(file)`` returns the rows of another file.
    """

    name: str
    dimension: int
    hidden_size: int
    embedding_size: int
    layers: int
    tokenizer: Tokenizer
    encoder: Encoder | None
    heads: Mapping[str, torch.nn.Module]
    corpus: Corpus | None
    total_steps: int | None
    seed: int
    device: torch.device
    generator: Callable[[str], torch.Generator]
    load_model: Callable[..., TextModel]
    load_texts: Callable[[str], Corpus]
    load_masked_lm: Callable[..., tuple[Encoder, MaskedHead, Tokenizer]]

    @contextmanager
    def seeded(self, name: str) -> Iterator[None]:
        """Seed draws from torch's global generators inside, such as those of torch's layers."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(int(torch.randint(2**62, (), generator=self.generator(name))))
            yield

    def online_encoder(self) -> Encoder:
        """Return the online encoder of a run in training.

        Raises:
            RuntimeError: If there is none, as at inference.
        """
        if self.encoder is None:
            raise RuntimeError(f"{self.name} needs the online encoder, and there is none")
        return self.encoder


class Part:
    """A part of any kind.

    Attributes:
        options: Its options; each class declares their model.
        name: Name of the instance.
        path: Its place in the recipe: ``negatives.queue``.
        owner: The distribution that brings it, with its version.
        remembers: Attributes that are its state: tensors, JSON values, None, at most one with a
            ``state_dict``, such as a ``Fifo``.
    """

    options: Any
    name: str
    path: str = "a part"
    owner: str = "no distribution"
    remembers: tuple[str, ...] = ()

    def __init__(self, options: Any, setup: Setup) -> None:
        self.options, self.name = options, setup.name

    def prepare(self, dataset: Corpus) -> None:
        """See the training rows once, before the first step."""

    def views(self, rows: Tensor, ctx: StepContext) -> list[View]:
        """Return more views of the batch.

        Args:
            rows: ``[b]`` corpus rows of this process; their texts are in ``ctx.texts``.
            ctx: The step.
        """
        return []

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Update the part after the optimiser's step."""

    def begin_round(self, rows: Rows, ctx: RoundContext) -> None:
        """See the rows of a round before its first step; on resume, after state is restored."""

    def next_round(self, ctx: RoundContext) -> Round | None:
        """Return the next round of training, or None if there are no more."""
        return None

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return tensors and JSON values: what it ``remembers``."""
        state: dict[str, Any] = {}
        for name in self.remembers:
            value = getattr(self, name)
            if hasattr(value, "state_dict"):
                state |= value.state_dict()
            elif value is not None:
                state[name] = value
        return state

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Restore what ``state_dict`` returned."""
        for name in self.remembers:
            value = getattr(self, name)
            if hasattr(value, "load_state_dict"):
                value.load_state_dict(state)
            else:
                setattr(self, name, state.get(name))


class Augmenter(Part):
    """Changes one thing of a view, at its record's ``point``."""

    def __call__(self, x: Any, tokens: TokenBatch | None, view: View, ctx: StepContext) -> Any:
        """Return ``x`` changed, with the same number and order of rows.

        Args:
            x: ``list[str]`` at ``text``; the TokenBatch at ``tokens``; ``[T, E]`` at
                ``word_embeddings``; ``[T, H]`` at ``input_embeddings`` (what enters the first
                layer, after LayerNorm and dropout).
            tokens: The view's tokens; None at ``text``. At the embeddings, their owners are batch
                rows over all processes.
            view: The view.
            ctx: The step.
        """


class SlicePooler(Part):
    """Cuts content into rows and joins their vectors again.

    Attributes:
        level: Level of its rows.
        join_before_heads: Whether sentence vectors are joined before the heads instead of after
            them.
        slices_wrapped: What its record says with its options, set when it has been made: whether it
            cuts rows that have their special tokens, so that a later slice has none of its own.
    """

    level: str = "segment"
    join_before_heads: bool = False
    slices_wrapped: bool = False

    def slices(self, tokens: TokenBatch) -> TokenBatch:
        """Return tokens cut into more rows; slots count the rows of a sentence."""

    def join(self, rows: Embeddings) -> Embeddings:
        """Return one vector for each owner, in the order of first appearance, slot 0.

        By default the mean; ``rows.owners`` is the number of owners.
        """
        return owner_means(rows)


class RowPooler(Part):
    """Turns token states into a vector for each row.

    Attributes:
        layers: Hidden states that it reads besides the last: 0 is what entered the first layer, i
            the output of layer i.
        dimension: Dimension of its vectors, if not the hidden size.
    """

    layers: tuple[int, ...] = ()
    dimension: int

    def prompt(self, view: str) -> tuple[str, str]:
        """Return the texts before and after the content of a view; they never change.

        For a view ``positive-2`` it is asked for ``positive``; texts are scored with ``anchor``.
        """
        return "", ""

    def content(self, tokens: TokenBatch) -> TokenBatch:
        """Return content tokens with what every text gets, the same rows, before they are wrapped.

        Rows of sliced texts are slices: they share the text's owner, and slots count them. Added
        tokens do not count in lengths.
        """
        return tokens

    def reads(self, tokens: TokenBatch) -> Tensor | None:
        """Return the only token of each row whose last state ``pool`` reads, ``[R]``; None: all.

        The last layer then skips the others; ``hidden.at`` gives these states.
        """
        return None

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, D]`` from ``[T, H]`` states, or from those that ``reads`` names."""


class MultiVectorPooler(Part):
    """Makes several vectors of a row, at a level of their own beside the vector of the row.

    Attributes:
        level: Level of its vectors, which its record provides.
        layers: Hidden states that it reads besides the last, as ``RowPooler.layers``.
        dimension: Dimension of its vectors, if not the hidden size.
    """

    level: str
    layers: tuple[int, ...] = ()
    dimension: int

    def units(self, tokens: TokenBatch, view: str) -> Units:
        """Return which tokens each vector is of, in the order of the rows.

        Tokens may be left out, or be of several units. What a row has does not depend on other
        rows.

        Args:
            tokens: R wrapped rows on the CPU.
            view: The view; ``anchor`` or ``positive`` for queries and documents after training.
        """

    def pool(self, hidden: Hidden, units: Units) -> Tensor:
        """Return ``[N, D]``, by default the mean of the last states of each unit."""
        return units.means(hidden.last)


class Head(Part):
    """Maps vectors to vectors; an ``nn.Module``.

    Attributes:
        dimension: Dimension of its output.
        level: What its options say of the vectors that pass through it, set when it has been made.
    """

    dimension: int
    level: str = "all"

    def forward(self, vectors: Tensor) -> Tensor:
        """Return ``[N, D']`` from ``[N, D]``."""

    def sentence_transformers(self) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """Return configuration and weights of an equal Dense module, or None."""
        return None


def heads_of(heads: Mapping[str, Any], level: str) -> list[Any]:
    """Return the heads that vectors of a level pass through; ``row`` is the vector of each row."""
    return [head for head in heads.values() if getattr(head, "level", "all") in ("all", level)]


class Transform(Part):
    """Changes vectors between the heads and the losses."""

    def __call__(
        self, views: Mapping[str, Embeddings], ctx: StepContext
    ) -> Mapping[str, Embeddings]:
        """Return the views that it changes, with the same rows and keys.

        Args:
            views: Vectors ``[N, D]`` of each view over all processes, with gradient.
            ctx: The step; ``ctx.vectors`` gives vectors before any transform.
        """


class PositiveMiner(Part):
    """Finds positives."""

    def mine(self, batch: Batch, ctx: StepContext) -> dict[str, Positives]:
        """Return groups of positives for the batch's anchors; no group if there is none yet."""
        return {}


class NegativeStore(Part):
    """Holds negatives, or weighs existing ones."""

    def candidates(self, batch: Batch, ctx: StepContext) -> Negatives | None:
        """Return negatives for the batch's anchors, detached unless made in this step."""
        return None

    def weigh(self, negatives: Negatives, batch: Batch, ctx: StepContext) -> Negatives:
        """Return a loss's negatives with other masks or weights; ``batch`` holds its anchors.

        In a large batch these are some of the anchors; judge each by itself. Rows and views are
        those of all sentences.
        """
        return negatives


class Sampler(Part):
    """Chooses the rows of each batch."""

    def order(
        self, rows: Rows, size: int, draws: Callable[[str], torch.Generator]
    ) -> Tensor | None:
        """Order the rows of a round for an epoch of batches of ``size``: ``[rows]``, each once.

        None where the rows leave it nothing to arrange, of which the run warns. It is called before
        each epoch and on resume, and may depend only on the rows, ``begin_round`` and
        ``draws(name)``, generators of the epoch.
        """


class Loss(Part):
    """Turns anchors, positives and negatives into a scalar."""

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the loss of ``batch.anchors`` ``[A, D]`` with A positives and N negatives.

        Must take N = 0, any mask and weights, and A = 1.
        """


class TokenLoss(Part):
    """Turns the token states of views into a loss that is a sum over rows, divided by a count.

    The step sums over all chunks and processes, so that value and gradients are those of one
    process with the whole batch. Modules of its own are trained and kept in checkpoints, but not in
    the saved model.

    Attributes:
        layers: Hidden states that it reads besides the last, as ``RowPooler.layers``.
    """

    layers: tuple[int, ...] = ()

    def sums(self, views: Mapping[str, TokenStates], ctx: StepContext) -> TokenSums:
        """Return the sums over the given rows: some rows of the batch, of this process, or none.

        It is pure, and a row does not depend on others, unless the record says ``whole_batch``.
        """


class Branch(Part):
    """A copy of the encoder that encodes views.

    Attributes:
        encoder: Its encoder.
        heads: Its heads by instance name; a missing head is the online one.
        model: The loaded model whose encoder this is: it pools, cuts and normalises as its folder
            says, with its own tokenizer, out of reach of token augmenters. None: as the run does.
        pooler: Its own row pooler; None: that of its ``model``, or the run's.
        training: Whether dropout is on in its passes. If the branch is a module, set it after
            ``super().__init__()``.
        cached: Whether its vector of a text never changes: texts that no augmenter changes are then
            encoded once for all parts.
    """

    encoder: Encoder
    heads: Mapping[str, torch.nn.Module]
    model: TextModel | None = None
    pooler: RowPooler | None = None
    training: bool = True
    cached: bool = False


class Adapter(Part):
    """Chooses which weights of the encoder are trained; additions live in the encoder's modules.

    Attributes:
        heads_only: Whether it means to train no weight of the encoder, only those of heads.
    """

    heads_only: ClassVar[bool] = False

    def wrap(self, model: torch.nn.Module) -> None:
        """Change the encoder in place, once, before branches copy it.

        What then requires a gradient is trained; copies share all other weights. For a plan,
        ``model`` is on the device ``meta``.
        """

    def merged(self, model: torch.nn.Module) -> torch.nn.Module:
        """Return a model of the same vectors without added modules; leave ``model`` unchanged."""
        return model

    def save(self, model: torch.nn.Module, folder: Path, base: str) -> None:
        """Write what was added, in a format of its own, into ``adapter/`` of the saved model.

        Args:
            model: The encoder.
            folder: Folder to create.
            base: Name of the adapted model, without its folder.
        """


class Metric(Part):
    """A number about a model."""

    def compute(self, encode: Callable[[Sequence[str]], Any], pairs: Any) -> dict[str, float]:
        """Return named numbers of an encoder on a set of scored pairs."""


@dataclass(frozen=True)
class RoundContext:
    """What a part may ask for between rounds.

    Attributes:
        round: Number of the next round, from 1; 0 in a run without rounds.
        corpus: The training rows.
        encode: ``encode(texts)`` returns ``[N, D]`` float32 vectors on the CPU, as the saved model
            would encode. Every process passes the same texts and encodes its share.
        encode_in_training: ``encode_in_training(texts, branch="online")`` does the same as a branch
            encodes in training: with the heads of training, and vectors of their own lengths.
        scores: Best score of each finished round.
        generator: As in StepContext.
        shared: ``shared(count, make, at_once=1)`` returns ``[count, ...]`` rows on the CPU; each
            process calls ``make(start, stop)`` for its blocks of ``at_once`` rows, and all get the
            whole.
        progress: ``progress(done, total, what)`` moves the progress bar.
        warning: ``warning(text)`` shows a line to the user, such as of data that a part cannot use.
    """

    round: int
    corpus: Corpus
    encode: Callable[[Sequence[str]], Tensor]
    encode_in_training: Callable[..., Tensor]
    scores: Sequence[float | None]
    generator: Callable[..., torch.Generator]
    shared: Callable[..., Tensor]
    progress: Callable[[int, int, str], None]
    warning: Callable[[str], None]
