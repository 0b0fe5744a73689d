"""The core's own options: ``model.*``, ``data.*``, ``train.*``, ``views.*``, ``inference.*``."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from cse_core.options import Location, Options, Patience
from cse_core.texts import DataOptions, Lists


def _checked_device(name: str) -> str:
    if re.fullmatch(r"auto|cpu|mps|cuda(:[0-9]{1,3})?", name) is None:
        raise ValueError("must be auto, cpu, mps, cuda or one of several, such as cuda:1")
    return name


_Decay = Annotated[float, Field(ge=0, lt=1)]


class ModelOptions(Options):
    """The encoder."""

    name: Location = "starter"
    """Encoder to start from: a folder, a run, an installed encoder, or a Hugging Face hub name."""
    prompt: str | None = None
    """Text before every text, or the name of one of the model's prompts; by default the model's
    own."""
    max_length: int = Field(default=32, ge=2)
    """Longest training row in tokens, special tokens and prompt included; with segments, the
    content before slicing."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of the encoder in training; by default that of its configuration."""
    freeze_embeddings: bool = False
    """Do not train the embedding layer (words, positions, types, LayerNorm)."""
    train_layers: tuple[int, ...] = ()
    """Train only these layers, and not the embeddings; numbered from 0, or from -1 at the end.
    Empty: all."""
    from_scratch: bool = False
    """Start from random weights instead of the model's."""
    attention: Literal["auto", "packed", "padded", "causal", "bidirectional"] = "auto"
    """packed: rows end to end without padding; padded; auto packs if the architecture supports it.
    causal, bidirectional: the direction of a decoder, by default its folder's."""
    gradient_checkpointing: bool = False
    """Recompute layers in the backward pass instead of storing them: slower, less memory, the same
    result."""


class TrainOptions(Options):
    """The training loop."""

    batch_size: int = Field(default=64, ge=1)
    """Sentences per step, over all processes."""
    chunk_size: int | None = Field(default=None, ge=1)
    """Sentences encoded at once, for batches larger than memory (gradient caching)."""
    compile: bool = False
    """Compile the encoder's layers with torch.compile: the first step takes some 15 seconds longer,
    losses agree to rounding. On processors later steps are not faster; GPUs were not measured."""
    lr: float = Field(default=3e-5, ge=0, le=1)
    """Peak learning rate of AdamW."""
    head_lr: float | None = Field(default=None, ge=0, le=1)
    """Peak learning rate of heads and other new parameters; by default that of the encoder."""
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    """Learning rate of each layer as a multiple of that of the layer above."""
    betas: tuple[_Decay, _Decay] = (0.9, 0.999)
    """Decay rates of AdamW's moments."""
    eps: float = Field(default=1e-8, gt=0, le=1)
    """AdamW's epsilon."""
    weight_decay: float = Field(default=0.0, ge=0, le=10)
    """Weight decay; biases and layer norms have none."""
    warmup: float = Field(default=0.0, ge=0)
    """Warm-up: a share of the steps (below 1) or a number of steps (1 or more)."""
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    """Learning rate after the warm-up: linear or half a cosine to zero, or constant."""
    clip: float = Field(default=1.0, ge=0)
    """Clip the gradient to this norm; 0 means no limit."""
    epochs: float = Field(default=1.0, gt=0)
    """Passes over the data; may be a fraction."""
    max_steps: int | None = Field(default=None, ge=0)
    """Stop after N steps, whatever train.epochs asks for; 0 saves the encoder as it is."""
    eval_steps: int | None = Field(default=None, ge=0)
    """Steps between evaluations on the dev sets, the first before step 1; 0 means never. By default
    125, or a tenth of a shorter run."""
    save_steps: int | None = Field(default=None, ge=0)
    """Steps between checkpoints, by default eval_steps; 0 means only at the end. Each better dev
    score writes one too."""
    keep_checkpoints: bool = True
    """Keep the last checkpoints when the run is finished. Without them, a result that is lost later
    is trained again from the beginning."""
    save_rounds: bool = True
    """Keep the model of each round in ``rounds/N/model``."""
    log_steps: int | None = Field(default=None, ge=1)
    """Steps between lines of metrics.jsonl; by default 10, or 1 in runs under 100 steps."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Number format of the encoder; auto is bf16 where the hardware supports it, else fp32."""
    seed: int = Field(default=42, ge=0, le=2**63 - 1)
    """Random seed."""
    dev: tuple[Location, ...] = ("auto",)
    """Dev sets that select the checkpoint: files of graded pairs or of documents with titles,
    installed names, or none; auto uses the starter's pairs with the starter's data."""
    select: str | None = None
    """Dev score that selects the checkpoint, or mean; by default the mean of all."""
    report: tuple[str, ...] = ()
    """Additional reporters by name: csv, or with options csv:file=x.csv."""
    select_start: bool = False
    """Keep the start's weights where no later ones are better, and say at the end by how much the
    model is better or worse."""
    merge: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = ()
    """Average the chosen weights with the start's: shares of the chosen ones that are tried, 0.5 is
    the mean; the best dev score decides. Needs train.select_start."""
    patience: Patience | None = None
    """Stop after N evaluations without improvement; with a unit, after ``20000 steps`` or
    ``2 epochs``."""
    device: Annotated[str, AfterValidator(_checked_device)] = "auto"
    """auto, cpu, mps, cuda, or one of several GPUs: cuda:1."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """CPU threads; by default all of the machine."""

    @model_validator(mode="after")
    def _averages_need_a_start(self) -> TrainOptions:
        if self.merge and not self.select_start:
            raise ValueError("merge needs select_start = true, which scores the start")
        return self

    def steps(self, rows: int) -> int:
        """Return the optimiser steps of a round over so many rows."""
        per_epoch = math.ceil(rows / self.batch_size)
        of_epochs = max(1, math.ceil(per_epoch * self.epochs))
        return of_epochs if self.max_steps is None else self.max_steps


class ViewOptions(Options):
    """Where a view comes from and which branch encodes it."""

    branch: str = "online"
    """Branch that encodes it."""
    column: str | None = None
    """Column of its texts; by default that of its name if the data has it, else text."""
    prompt: str | None = None
    """Text before its training texts, or the name of one of the model's prompts; by default
    model.prompt. Saved with the model as query or document."""
    lists: Lists = "rows"
    """What becomes of lists of texts in its column: a row of the data for each text, a text drawn
    in each step, or all texts of the list."""
    weights: str | None = None
    """Column with the weights of its texts among the positives of their row; by default all count
    equally."""


class InferenceOptions(Options):
    """What encodes a text after training, where it differs from training."""

    pool: str | None = None
    """Row pooler; by default that of training."""
    slice: bool = False
    """Slice texts as in training."""
    max_length: int | None = Field(default=None, ge=2)
    """Longest row in tokens, also for dev scores and mining; by default the model's own limit or
    all that the encoder takes (with slices: model.max_length)."""
    normalize: bool = False
    """Scale vectors to length 1; by default as the model's folder says."""
    truncate_dim: int | None = Field(default=None, ge=1)
    """Numbers of a vector to keep; by default as the model's folder says, or all."""
    ensemble: tuple[str, ...] = ()
    """Branches whose encoders are saved too: a text's vector is joined of theirs and its own."""
    join: Literal["mean", "concat"] = "mean"
    """How vectors of an ensemble are joined: their mean, or end to end."""


CORE_OPTIONS: dict[str, type[Options]] = {
    "model": ModelOptions,
    "data": DataOptions,
    "train": TrainOptions,
    "inference": InferenceOptions,
}
"""The core's own options by their table, beside those of ``views``."""
