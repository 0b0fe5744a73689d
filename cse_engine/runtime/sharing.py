"""Work that the processes of a run share: each makes a part, and an error in one ends all.

What is exchanged lies on the CPU and goes through gloo, whatever the processes train on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from cse_core.errors import CseError, ElsewhereError, describe
from cse_engine.runtime.distributed import cpu_group, rank_and_size

Made = TypeVar("Made")


def gather_rows(make: Callable[[], Tensor]) -> Tensor:
    """Return the rows ``[n, ...]`` that each process makes on the CPU, in rank order.

    Raises:
        ElsewhereError: If ``make`` failed in another process.
        CseError: If another process has ended.
    """
    rank, size = rank_and_size()
    mine, about = all_gather_objects(make, lambda rows: (tuple(rows.shape), rows.dtype))
    if size == 1:
        return mine
    # A process that made nothing may not know how wide rows are.
    (_, *wide), dtype = max(about, key=lambda item: item[0][0])
    counts = [shape[0] for shape, _ in about]
    ends = torch.tensor(counts).cumsum(0).tolist()
    whole = torch.empty(ends[-1], *wide, dtype=dtype)
    with _exchange():
        for other, (end, count) in enumerate(zip(ends, counts, strict=True)):
            part = whole[end - count : end]
            if other == rank:
                part.copy_(mine.reshape(part.shape))
            if count:
                dist.broadcast(part, src=other, group=cpu_group())
    return whole


def all_gather_objects(
    make: Callable[[], Made], about: Callable[[Made], Any] = lambda made: None
) -> tuple[Made, list[Any]]:
    """Return this process's object, and what ``about`` says in each process, in rank order.

    Raises:
        ElsewhereError: If ``make`` failed in another process; the first that failed raises its own
            error.
        CseError: If another process has ended.
    """
    rank, size = rank_and_size()
    if size == 1:
        made = make()
        return made, [about(made)]
    failed: Exception | None = None
    try:
        made = make()
        fact = about(made), ""
    except Exception as error:
        failed, fact = error, (None, _line(error))
    facts: list[Any] = [None] * size
    with _exchange():
        dist.all_gather_object(facts, fact, group=cpu_group())
    for other, (_, line) in enumerate(facts):
        if line and other == rank and failed is not None:
            raise failed
        if line:
            raise ElsewhereError(f"process {other} failed: {line}")
    return made, [fact for fact, _ in facts]


def run_on_rank_zero(work: Callable[[Callable[..., Any]], Made], call: Callable[..., Any]) -> Made:
    """Return the first process's result in every process; the others help meanwhile.

    Args:
        work: The first process's work. It gets ``together``, which makes ``call`` with the same
            arguments in every process and returns what it is in the first one.
        call: What the processes do together; it fails in all of them, as
            :func:`all_gather_objects` does, or in none.

    Raises:
        ElsewhereError: In the others, if the first process failed.
        CseError: If another process has ended.
    """
    rank, size = rank_and_size()
    if size == 1:
        return work(call)
    failed: Exception | None = None
    while rank:
        what, value = _from_first()
        if what == "made":
            return cast(Made, value)
        if what == "failed":
            raise failed or ElsewhereError(f"process 0 failed: {value}")
        try:
            call(*value)
        except Exception as error:  # which the first process had too
            failed = error

    def together(*arguments: Any) -> Any:
        _from_first("call", arguments)
        return call(*arguments)

    try:
        made = work(together)
    except BaseException as error:
        with suppress(CseError):
            _from_first("failed", _line(error))
        raise
    _from_first("made", made)
    return made


def _from_first(what: str = "", value: Any = None) -> tuple[str, Any]:
    """Broadcast the values of the first process; only that one passes them."""
    said = [(what, value)]
    with _exchange():
        dist.broadcast_object_list(said, src=0, group=cpu_group())
    return said[0]


def _line(error: BaseException) -> str:
    text = error.line() if isinstance(error, CseError) else describe(error)
    return " ".join(text.split())[:300]


@contextmanager
def _exchange() -> Iterator[None]:
    try:
        yield
    except RuntimeError:  # gloo's own words name sockets
        hint = "what it printed says why; start all processes again"
        raise CseError("another process of this run has ended", hint=hint) from None
