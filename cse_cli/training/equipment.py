"""What training works with beside the parts of its run: it runs without, and tells less."""

from __future__ import annotations

import torch

from cse_cli.texts.table_cache import token_table
from cse_cli.training.collapse import CollapseWatch
from cse_cli.training.memory import memory_warning
from cse_core.runtime.distributed import world
from cse_core.training.trainer import Trainer


def equip(trainer: Trainer) -> None:
    """Keep the tokens of large columns on disk, look for a collapse, ask the GPU for memory."""
    trainer.rounds.rows.make_table = token_table
    trainer.watch = CollapseWatch(trainer.composition)
    device = trainer.assembly.device
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        size = world()[1]
        line = memory_warning(trainer.composition, free, processes=size, on_gpu=True)
        if line is not None:
            trainer.reporter.warning(line)
