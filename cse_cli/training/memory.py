"""Whether a step fits into memory, as far as the plan can tell; imports no torch."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from cse_core.recipes.composition import Composition

VOCABULARY = 30_000
"""Words of a table whose size the plan does not know."""
_HEAD = 64
"""Numbers of an attention head where the plan does not know how many heads there are."""


def needed(
    composition: Composition,
    processes: int,
    *,
    on_gpu: bool,
    chunk: int | None,
    again: bool,
    shard: bool = False,
) -> int | None:
    """Return the bytes that a process holds at least when the backward pass of a step begins.

    Counted are weights with gradients and AdamW's moments, and what a BERT's layers keep of each
    token: 68 bytes times the width in fp32, 40 in bf16 or fp16, and on a CPU 10 or 6 times the
    heads for each token of the row (docs/scale.md). Texts count as long as ``model.max_length``.

    Args:
        composition: What is trained.
        processes: Among which the batch is shared.
        on_gpu: Whether attention keeps no scores.
        chunk: ``train.chunk_size``.
        again: ``model.gradient_checkpointing``.
        shard: Whether the processes share the weights; a layer that is whole meanwhile is left out.

    Returns:
        None where the encoder's size is not known.
    """
    facts, length = composition.facts, composition.model.max_length
    if facts.hidden is None or facts.layers is None:
        return None
    width, layers = facts.hidden, facts.layers
    wide = composition.train.precision == "fp32"
    of_layer = (68 if wide else 40) * width
    if not on_gpu:
        of_layer += (10 if wide else 6) * (facts.heads or width // _HEAD) * length
    rows = -(-composition.train.batch_size // processes)
    passes = (p for p in composition.passes if p.gradient and not p.off)
    tokens = min(rows, chunk or rows) * length * max((len(p.views) for p in passes), default=0)
    kept = 4 * width * layers + of_layer if again else of_layer * layers
    weights = 16 * (12 * width * width * layers + VOCABULARY * width)
    return tokens * kept + weights // (processes if shard else 1)


def memory_warning(
    composition: Composition, free: int | None, *, processes: int = 1, on_gpu: bool = False
) -> str | None:
    """Return what to type where a step may need more than the ``free`` bytes of a process."""
    train, again = composition.train, composition.model.gradient_checkpointing
    shard = train.shard == "full"
    count = partial(needed, composition, processes, on_gpu=on_gpu)

    def fits(chunk: int | None, again: bool, shard: bool = shard) -> bool:
        most = count(chunk=chunk, again=again, shard=shard)
        return most is None or free is None or most <= free

    if fits(train.chunk_size, again):
        return None
    assert free is not None
    most = count(chunk=train.chunk_size, again=again, shard=shard) or 0
    rows = -(-train.batch_size // processes)
    sizes = [
        2**power for power in range(20, -1, -1) if 2**power < min(rows, train.chunk_size or rows)
    ]
    fitting = next((size for size in sizes if fits(size, again)), None)
    advice = [f"--train.chunk_size {fitting}"] if fitting else []
    if not again and fits(train.chunk_size, True):
        advice.append("--model.gradient_checkpointing true")
    if processes > 1 and not shard and fits(train.chunk_size, again, True):
        advice.append("--train.shard full")
    advice = advice or ["a shorter --model.max_length, or a smaller model"]
    return (
        f"a step may need {most / 1e9:.1f} GB, with texts as long as model.max_length, and "
        f"{free / 1e9:.1f} GB are free: {', or '.join(advice)}"
    )


def free_memory() -> int | None:
    """Return the bytes that programs can still have, or this group of them; None if unknown."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [int(s.split()[1]) * 1024 for s in lines if s.startswith("MemAvailable:")]
    except (OSError, ValueError, IndexError):
        pass
    group = Path("/sys/fs/cgroup")
    try:
        most = (group / "memory.max").read_text(encoding="ascii").strip()
        if most != "max":
            found.append(int(most) - int((group / "memory.current").read_text(encoding="ascii")))
    except (OSError, ValueError):
        pass
    return min(found, default=None)


def planned_warning(composition: Composition) -> str | None:
    """Return the warning for a run on the CPU; of a GPU only the run itself can ask."""
    device = composition.train.device
    if device != "cpu" and not (device == "auto" and not Path("/proc/driver/nvidia").exists()):
        return None
    size = os.environ.get("WORLD_SIZE", "1")
    processes = int(size) if size.isdecimal() and int(size) else 1
    here = os.environ.get("LOCAL_WORLD_SIZE", size)
    sharing = int(here) if here.isdecimal() and int(here) else processes
    free = free_memory()
    return memory_warning(
        composition, None if free is None else free // sharing, processes=processes
    )
