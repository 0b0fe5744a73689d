"""Callbacks of training: token tables on disk, and the detection of a collapse."""

from __future__ import annotations

from cse_cli.texts.table_cache import token_table
from cse_cli.training.collapse import CollapseDetector
from cse_core.training.trainer import Trainer


def attach_callbacks(trainer: Trainer) -> None:
    """Keep the tokens of large columns on disk, and look for a collapse."""
    trainer.rounds.rows.make_table = token_table
    trainer.callback = CollapseDetector(trainer.composition)
