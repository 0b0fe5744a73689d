"""Command line of pretrain.py: options, their bounds, and what they resolve to."""

import argparse
from pathlib import Path

import torch

from cse_core.errors import CseError

BOUNDS: dict[str, tuple[float, float]] = {
    "layers": (1, 48),
    "hidden": (8, 4096),
    "heads": (1, 64),
    "vocab_size": (64, 1_000_000),
    "mask_rate": (0.01, 0.9),
    "sentence_weight": (0.0, 100.0),
    "batch_tokens": (64, 10_000_000),
    "lr": (1e-8, 1.0),
    "warmup": (0.0, 0.99),
    "weight_decay": (0.0, 10.0),
    "clip": (1e-6, 1e6),
    "minutes": (0.001, 1e6),
    "steps": (1, 1e9),
    "tokens": (1, 1e15),
    "seed": (0, 2**63 - 1),
    "threads": (0, 1024),
    "checkpoint_minutes": (0.0, 1e6),
    "export_minutes": (0.0, 1e6),
    "log_steps": (1, 1e9),
}


def parse(description: str, arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line and check every bound.

    Raises:
        CseError: A value is out of bounds or options contradict each other.
    """
    p = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("texts", nargs="+", type=Path, help=".txt or .jsonl files (.gz allowed)")
    p.add_argument("--out", type=Path, required=True, help="folder of the run")
    p.add_argument("--init", type=Path, help="continue from this model folder (sizes, vocabulary)")
    p.add_argument("--sts", type=Path, help="folder with stsb.dev.tsv.gz, stsb.test.tsv.gz")
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--vocab-size", type=int, default=8192)
    p.add_argument(
        "--lengths",
        default="64:0.4,128:0.5,512:0.1",
        help="longest rows and their shares of the tokens (default %(default)s)",
    )
    p.add_argument("--mask-rate", type=float, default=0.2)
    p.add_argument(
        "--sentence-weight",
        type=float,
        default=0.0,
        help="weight of turning a row's mean state and [CLS] towards the sum of its words' vectors "
        "(default %(default)s)",
    )
    p.add_argument("--batch-tokens", type=int, default=8192)
    p.add_argument("--lr", type=float, default=1e-3, help="peak learning rate")
    p.add_argument("--warmup", type=float, default=0.03, help="share of the budget")
    p.add_argument("--weight-decay", type=float, default=0.01)
    p.add_argument("--clip", type=float, default=1.0, help="largest gradient norm")
    p.add_argument("--minutes", type=float, help="budget of wall time, over all resumed parts")
    p.add_argument("--steps", type=int, help="budget of optimiser steps")
    p.add_argument("--tokens", type=int, help="budget of training tokens")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--threads", type=int, default=0, help="CPU threads (0: as torch chooses)")
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--precision", choices=("auto", "bf16", "fp32"), default="auto")
    p.add_argument("--checkpoint-minutes", type=float, default=5.0)
    p.add_argument("--export-minutes", type=float, default=15.0)
    p.add_argument("--log-steps", type=int, default=50)
    options = p.parse_args(arguments)
    for name, (low, high) in BOUNDS.items():
        value = getattr(options, name)
        if value is not None and not low <= value <= high:
            flag = "--" + name.replace("_", "-")
            raise CseError(f"must lie between {low:g} and {high:g}", where=flag, value=value)
    if sum(value is not None for value in (options.minutes, options.steps, options.tokens)) != 1:
        raise CseError("no single budget", hint="give one of --minutes, --steps and --tokens")
    if options.hidden % options.heads:
        raise CseError(
            f"not a multiple of --heads {options.heads}", where="--hidden", value=options.hidden
        )
    return options


def row_shares(lengths: str, positions: int) -> dict[int, float]:
    """Return row length -> share of the tokens, from text such as `64:0.4,128:0.6`.

    Raises:
        CseError: The text is malformed, or a length is below 8 or beyond the model's positions.
    """
    try:
        pairs = (part.split(":") for part in lengths.split(","))
        shares = {int(length): float(share) for length, share in pairs}
    except ValueError:
        raise CseError(
            "malformed", where="--lengths", value=lengths, hint="write it as 64:0.4,128:0.6"
        ) from None
    if any(not 8 <= length <= positions or not share > 0 for length, share in shares.items()):
        raise CseError(
            f"lengths must lie between 8 and the model's {positions} positions, shares above 0",
            where="--lengths",
            value=lengths,
        )
    return shares


def usable_device(name: str) -> torch.device:
    """Return the device of that name.

    Raises:
        CseError: This machine has no such device.
    """
    try:
        return torch.zeros(1, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise CseError(
            f"not usable here ({reason})", where="--device", value=name, hint="use cpu or cuda"
        ) from error


def layer_dtype(device: torch.device, precision: str) -> torch.dtype:
    """Return the number format of the layers: bf16 where the processor has it, by default."""
    if precision != "auto":
        return torch.bfloat16 if precision == "bf16" else torch.float32
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    processor = Path("/proc/cpuinfo")
    flags = processor.read_text() if processor.is_file() else ""
    return torch.bfloat16 if "avx512_bf16" in flags or "amx_bf16" in flags else torch.float32
