"""Checkpoints: safetensors and JSON, complete or not there, with everything that a step needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from shutil import rmtree
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from cse_core.errors import CseError, PartError
from cse_core.files import METRICS, RUN_FILE, atomic_folder, verify_checksums
from cse_engine.run.run_folder import RunFolder, place_of
from cse_engine.step.assembly import Assembly

TENSORS, STATE = "state.safetensors", "state.json"
RESTORE = "restore it from a copy, or start a new run"
"""Hint for a folder that nothing else can take the place of."""
ENCODER = "encoder"
_START = {"round": 0, "step": 0}
_GO_BACK = "delete this folder to resume from the one before it"


@dataclass
class Checkpoint:
    """What a run is made of between two steps: tensors by name, and everything else as JSON.

    The pairs of a round are kept in such a folder too. ``files`` are files of the run as they were
    then, by name: its settings, its metrics so far.
    """

    tensors: dict[str, Tensor] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write it to a folder, whole or not at all."""
        with atomic_folder(path) as folder:
            write_tensors(folder / TENSORS, self.tensors)
            (folder / STATE).write_text(json.dumps(self.values), encoding="utf-8")
            for name, content in self.files.items():
                (folder / name).write_bytes(content)

    @staticmethod
    def read(path: Path, hint: str = _GO_BACK, *, weights: bool = False) -> Checkpoint:
        """Read a folder; refuse one whose files are not all there as they were written.

        With ``weights`` the state of the optimiser is left out.

        Raises:
            CseError: With the folder, what is wrong with it, and the hint.
        """
        wrong = verify_checksums(path, STATE, TENSORS)
        if wrong is None:
            try:
                values = json.loads((path / STATE).read_text(encoding="utf-8"))
                others = [path / name for name in (RUN_FILE, METRICS) if (path / name).is_file()]
                files = {other.name: other.read_bytes() for other in others}
                kept = ("encoder.", "part.") if weights else ""
                with safe_open(path / TENSORS, "pt") as file:
                    names = [name for name in file.keys() if name.startswith(kept)]  # noqa: SIM118
                    read = {name: file.get_tensor(name) for name in names}
                return Checkpoint(read, values, files)
            except (OSError, SafetensorError, ValueError) as error:
                wrong = str(error)
        raise CseError(f"is not as it was written: {wrong}", where=str(path), hint=hint)

    def part(self, prefix: str) -> dict[str, Tensor]:
        """Return the tensors whose names begin with ``prefix.``, without it."""
        start = f"{prefix}."
        return {n[len(start) :]: v for n, v in self.tensors.items() if n.startswith(start)}


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors of any device and layout; those that share memory are copied."""
    written: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, value in tensors.items():
        plain = value.detach().cpu().contiguous()
        place = plain.untyped_storage().data_ptr()
        written[name] = plain.clone() if place in seen else plain
        seen.add(place)
    save_file(written, path)


def weights(assembly: Assembly) -> dict[str, Tensor]:
    """Return the weights that are trained: the encoder's and those of every module part."""
    shared = _shared_test(assembly)
    return {
        f"{prefix}.{name}": value
        for prefix, module in _modules(assembly)
        for name, value in module.state_dict().items()
        if prefix == ENCODER or not shared(value)
    }


def _shared_test(assembly: Assembly) -> Callable[[Any], bool]:
    """Return what tells whether a part's tensor is the encoder's, and in a checkpoint as such."""
    own = {weight.data_ptr() for weight in assembly.online.encoder.parameters()}
    return lambda value: (
        isinstance(value, Tensor) and value.layout is torch.strided and value.data_ptr() in own
    )


def _modules(assembly: Assembly) -> Iterator[tuple[str, nn.Module]]:
    yield ENCODER, assembly.online.encoder
    for path, module in assembly.modules():
        yield f"part.{path}", module


