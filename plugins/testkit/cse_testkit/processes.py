"""The promise that two processes train as one does, asked of many parts with one start of two."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from multiprocessing import get_all_start_methods, set_forkserver_preload
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.spawn import ProcessRaisedException, start_processes

from cse_core.errors import CseError
from cse_core.records import Kind
from cse_testkit.completion import complete
from cse_testkit.promises import installed_registry
from cse_testkit.runs import Rig
from cse_testkit.watching import Watch

Parts = Sequence[tuple[Kind, str]]
Given = Mapping[str, Mapping[str, Any]]
"""Attributes of a part's suite by its path, of which these are read:"""
READ = ("options", "sets", "columns")
STARTS = 2
"""How often the processes are started where they do not find each other."""
SECONDS = 120
"""How long a process waits for the other, at the begin and in a step."""
_METHOD = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
# torch and the tiny encoder's model are imported once, whatever is started how often.
set_forkserver_preload([__name__, "transformers.models.bert.modeling_bert"])


def difference(parts: Parts, given: Given) -> str:
    """Describe how two processes differ from one, the part's path first; "" where they do not.

    Each part trains some steps without dropout, the last on a single row, which one process has
    alone. Both processes must end with the losses and the part's state of one process; of each
    other, where rows draw for themselves, as several processes draw for other rows. What the core
    refuses is not a difference.

    Args:
        parts: Kind and name of each.
        given: Attributes of their suites.
    """
    plain = {path: {name: of[name] for name in READ if name in of} for path, of in given.items()}
    with tempfile.TemporaryDirectory(prefix="cse-processes-") as folder:
        for number in range(STARTS):
            work = (str(Path(folder, str(number))), list(parts), plain)
            Path(work[0]).mkdir()
            try:
                start_processes(_work, work, nprocs=2, start_method=_METHOD)  # type: ignore[no-untyped-call]
                folder = work[0]
                break
            except ProcessRaisedException as error:
                said = str(error).strip().splitlines()[-1]
                if "Gloo" not in said or number == STARTS - 1:
                    return said.removeprefix("RuntimeError: ")
        two = [torch.load(Path(folder, f"{rank}.pt"), weights_only=False) for rank in range(2)]
        one = _trained(parts, plain)
    for path, (wanted, drawn) in one.items():
        for rank, values in enumerate(output[path][0] for output in two):
            if wanted and values:
                like, whose = (two[0][path][0], "the other") if drawn else (wanted, "one process")
                for name in dict.fromkeys((*like, *values)):
                    if not _close(like.get(name), values.get(name)):
                        return f"{path}: in process {rank} {name} is not that of {whose}"
    return ""


def _work(rank: int, folder: str, parts: Parts, given: Given) -> None:
    """Train with every part as one of two processes, and leave what came of it in the folder."""
    import torch.distributed as dist

    torch.set_num_threads(1)
    wait = timedelta(seconds=SECONDS)
    store = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2, timeout=wait)
    torch.save(_trained(parts, given), Path(folder, f"{rank}.pt"))
    dist.destroy_process_group()


def _trained(parts: Parts, given: Given) -> dict[str, tuple[dict[str, Any], bool]]:
    """Return by path losses and state, none where it is refused, and whether rows draw."""
    results = {}
    for kind, name in parts:
        label = name.rpartition("/")[2]
        path = f"{kind}.{label}"
        values = given.get(path, {})
        options = {(kind, label): values.get("options", {})}
        kept: dict[str, Any] = {}
        watch = Watch(compare=False)
        try:
            needed = complete(installed_registry(), [(kind, name)], options)
            corpus = needed.corpus(columns=values.get("columns", ()))
            sets = ("model.dropout=0", "train.lr=1e-4", *values.get("sets", ()))
            made = needed.compose(corpus, *sets)
            rig = Rig(made).without_dropout()
            watch.see(rig.session.parts.values(), rig.session.encoder())
            for rows in (4, 3, 1):
                rig.step(1, rows=rows)
            state = rig.session.parts[path].state_dict().items()
            kept = {f"the loss of step {n + 1}": torch.tensor(v) for n, v in enumerate(rig.losses)}
            kept |= {f"its state {name}": value for name, value in state}
        except CseError:
            pass
        except Exception as error:
            said = " ".join(f"{path}: a step raised {type(error).__name__}: {error}".split())
            raise RuntimeError(said) from error
        drawn = (shared for call in watch.calls for _, shared in call.drawn)
        results[path] = kept, not all(drawn)
    return results


def _close(one: Any, other: Any) -> bool:
    """Check whether two values are equal, numbers as far as sums in another order allow."""
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return bool(one == other)
    if one.shape != other.shape or not one.is_floating_point():
        return torch.equal(one, other)
    return bool((one - other).norm() <= 1e-2 * one.norm().clamp_min(0.1))
