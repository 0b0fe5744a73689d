"""What records' functions may know of a run before anything heavy is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What is known before anything heavy is loaded; None: unknown.

    Attributes:
        model: The encoder's name.
        family: ``model_type`` of its configuration.
        hidden: Its hidden size.
        embedding: Size of its word embeddings.
        layers: Number of its layers.
        positions: Tokens of its longest row.
        mask_token: Whether its vocabulary has one.
        end_token: Whether its tokenizer ends texts with one, or has one.
        cased: Whether its vocabulary keeps capital letters.
        causal: Whether tokens see only those before them.
        either_direction: Whether it can also read in both directions, as some decoders can.
        backend: Name of the backend that reads it.
        origin: Name of the installed encoder that it is or was trained from.
        batch_size: Over all processes.
        steps: Optimiser steps of the run.
        rows: Rows of the data.
        columns: Columns of the data.
        precision: ``train.precision``.
        views: ``branch``, ``column``, ``role`` and ``lists`` of each view.
        branches: Options of each branch as plain values.
        stores: Options of each store.
        losses: Options of each loss.
        heads: Number of its attention heads.
        widths: How many numbers a vector has of each branch with a model of its own.
    """

    model: str
    family: str | None = None
    hidden: int | None = None
    embedding: int | None = None
    layers: int | None = None
    positions: int | None = None
    cased: bool | None = None
    causal: bool | None = None
    either_direction: bool = False
    mask_token: bool | None = None
    end_token: bool | None = None
    origin: str | None = None
    backend: str = ""
    batch_size: int = 0
    steps: int | None = None
    rows: int | None = None
    columns: tuple[str, ...] | None = None
    precision: str = "auto"
    views: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    branches: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    losses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    heads: int | None = None
    widths: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def step_rows(self) -> int:
        """Return the sentences of a step, 0 if unknown."""
        return min(self.batch_size, self.rows or self.batch_size)
