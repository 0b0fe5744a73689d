"""What training works with beside the parts of its run: it runs without, and tells less."""

from __future__ import annotations

from cse_cli.texts.table_cache import token_table
from cse_cli.training.collapse import CollapseDetector
from cse_core.training.trainer import Trainer


def attach_callbacks(trainer: Trainer) -> None:
    """Keep the tokens of large columns on disk, and look for a collapse."""
    trainer.rounds.rows.make_table = token_table
    trainer.watch = CollapseDetector(trainer.composition)
