"""A command under torchrun: the first process runs it, the others help to encode."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from cse_cli.plugins.installed import Installed, installed
from cse_core.errors import CseError

if TYPE_CHECKING:
    from cse_cli.models.saved_model import SentenceModel
    from cse_engine.step.sentence_encoder import SentenceEncoder

Made = TypeVar("Made")


_LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
"""Variables of mpirun with the number of processes."""
_OF_SRUN = ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")


@dataclass
class _Team:
    """What a process of a shared command knows."""

    plugins: Installed | None = None
    together: Callable[..., Any] | None = None
    """In the first process: calls a function in every one."""
    model: SentenceModel | None = None
    """The one that was loaded last, in every process."""


_team = _Team()


def check_launch() -> None:
    """Refuse variables of torchrun that make no sense, and other launchers of several processes.

    Those say less than the processes need to find each other: each would do all of the work alone.
    """
    batch_script = os.environ.get("ENVIRONMENT") == "BATCH" and "SLURM_STEP_ID" not in os.environ
    by_srun = "SLURM_PROCID" in os.environ and not batch_script
    started = [name for name in (*_LAUNCHERS, *_OF_SRUN * by_srun) if name in os.environ]
    if started and "WORLD_SIZE" not in os.environ and (count := _number(started[0], 1)) > 1:
        raise CseError(
            f"a launcher started {count} processes, and each would do all of the work",
            where=started[0],
            value=count,
            hint=f"launch with `torchrun --nproc-per-node {count} --no-python cse …`; "
            "to run each process on its own, set WORLD_SIZE=1",
        )
    rank, size = _number("RANK", 0), _number("WORLD_SIZE", 1, least=1)
    hint = "set both as torchrun does, or unset both for one process"
    if rank >= size:
        what = f"must be from 0 to {size - 1}, because WORLD_SIZE is {size}"
        raise CseError(what, where="RANK", value=rank, hint=hint)
    if size > 1 and "RANK" not in os.environ:
        raise CseError("is not set, but WORLD_SIZE is", where="RANK", hint=hint)
    _number("LOCAL_RANK", 0)
    _number("CSE_JOIN_SECONDS", 30, least=1)


def _number(name: str, default: int, least: int = 0) -> int:
    text = os.environ.get(name, "").strip() or str(default)
    if text.isascii() and text.isdecimal() and len(text) < 6 and int(text) >= least:
        return int(text)
    what = f"must be an integer from {least} to 99999"
    raise CseError(what, where=name, value=text, hint="unset it, or start with torchrun")


def is_first() -> bool:
    """Tell whether this is the first of several processes, which alone prints and writes."""
    return int(os.environ.get("RANK") or 0) == 0


def shared(command: Callable[..., None]) -> Callable[..., None]:
    """Let the first of several processes alone do a command, with the others' help.

    A failure in one process ends all; the one that failed says why.

    Raises:
        CseError: If a launcher's variables make no sense, or the processes do not find each other.
        ElsewhereError: If another process failed.
    """

    @wraps(command)
    def run(context: typer.Context, **options: Any) -> None:
        check_launch()
        if int(os.environ.get("WORLD_SIZE") or 1) == 1:
            command(context=context, **options)
            return
        import torch

        from cse_engine.runtime.distributed import join
        from cse_engine.runtime.sharing import run_on_rank_zero

        join(torch.device("cpu"))  # what they exchange lies there
        _team.plugins = installed(context)

        def work(together: Callable[..., Any]) -> None:
            _team.together = together
            command(context=context, **options)

        try:
            run_on_rank_zero(work, lambda function, *given: function(*given))
        finally:
            _team.together = _team.model = None

    return run


def helpers() -> int:
    """Count the other processes that help with this command."""
    if _team.together is None:
        return 0
    from cse_engine.runtime.distributed import rank_and_size

    return rank_and_size()[1] - 1


def load_in_all(name: str, options: dict[str, Any]) -> SentenceModel:
    """Load a model in every process of the command; return that of this one."""
    assert _team.together is not None, "other processes help with this command"
    model: SentenceModel = _team.together(_load, name, options)
    return model


def _load(name: str, options: dict[str, Any]) -> SentenceModel:
    from cse_cli.models.saved_model import load
    from cse_cli.terminal.progress import libraries_quiet
    from cse_engine.runtime.device import resolve_device
    from cse_engine.runtime.distributed import join
    from cse_engine.runtime.sharing import all_gather_objects

    _team.model = None  # the memory of the one before

    def make() -> SentenceModel:
        device = str(join(resolve_device(options["device"])))
        assert _team.plugins is not None
        with libraries_quiet():
            return load(name, _team.plugins.registry, **{**options, "device": device})

    _team.model = all_gather_objects(make)[0]
    return _team.model


def by_all(model: SentenceModel, function: Callable[..., Made], *arguments: Any) -> Made:
    """Return ``function(model, shared, *arguments)``, which every process calls with its own model.

    The function is one of a module; ``shared`` is whether its encoder calls are, as
    ``SentenceEncoder.encode`` takes it. The model may have another ``max_length`` than when it was
    loaded.
    """
    loaded, asked = _team.model, model.sentence_encoder
    if _team.together is None or loaded is None or not _same(loaded.sentence_encoder, asked):
        return function(model, False, *arguments)
    settings = (asked.max_length, asked.tokenizer.prompt)
    made: Made = _team.together(_by_own, function, settings, arguments)
    return made


def _same(one: SentenceEncoder, other: SentenceEncoder) -> bool:
    """Tell whether two encode in the same way, but for where they cut and their prompt."""
    parts = [(side.encoder, side.tokenizer.hf, side.pooler, side.slicer) for side in (one, other)]
    return parts[0] == parts[1] and one.heads == other.heads


def _by_own(
    function: Callable[..., Made], settings: tuple[int, str], arguments: tuple[Any, ...]
) -> Made:
    assert _team.model is not None, "each process has loaded it"
    encoder, (longest, prompt) = _team.model.sentence_encoder, settings
    tokenizer = encoder.tokenizer.with_prompt(prompt)
    encoder = replace(encoder, max_length=longest, tokenizer=tokenizer)
    return function(replace(_team.model, sentence_encoder=encoder), True, *arguments)
