"""Calls of parts in a step: what comes back keeps the contract, or the part is named.

Types, shapes and writes into what a part was given are looked at in every call, which costs
microseconds. Whether numbers are finite is noted on the device and read when metrics are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from cse_core.errors import PartError
from cse_core.parts import Part
from cse_core.types import Batch, LossOutput, Negatives, Positives, TokenBatch, View

MAX_NUMBERS = 4_000_000
"""Larger results, such as a long queue's, are not looked through for numbers that are not finite:
what they hold was looked at when it was made."""
Bad = tuple[int, str, str]
"""Step, what made a number that is not finite, and its method."""


class PartCalls:
    """Calls parts, and sees that they keep their contract; ``look`` sees each call."""

    def __init__(self) -> None:
        self.look: Callable[[Part, str, tuple[Any, ...], Any], None] | None = None
        self._made: list[tuple[str, str]] = []
        self._flags: list[Tensor] = []
        self._steps: list[tuple[int, list[tuple[str, str]], Tensor]] = []

    def __call__(self, part: Any, method: str, *given: Any) -> Any:
        """Return what a part's method returns.

        Raises:
            PartError: If it is not what the contract says, or what was given was written to.
        """
        function: Callable[..., Any] = getattr(part, method)
        read = list(_read(given))
        versions = [tensor._version for tensor in read]
        try:
            came = function(*given)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise PartError(part, method, f"takes other arguments: {error}") from error
        if [tensor._version for tensor in read] != versions:
            raise PartError(part, method, "wrote into a tensor that it was given; return a new one")
        if wrong := _PROMISES[method](part, came, *given):
            raise PartError(part, method, wrong)
        for tensor in _numbers(came):
            self.note(part.path, method, tensor)
        if self.look is not None:
            self.look(part, method, given, came)
        return came

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


def _views(part: Part, came: Any, rows: Tensor, *_: Any) -> str | None:
    if not isinstance(came, list) or not all(isinstance(view, View) for view in came):
        return f"promised a list of View, returned {_kind(came)}"
    for view in came:
        count = len(rows if view.owner is None else view.owner)
        found = view.tokens.rows if view.tokens is not None else len(view.texts or ())
        if found != count:
            return f"promised {count} texts, returned {found} as {view.name}"
    return None


def _changed(part: Part, came: Any, x: Any, *_: Any) -> str | None:
    """Check what an augmenter made of texts, tokens or embeddings."""
    if isinstance(x, Tensor):
        if not isinstance(came, Tensor) or came.shape != x.shape or not came.is_floating_point():
            return f"promised {_kind(x)}, returned {_kind(came)}"
    elif isinstance(x, TokenBatch):
        if not isinstance(came, TokenBatch) or not torch.equal(came.owner, x.owner):
            return "promised tokens of the same rows in the same order, returned " + _kind(came)
    elif not (isinstance(came, list) and len(came) == len(x)):
        return f"promised {len(x)} texts, returned {_kind(came)}"
    elif not all(isinstance(text, str) for text in came):
        return "promised texts, returned a list that holds something else"
    return None


def _mined(part: Part, came: Any, batch: Batch, *_: Any) -> str | None:
    if not isinstance(came, Mapping):
        return f"promised groups of Positives by name, returned {_kind(came)}"
    count, dimension = batch.anchors.shape
    for name, group in came.items():
        if not isinstance(group, Positives):
            return f"promised Positives, returned {_kind(group)} as {name}"
        shape = tuple(group.vectors.shape)
        if len(shape) != 3 or (shape[0], shape[2]) != (count, dimension):
            return f"promised vectors [{count}, P, {dimension}], returned {list(shape)} as {name}"
        if group.weights is not None and group.weights.shape != shape[:2]:
            found = list(group.weights.shape)
            return f"promised weights {list(shape[:2])}, returned {found} as {name}"
    return None


def _candidates(part: Part, came: Any, batch: Batch, *_: Any) -> str | None:
    if came is None:
        return None
    if not isinstance(came, Negatives):
        return f"promised Negatives or None, returned {_kind(came)}"
    if came.vectors.dim() != 2:
        return f"promised vectors [N, D], returned {_kind(came.vectors)}"
    return _columns(came, len(batch.anchors))


def _columns(came: Negatives, anchors: int) -> str | None:
    count = len(came.vectors)
    for name, shape in (("row", (count,)), ("age", (count,)), ("mask", (anchors, count)),
                        ("log_weights", (anchors, count))):  # fmt: skip
        found = getattr(came, name)
        if not isinstance(found, Tensor) or found.shape != shape:
            return f"promised {name} {list(shape)}, returned {_kind(found)}"
    if came.mask.dtype is not torch.bool:
        return f"promised a mask of bool, returned {came.mask.dtype}"
    return None


def _weighed(part: Part, came: Any, given: Negatives, batch: Batch, *_: Any) -> str | None:
    if not isinstance(came, Negatives) or came.vectors.shape != given.vectors.shape:
        return f"promised the {len(given)} negatives that it was given, returned {_kind(came)}"
    return _columns(came, len(batch.anchors))


def _lost(part: Part, came: Any, batch: Batch, *_: Any) -> str | None:
    if not isinstance(came, LossOutput):
        return f"promised a LossOutput, returned {_kind(came)}"
    if not isinstance(came.value, Tensor) or came.value.shape != ():
        return f"promised a scalar tensor, returned {_kind(came.value)}"
    if torch.is_grad_enabled() and batch.anchors.requires_grad and not came.value.requires_grad:
        return "returned a value without gradient: nothing would learn from it"
    return None


def _committed(part: Part, came: Any, *_: Any) -> str | None:
    """Check that nothing that a part keeps holds the graph of a step."""
    for name, value in vars(part).items():
        if isinstance(value, Tensor) and value.grad_fn is not None:
            return f"keeps the graph of a step alive in {name}; detach what is kept"
    return None


_PROMISES: dict[str, Callable[..., str | None]] = {
    "views": _views,
    "__call__": lambda part, came, x, *rest: (
        _lost(part, came, x, *rest) if isinstance(x, Batch) else _changed(part, came, x)
    ),
    "mine": _mined,
    "candidates": _candidates,
    "weigh": _weighed,
    "after_step": _committed,
}


def _kind(value: Any) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, Tensor):
        return f"{list(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
    size = f" of {len(value)}" if isinstance(value, list | tuple | Negatives) else ""
    return f"{type(value).__name__}{size}"


def _read(given: tuple[Any, ...]) -> Iterator[Tensor]:
    """Yield the tensors among arguments that a part must not write to."""
    for value in given:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, Batch):
            yield value.anchors
            yield from (group.vectors for group in value.targets.values())
        elif isinstance(value, Negatives):
            yield value.vectors
            yield value.mask
            yield value.log_weights
        elif isinstance(value, TokenBatch):
            yield value.ids


def _numbers(came: Any) -> Iterator[Tensor]:
    """Yield the tensors of a result that must be finite."""
    if isinstance(came, Tensor):
        yield came
    elif isinstance(came, LossOutput):
        yield came.value
    elif isinstance(came, Negatives):
        yield came.vectors
    elif isinstance(came, Mapping):
        yield from (group.vectors for group in came.values())
