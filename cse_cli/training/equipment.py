"""What training works with beside the parts of its run: it runs without, and tells less."""

from __future__ import annotations

import torch

from cse_cli.texts.table_cache import token_table
from cse_cli.training.collapse import CollapseDetector
from cse_cli.training.memory import memory_warning
from cse_cli.training.sharding import shard_as_asked
from cse_core.runtime.distributed import rank_and_size
from cse_core.training.trainer import Trainer


def attach_callbacks(trainer: Trainer) -> None:
    """Keep the tokens of large columns on disk, look for a collapse, ask the GPU for memory.

    Where the run asks for it, its encoder is sharded.

    Raises:
        CseError: If it cannot be.
    """
    trainer.rounds.rows.make_table = token_table
    trainer.watch = CollapseDetector(trainer.composition)
    shard_as_asked(trainer.assembly, trainer.precision)
    size = rank_and_size()[1]
    if trainer.composition.train.shard != "none" and size == 1:
        trainer.reporter.message("train.shard: one process keeps the whole encoder")
    device = trainer.assembly.device
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        line = memory_warning(trainer.composition, free, processes=size, on_gpu=True)
        if line is not None:
            trainer.reporter.warning(line)
