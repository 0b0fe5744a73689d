"""The promise that two processes train as one does, asked of many parts with one start of two."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.spawn import start_processes

from cse_core.errors import CseError
from cse_core.records import Kind
from cse_testkit.completion import complete
from cse_testkit.runs import Rig, installed_registry
from cse_testkit.tiny import TEACHER, shared_encoder

Given = Mapping[str, Any]
"""Attributes of a part's suite, of which ``options``, ``sets`` and ``columns`` are read."""
REFUSED = "refused: "
SECONDS = 60
"""How long a process waits for the other in a step."""


def differences(parts: Sequence[tuple[Kind, str]], given: Mapping[str, Given]) -> dict[str, str]:
    """Return by path what two processes do otherwise than one; parts that do not are left out.

    Each part trains some steps without dropout, the last on a single row, which one process has
    alone. Both processes must end with the losses and the part's state of one process; of each
    other, where rows draw for themselves, as several processes draw for other rows. A refusal by
    the core is no difference.

    Args:
        parts: Kind and name of each.
        given: Attributes of their suites by path.
    """
    with tempfile.TemporaryDirectory(prefix="cse-processes-") as folder:
        read = ("options", "sets", "columns")
        plain = {path: {k: of[k] for k in read if k in of} for path, of in given.items()}
        work = (folder, list(parts), plain)
        started = start_processes(  # type: ignore[no-untyped-call]
            _work, work, nprocs=2, join=False, start_method="spawn"
        )
        alone = dict(_results(Path(folder, "alone"), parts, given, watch=True))
        while not started.join():
            pass
        both = [torch.load(Path(folder, f"{rank}.pt"), weights_only=False) for rank in range(2)]
    found = {}
    for path, (wanted, drawn) in alone.items():
        results = [each.get(path, ("gloo", False))[0] for each in both]
        texts = [each for each in results if isinstance(each, str)]
        if isinstance(wanted, str) or [each.startswith(REFUSED) for each in texts] == [True, True]:
            continue  # its suite says why one process cannot; two are refused
        if texts:
            # That of the process that ended first, not that its end is what the other found.
            first = min(texts, key=lambda text: "gloo" in text)
            found[path] = f"one of two processes: {first}"
            break
        wanted = results[0] if drawn else wanted
        for rank, (losses, state) in enumerate(results):
            there = "that of the other" if drawn else "that of one process"
            for name, one, other in _compared(wanted, (losses, state)):
                if not _close(one, other):
                    found.setdefault(path, f"in process {rank} {name} is not {there}")
    return found


def _work(rank: int, folder: str, parts: list[tuple[Kind, str]], given: dict[str, Given]) -> None:
    """Train with every part as one of two processes, and leave what came of it in the folder."""
    import torch.distributed as dist

    torch.set_num_threads(1)
    for cased in (False, True):  # transformers writes no encoder in the second of two processes
        shared_encoder(cased=cased)
    shared_encoder(hidden=TEACHER)
    wait = timedelta(seconds=SECONDS)
    store = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2, timeout=wait)
    results = {}
    for path, (came, drawn) in _results(Path(folder), parts, given):
        results[path] = came, drawn
        if isinstance(came, str) and not came.startswith(REFUSED):
            break  # the other waits for it; what is between them is of no use
    torch.save(results, Path(folder, f"{rank}.pt"))
    dist.destroy_process_group()


def _results(
    folder: Path,
    parts: Sequence[tuple[Kind, str]],
    given: Mapping[str, Given],
    watch: bool = False,
) -> Iterator[tuple[str, tuple[Any, bool]]]:
    """Yield of each part its path, the losses and its state or what was raised, and draws."""
    for kind, name in parts:
        own = name.rpartition("/")[2]
        path = f"{kind}.{own}"
        values = given.get(path, {})
        try:
            options = {(kind, own): values.get("options", {})}
            needed = complete(installed_registry(), [(kind, name)], options)
            corpus = needed.corpus(columns=values.get("columns", ()))
            sets = ("model.dropout=0", "train.lr=1e-4", *values.get("sets", ()))
            made = needed.compose(corpus, *sets)
            rig = Rig(made, corpus, watch=watch, folder=folder / path).without_dropout()
            for rows in (4, 4, 3, 1):
                rig.step(1, rows=rows)
        except CseError as error:
            yield path, (f"{REFUSED}{error.line()}", False)
        except Exception as error:
            yield path, (f"a step raised {type(error).__name__}: {error}", False)
        else:
            drawn = any(not shared for call in rig.watch.calls for _, shared in call.drawn)
            yield path, ((rig.losses, dict(rig.assembly.parts[path].state_dict())), drawn)


def _compared(one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    for number, losses in enumerate(zip(one[0], other[0], strict=True)):
        yield f"the loss of step {number + 1}", torch.tensor(losses[0]), torch.tensor(losses[1])
    for name in dict.fromkeys((*one[1], *other[1])):
        yield f"its state {name}", one[1].get(name), other[1].get(name)


def _close(one: Any, other: Any) -> bool:
    """Tell whether two values are equal, numbers as far as sums in another order allow."""
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return bool(one == other)
    if one.shape != other.shape or not one.is_floating_point():
        return torch.equal(one, other)
    return bool((one - other).norm() <= 1e-2 * one.norm().clamp_min(0.1))