def restore_weights(assembly: Assembly, saved: Checkpoint) -> None:
    """Put weights back, and branches that are saved too; refuse those of another model or part."""
    shared = _shared_test(assembly)
    for prefix, module in _modules(assembly):
        now = module.state_dict() if prefix != ENCODER else {}
        there = {name: value for name, value in now.items() if shared(value)}
        try:
            module.load_state_dict(there | saved.part(prefix))
        except RuntimeError as error:
            part = assembly.parts.get(prefix.removeprefix("part."))
            where = prefix if part is None else f"{part.path} of {part.owner}"
            what = f"does not fit its checkpoint: {str(error).splitlines()[-1].strip(' .')}"
            hint = "a buffer must keep its shape; or install the version that the run started with"
            raise CseError(what, where=where, hint=hint) from None
    members = [f"branch.{name}" for name in assembly.composition.inference.ensemble]
    _restore_states(assembly, saved, members)


def averaged(start: Checkpoint, end: Checkpoint, share: float) -> Checkpoint:
    """Return the end with its encoder's weights averaged with the start's; ``share`` is the end's.

    Weights of other parts stay: heads and losses have none at the start that mean anything.
    """
    tensors = dict(end.tensors)
    for name, value in end.part("encoder").items():
        if value.is_floating_point():
            tensors[f"encoder.{name}"] = start.tensors[f"encoder.{name}"].lerp(value, share)
    return Checkpoint(tensors, end.values)


def part_states(assembly: Assembly) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the state of every part: tensors and JSON values.

    A state that cannot be saved raises a ``PartError``.
    """
    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {}
    shared = _shared_test(assembly)
    for path, part in assembly.parts.items():
        state, module = part.state_dict(), isinstance(part, nn.Module)
        if not isinstance(state, Mapping):
            what = f"promised tensors and JSON values by name, returned {type(state).__name__}"
            raise PartError(part, "state_dict", what)
        for name, value in state.items():
            dense = isinstance(value, Tensor) and value.layout is torch.strided
            try:
                if dense and not value.is_meta:
                    if module and shared(value):
                        continue
                    tensors[f"part.{path}.{name}"] = value
                elif module:
                    raise TypeError("a module keeps tensors alone")
                else:
                    values.setdefault(path, {})[name] = json.loads(json.dumps(value))
            except (TypeError, ValueError) as error:
                what = f"promised tensors and JSON values, but of {name!r} {error}"
                raise PartError(part, "state_dict", what) from error
    return tensors, values


def restore_assembly(assembly: Assembly, saved: Checkpoint) -> None:
    """Put weights and the state of parts back."""
    restore_weights(assembly, saved)
    _restore_states(assembly, saved, assembly.parts)


def _restore_states(assembly: Assembly, saved: Checkpoint, paths: Iterable[str]) -> None:
    """Put the state of parts back that are no modules."""
    for path in paths:
        part = assembly.parts[path]
        if not isinstance(part, nn.Module):
            tensors = {n: v.to(assembly.device) for n, v in saved.part(f"part.{path}").items()}
            part.load_state_dict({**tensors, **saved.values["parts"].get(path, {})})


def begin(folder: RunFolder, settings: bytes) -> None:
    """Write ``run.toml``, and before it the checkpoint of step 0 with nothing but a copy of it."""
    Checkpoint({}, dict(_START), {RUN_FILE: settings}).write(folder.checkpoint(0, 0))
    folder.write(RUN_FILE, settings)


def forget(folder: RunFolder, settings: bytes) -> None:
    """Remove the checkpoints of a finished run but for the empty one of step 0.

    The newest goes first, so that a run which is killed meanwhile goes on from one that is whole.
    """
    for path in reversed(folder.checkpoints()):
        if place_of(path) > (0, 0):
            rmtree(path)
    Checkpoint({}, dict(_START), {RUN_FILE: settings}).write(folder.checkpoint(0, 0))


def last_checkpoint(folder: RunFolder) -> tuple[Checkpoint, list[str]]:
    """Return the newest checkpoint that is whole, and what is wrong with newer ones."""
    wrong: list[CseError] = []
    for path in reversed(folder.checkpoints()):
        try:
            newest = Checkpoint.read(path)
            if place_of(path) != (newest.values.get("round"), newest.values.get("step")):
                raise CseError("is of another step or run", where=str(path), hint=_GO_BACK)
            return newest, [error.line() for error in wrong]
        except CseError as error:
            wrong.append(error)
    if wrong:
        raise wrong[0]
    hint = f"start again: cse train --recipe {quote(str(folder.recipe))} --out DIR"
    raise CseError("has no checkpoint", where="--resume", value=str(folder.path), hint=hint)
