"""The core's own options: ``model.*``, ``data.*``, ``train.*``, ``views.*``, ``inference.*``."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cse_core.options import Options, Patience

COLUMNS = ("text", "positive", "negative", "fraternal", "document", "title")
"""Columns that the core knows; parts may require others."""


def _checked_device(name: str) -> str:
    if re.fullmatch(r"auto|cpu|mps|cuda(:[0-9]{1,3})?", name) is None:
        raise ValueError("must be auto, cpu, mps, cuda or one of several, such as cuda:1")
    return name


_Decay = Annotated[float, Field(ge=0, lt=1)]


class ModelOptions(Options):
    """The encoder."""

    name: str = "starter"
    """A folder, a run, the name of an installed encoder, or a name on the Hugging Face hub."""
    max_length: int = Field(default=32, ge=2)
    """Longest row in training, in tokens: the whole wrapped row, or with segments the content
    before slicing."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of the encoder in training; by default what its configuration says."""
    freeze_embeddings: bool = False
    """Whether the embedding layer keeps its values: words, positions, types and their norm."""
    from_scratch: bool = False
    """Start from random weights of the model's configuration."""
    attention: Literal["auto", "packed", "padded"] = "auto"
    """How rows go to the encoder; auto packs where the architecture can."""


class DataOptions(Options):
    """The training texts."""

    path: tuple[str, ...] = ("starter",)
    """Files, names of installed data sets, or names on the Hugging Face hub."""
    unit: Literal["sentence", "paragraph", "document"] = "sentence"
    """What a row is, where the data has documents."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Where the file's columns have other names: ``text = "sentence1"``."""
    limit: int | None = Field(default=None, ge=1)
    """Use only the first so many rows."""
    shuffle: bool = True
    """Draw the rows of each epoch in a new order."""
    split_tokens: int | None = Field(default=None, ge=1)
    """Cut every text into texts of so many tokens, special tokens not counted; by default none."""


class TrainOptions(Options):
    """The training loop."""

    batch_size: int = Field(default=64, ge=1)
    """Sentences whose loss is computed together, over all processes."""
    chunk_size: int | None = Field(default=None, ge=1)
    """Sentences encoded at once: batches larger than memory, by gradient caching."""
    lr: float = Field(default=3e-5, ge=0, le=1)
    """Peak learning rate of AdamW."""
    head_lr: float | None = Field(default=None, ge=0, le=1)
    """Peak learning rate of heads and other new parameters; by default that of the encoder."""
    betas: tuple[_Decay, _Decay] = (0.9, 0.999)
    """Decay rates of AdamW's moments."""
    eps: float = Field(default=1e-8, gt=0, le=1)
    """AdamW's epsilon."""
    weight_decay: float = Field(default=0.0, ge=0, le=10)
    """Weight decay, not on biases and layer norms."""
    warmup: float = Field(default=0.0, ge=0)
    """Share of the steps (below 1) or number of steps (from 1) with rising learning rate."""
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    """Learning rate after the warm-up: to zero along a line or half a cosine, or constant."""
    clip: float = Field(default=1.0, ge=0)
    """Largest norm of the gradient; 0 is no limit."""
    epochs: float = Field(default=1.0, gt=0)
    """Passes over the data; a fraction stops inside a pass."""
    max_steps: int | None = Field(default=None, ge=1)
    """Steps, whatever the epochs say."""
    eval_steps: int | None = Field(default=None, ge=0)
    """Steps between scores on the dev sets; 0 is never; by default every 125, or each tenth of a
    shorter run."""
    save_steps: int | None = Field(default=None, ge=0)
    """Steps between checkpoints for resuming; 0 is only at the end; by default as eval_steps."""
    save_rounds: bool = True
    """Whether the model of each round is kept, in ``rounds/N/model``."""
    log_steps: int | None = Field(default=None, ge=1)
    """Steps between lines of metrics.jsonl; by default 10, or 1 in runs below 100 steps."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Number format of the encoder; auto is bf16 where the hardware computes in it, else fp32."""
    dropout_bits: Literal[8, 16] = 16
    """Random bits for each element of a dropout mask on a CPU; 8 draws half as many, and rounds
    p = 0.1 to 0.1016."""
    seed: int = Field(default=42, ge=0, le=2**63 - 1)
    """Seed of everything that is drawn."""
    dev: tuple[str, ...] = ("auto",)
    """Sets that choose the checkpoint: files of pairs, or of a suite that reads dev sets (documents
    with titles), names, or none; auto takes the starter's pairs with the starter's data."""
    select: str | None = None
    """The dev score that chooses the checkpoint, or mean; by default the mean of all."""
    report: tuple[str, ...] = ()
    """Reporters beside the command line's own, by name: csv, or with options csv:file=x.csv."""
    patience: Patience | None = None
    """Stop a round after so many evaluations without a better score, or ``20000 steps``,
    ``2 epochs``."""
    device: Annotated[str, AfterValidator(_checked_device)] = "auto"
    """auto, cpu, mps, cuda, or one of several: cuda:1."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """Processor threads; by default what the machine offers."""
    check: bool = False
    """Look at more of what parts do in every step, at a cost: the global random state, and whether
    a second call returns the same."""
    drop_spikes: float | None = Field(default=None, gt=1)
    """Drop a step whose gradient's norm is not finite, or above so many times the median of the
    last 50: no weight moves and no queue takes its rows. By default none is dropped."""

    def steps(self, rows: int) -> int:
        """Return the optimiser steps of a round over so many rows."""
        per_epoch = math.ceil(rows / self.batch_size)
        return self.max_steps or max(1, math.ceil(per_epoch * self.epochs))


class ViewOptions(Options):
    """Where a view comes from and which branch encodes it."""

    branch: str = "online"
    """Name of the branch that encodes it."""
    column: str | None = None
    """Column of its texts; by default the column of its name where the data has it, else text."""


class InferenceOptions(Options):
    """What encodes a text after training, where it differs from training."""

    pool: str | None = None
    """Name of the row pooler; by default the one of training."""
    heads: tuple[str, ...] | None = None
    """Names of the heads; by default those kept always."""
    slice: bool = False
    """Whether texts are sliced as in training."""
    max_length: int | None = Field(default=None, ge=2)
    """Longest row in tokens, in dev scores and mining too; by default all that the encoder takes
    (with slices: model.max_length). Papers score whole texts, whatever they train on."""


CORE_OPTIONS: dict[str, type[Options]] = {
    "model": ModelOptions,
    "data": DataOptions,
    "train": TrainOptions,
    "inference": InferenceOptions,
}
"""The core's own options by their table, beside those of ``views``."""
