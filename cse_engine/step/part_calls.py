"""Calls of parts: what comes back keeps the contract, or the part is named.

Types, shapes and writes into what a part was given are looked at in every call, which costs
microseconds. Whether numbers are finite is noted on the device and read when metrics are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from cse_core.errors import PartError, describe
from cse_core.parts import Head, Part
from cse_core.types import (
    Batch,
    Embeddings,
    LossOutput,
    Negatives,
    Positives,
    Round,
    TokenBatch,
    TokenStates,
    TokenSums,
    View,
)

MAX_NUMBERS = 4_000_000
"""Larger results, such as a long queue's, are not looked through for numbers that are not finite:
what they hold was looked at when it was made."""
Bad = tuple[int, str, str]
"""Step, what made a number that is not finite, and its method."""
CORE_NAMES = re.compile(r"step|round|lr|loss|gradient_norm|\w+_per_second|batch\..*")
"""What ``ctx.log`` cannot write over."""


class PartCalls:
    """Calls parts, and sees that they keep their contract; ``look`` sees each call of a step.

    Without ``device`` it does not see where tensors are.
    """

    def __init__(self, device: torch.device | None = None) -> None:
        self.look: Callable[[Part, str, tuple[Any, ...], Any], None] | None = None
        self._type = device and device.type
        self._calling: tuple[Any, str] = (None, "")
        self._made: list[tuple[str, str]] = []
        self._flags: list[Tensor] = []
        self._steps: list[tuple[int, list[tuple[str, str]], Tensor]] = []

    def __call__(self, part: Any, method: str, *given: Any) -> Any:
        """Return what a part's method returns.

        What the contract does not promise, and writing to what was given, raise a ``PartError``.
        """
        came = self._checked(part, method, getattr(part, method), given)
        for tensor in _numbers(came):
            self.note(part.path, method, tensor)
        if self.look is not None:
            self.look(part, method, given, came)
        return came

    def watch(self, part: Any) -> None:
        """See what a part returns where others than the step call it."""
        if isinstance(part, Head) and isinstance(part, nn.Module):  # of which branches have copies
            part.register_forward_hook(lambda _, *seen: self._see(part, "forward", *seen))
        for method in _BESIDE_STEPS:
            if function := getattr(part, method, None):
                setattr(part, method, self._watched(part, method, function))

    def _watched(self, part: Any, method: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: self._checked(part, method, function, given)

    def _checked(
        self, part: Any, method: str, function: Callable[..., Any], given: tuple[Any, ...]
    ) -> Any:
        read = list(_read(given))
        versions = [tensor._version for tensor in read]
        graded, before = torch.is_grad_enabled(), self._calling
        self._calling = (part, method)
        try:
            came = function(*given)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise PartError(part, method, f"takes other arguments: {error}") from error
        finally:
            self._calling = before
        if torch.is_grad_enabled() is not graded:
            torch.set_grad_enabled(graded)
            raise PartError(part, method, "left gradients switched on or off")
        if [tensor._version for tensor in read] != versions:
            raise PartError(part, method, "wrote into a tensor that it was given; return a new one")
        self._see(part, method, given, came)
        return came

    def _see(self, part: Any, method: str, given: tuple[Any, ...], came: Any) -> None:
        """Refuse what the contract does not promise."""
        called = {Batch: "loss", dict: "transform"} if method == "__call__" else {}
        words, kinds, promise = _PROMISES[called.get(type(given[0] if given else None), method)]
        wrong = None if isinstance(came, kinds) else f"promised {words}, returned {_kind(came)}"
        try:
            wrong = wrong or promise(part, came, *given)
            for value in () if wrong else _numbers(came):
                here = self._type in (None, value.device.type) or not value.is_floating_point()
                if value.is_complex() or not here:  # indices may lie on the CPU
                    wrong = f"promised real numbers on {self._type}, returned {_kind(value)}"
        except Exception as error:  # something in it cannot be looked at
            wrong = f"promised {words}, returned {_kind(came)} that is none: {describe(error)}"
        if wrong:
            raise PartError(part, method, wrong)

    def log(self, logged: dict[str, Tensor | float], name: str, value: Tensor | float) -> None:
        """Take a number that a part logs; refuse anything else, and names of the core."""
        part, method = self._calling
        if CORE_NAMES.fullmatch(name):
            what = f"logs {name}, a name of the core: use {part.name}.{name}"
            raise PartError(part, method, what)
        if isinstance(value, Tensor) and value.numel() == 1 and not value.is_complex():
            self.note(part.path, f"{method}, which logs {name},", value)
        elif not (isinstance(value, Real) and isfinite(value)):
            raise PartError(part, method, f"logs {_kind(value)} as {name}; log one finite number")
        logged[name] = value

    def note(self, path: str, method: str, values: Tensor) -> None:
        """Note on the device whether values are finite; nothing waits for it."""
        if values.is_floating_point() and values.numel() <= MAX_NUMBERS:
            self._made.append((path, method))
            self._flags.append(~torch.isfinite(values.detach()).all())

    def end_step(self, step: int) -> None:
        """Keep what was noted in a step, whose number this is."""
        if self._flags:
            self._steps.append((step, self._made, torch.stack(self._flags)))
        self._made, self._flags = [], []

    def first_bad(self) -> Bad | None:
        """Return what was the first to make a number that is not finite since the last call."""
        steps, self._steps = self._steps, []
        if not steps or not bool(torch.cat([flags for _, _, flags in steps]).any()):
            return None
        step, made, flags = next(found for found in steps if bool(found[2].any()))
        return step, *made[int(flags.nonzero()[0])]


def _views(part: Part, came: list[View], rows: Tensor, *_: Any) -> str | None:
    for view in came:
        count = len(rows if view.owner is None else view.owner)
        found = view.tokens.rows if view.tokens is not None else len(view.texts or ())
        if found != count:
            return f"promised {count} texts, returned {found} as {view.name}"
    return None


def _ordered(part: Part, came: Tensor, rows: Any, *_: Any) -> str | None:
    if torch.equal(came.sort().values, torch.arange(len(rows))):
        return None
    return f"promised each of {len(rows)} rows once, returned {_kind(came)}"


def _changed(part: Part, came: Any, x: Any, *_: Any) -> str | None:
    """Check what an augmenter made of texts, tokens or embeddings."""
    if isinstance(x, Tensor):
        if came.shape != x.shape or not came.is_floating_point():
            return f"promised {_kind(x)}, returned {_kind(came)}"
    elif isinstance(x, TokenBatch):
        if not torch.equal(came.owner, x.owner):
            return "promised tokens of the same rows in the same order, returned " + _kind(came)
    elif not (isinstance(came, list) and len(came) == len(x)):
        return f"promised {len(x)} texts, returned {_kind(came)}"
    elif not all(isinstance(text, str) for text in came):
        return "promised texts, returned a list that holds something else"
    return None


def _transformed(
    part: Part, came: Mapping[str, Embeddings], views: Mapping[str, Embeddings], *_: Any
) -> str | None:
    for name, changed in came.items():
        wanted = list(views[name].vectors.shape) if name in views else "no view"
        if wanted != list(changed.vectors.shape):
            return f"promised {wanted}, returned {_kind(changed.vectors)} as {name}"
    return None


def _mined(part: Part, came: Mapping[str, Positives], batch: Batch, *_: Any) -> str | None:
    count, dimension = batch.anchors.shape
    for name, group in came.items():
        shape = tuple(group.vectors.shape)
        if len(shape) != 3 or (shape[0], shape[2]) != (count, dimension):
            return f"promised vectors [{count}, P, {dimension}], returned {list(shape)} as {name}"
        if group.weights is not None and group.weights.shape != shape[:2]:
            found = list(group.weights.shape)
            return f"promised weights {list(shape[:2])}, returned {found} as {name}"
    return None


def _candidates(part: Part, came: Negatives | None, batch: Batch, *_: Any) -> str | None:
    if came is None:
        return None
    if came.vectors.dim() != 2:
        return f"promised vectors [N, D], returned {_kind(came.vectors)}"
    return _columns(came, len(batch.anchors))


def _columns(came: Negatives, anchors: int) -> str | None:
    count = len(came.vectors)
    for name, shape in (("row", (count,)), ("age", (count,)), ("mask", (anchors, count)),
                        ("log_weights", (anchors, count))):  # fmt: skip
        found = getattr(came, name)
        if found.shape != shape:
            return f"promised {name} {list(shape)}, returned {_kind(found)}"
    if came.mask.dtype is not torch.bool:
        return f"promised a mask of bool, returned {came.mask.dtype}"
    return None


def _weighed(part: Part, came: Negatives, given: Negatives, batch: Batch, *_: Any) -> str | None:
    if came.vectors.shape != given.vectors.shape:
        return f"promised the {len(given)} negatives that it was given, returned {_kind(came)}"
    return _columns(came, len(batch.anchors))


def _lost(part: Part, came: LossOutput, batch: Batch, *_: Any) -> str | None:
    for value in (came.value, *came.parts.values()):
        if value.shape != ():
            return f"promised a scalar tensor, returned {_kind(value)}"
    if torch.is_grad_enabled() and batch.anchors.requires_grad and not came.value.requires_grad:
        return "returned a value without gradient: nothing would learn from it"
    return None


def _summed(part: Part, came: TokenSums, views: Mapping[str, TokenStates], *_: Any) -> str | None:
    for value in (came.total, came.count, *came.parts.values()):
        if value.shape != ():
            return f"promised scalar tensors, returned {_kind(value)}"
    learns = torch.is_grad_enabled() and any(len(v.states) for v in views.values())
    if learns and not came.total.requires_grad:
        return "returned a total without gradient: nothing would learn from it"
    return "returned a count with gradient; detach it" if came.count.requires_grad else None


def _committed(part: Part, came: Any, *_: Any) -> str | None:
    """Check that nothing that a part keeps holds the graph of a step."""
    for name, value in vars(part).items():
        if isinstance(value, Tensor) and value.grad_fn is not None:
            return f"keeps the graph of a step alive in {name}; detach what is kept"
    return None


def _pooled(part: Part, came: Tensor, given: Any, *_: Any) -> str | None:
    """Check what a pooler made of states, or a head of vectors; the encoder sees the shape."""
    learns = torch.is_grad_enabled() and getattr(given, "last", given).requires_grad
    if learns and not came.requires_grad:
        return "returned vectors without gradient: nothing would learn from them"
    return None


def _wrapped(part: Part, came: None, model: nn.Module) -> str | None:
    trained = any(parameter.requires_grad for parameter in model.parameters())
    return None if trained else "left no weight of the encoder to train"


def _measured(part: Part, came: Mapping[str, float], *_: Any) -> str | None:
    wrong = [name for name, value in came.items() if not isinstance(value, Real)]
    return f"promised a number as {wrong[0]}, returned {_kind(came[wrong[0]])}" if wrong else None


def _nothing_more(*_: Any) -> None:
    return None


_PROMISES: dict[str, tuple[str, Any, Callable[..., str | None]]] = {
    "views": ("a list of View", list, _views),
    "__call__": ("it changed", object, _changed),
    "order": ("the order of the rows", Tensor, _ordered),
    "transform": ("Embeddings by view", Mapping, _transformed),
    "loss": ("a LossOutput", LossOutput, _lost),
    "sums": ("TokenSums", TokenSums, _summed),
    "mine": ("groups of Positives by name", Mapping, _mined),
    "candidates": ("Negatives or None", Negatives | None, _candidates),
    "weigh": ("Negatives", Negatives, _weighed),
    "after_step": ("nothing", object, _committed),
    "wrap": ("nothing", object, _wrapped),
    "forward": ("vectors [N, D]", Tensor, _pooled),
    "pool": ("vectors [N, D]", Tensor, _pooled),
    "prompt": ("two texts", tuple, _nothing_more),
    "content": ("a TokenBatch", TokenBatch, _nothing_more),
    "slices": ("a TokenBatch", TokenBatch, _nothing_more),
    "reads": ("tokens [R] or None", Tensor | None, _nothing_more),
    "join": ("Embeddings", Embeddings, _nothing_more),
    "next_round": ("a Round or None", Round | None, _nothing_more),
    "compute": ("numbers by name", Mapping, _measured),
}
"""What a method returns, in words and as a type, and what else is wrong with it."""
_BESIDE_STEPS = ("pool", "prompt", "content", "reads", "slices", "join", "next_round", "compute")


def _kind(value: Any) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, Tensor):
        return f"{list(value.shape)} of {str(value.dtype).removeprefix('torch.')} on {value.device}"
    size = f" of {len(value)}" if isinstance(value, list | tuple | Negatives) else ""
    return "None" if value is None else f"{type(value).__name__}{size}"


def _read(given: tuple[Any, ...]) -> Iterator[Tensor]:
    """Yield the tensors among arguments that a part must not write to."""
    for value in given:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, Batch):
            yield value.anchors
            yield from (group.vectors for group in value.targets.values())
        elif isinstance(value, Negatives):
            # Of a large batch mask and weights are there if something has read them.
            read = (vars(value).get(name) for name in ("vectors", "mask", "log_weights"))
            yield from (tensor for tensor in read if tensor is not None)
        elif isinstance(value, TokenBatch):
            yield value.ids
        elif isinstance(value, Mapping):
            yield from (v.states for v in value.values() if isinstance(v, TokenStates))
            yield from (v.vectors for v in value.values() if isinstance(v, Embeddings))


def _numbers(came: Any) -> Iterator[Tensor]:
    """Yield the tensors of a result that must be finite."""
    if isinstance(came, Tensor):
        yield came
    elif isinstance(came, LossOutput):
        yield from (came.value, *came.parts.values())
    elif isinstance(came, TokenSums):
        yield from (came.total, came.count, *came.parts.values())
    elif isinstance(came, Negatives):
        yield came.vectors
    elif isinstance(came, Mapping):  # groups of positives, or a metric's numbers
        held = (each for each in came.values() if isinstance(each, Positives | Embeddings))
        yield from (each.vectors for each in held)
