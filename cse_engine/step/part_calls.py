"""Calls of parts: what comes back keeps the contract, or the part is named.

Types and shapes are looked at in every call, which costs microseconds. Whether numbers are finite
is noted on the device and read when metrics are written. What costs more, or helps only authors,
is looked at in the first step of a run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache, partial
from itertools import chain
from math import isfinite
from numbers import Real
from types import NoneType, UnionType
from typing import Any, get_origin, get_type_hints

import torch
from torch import Tensor, nn

from cse_core import parts, protocols, types
from cse_core.errors import PartError, describe, truncate_repr
from cse_core.parts import Augmenter, Head, Part
from cse_core.types import LossOutput, Negatives, StepContext, TokenBatch, TokenSums

MAX_NUMBERS = 4_000_000
"""Larger results, such as a long queue's, are not looked through for numbers that are not finite:
what they hold was looked at when it was made."""
CORE_NAMES = re.compile(r"step|round|lr|loss|gradient_norm|\w+_per_second|batch\..*")
"""What ``ctx.log`` cannot write over."""
_BESIDE_STEPS = (
    "pool", "prompt", "content", "reads", "slices", "units", "join", "next_round", "compute",
)  # fmt: skip
_INTEGERS = ("row", "age", "mask", "a scalar tensor")
"""What need not be real numbers."""


class PartCalls:
    """Calls parts, and sees that they keep their contract.

    Attributes:
        look: Sees each call of a step: the part, its method, its arguments and its result.
        always: Whether every step is checked like the first one (``--check-parts``).
    """

    def __init__(self, device: torch.device | None = None) -> None:
        self.look: Callable[[Part, str, tuple[Any, ...], Any], None] | None = None
        self.always = False
        self._first = True
        self._device = device
        self._calling: tuple[Any, str] = (None, "")
        self._notes: list[tuple[str, str, Tensor]] = []
        self._steps: list[tuple[int, list[tuple[str, str]], Tensor]] = []

    def __call__(self, part: Any, method: str, *given: Any) -> Any:
        """Call a part's method.

        Raises:
            PartError: If it does not keep the contract.
        """
        result = self._run(part, method, getattr(part, method), *given)
        for tensor in _tensors(result.vectors if isinstance(result, Negatives) else result):
            self.note(part.path, method, tensor)
        if self.look is not None:
            self.look(part, method, given, result)
        return result

    def watch(self, part: Any) -> None:
        """See what a part returns where others than the step call it."""
        if isinstance(part, Head) and isinstance(part, nn.Module):  # of which branches have copies
            part.register_forward_hook(lambda _, *seen: self._see(part, "forward", *seen))
        for method in _BESIDE_STEPS:
            bases = (base for base in type(part).__mro__ if base.__module__ == parts.__name__)
            if any(method in vars(base) for base in bases):  # not a helper of this name
                function = getattr(part, method)
                setattr(part, method, partial(self._run, part, method, function))

    def _run(self, part: Any, method: str, function: Callable[..., Any], *given: Any) -> Any:
        read = [*_tensors(*given)] if self.always or self._first else []
        versions, graded = [tensor._version for tensor in read], torch.is_grad_enabled()
        before, self._calling = self._calling, (part, method)
        try:
            result = function(*given)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                raise PartError(part, method, f"takes other arguments: {error}") from None
            raise
        finally:
            self._calling = before
        if torch.is_grad_enabled() is not graded:
            torch.set_grad_enabled(graded)
            raise PartError(part, method, "left gradients switched on or off")
        if [tensor._version for tensor in read] != versions:
            raise PartError(part, method, "wrote into a tensor that it was given; return a new one")
        self._see(part, method, given, result)
        return result

    def _see(self, part: Any, method: str, given: tuple[Any, ...], result: Any) -> None:
        """Refuse what the contract does not promise."""
        thorough = self.always or self._first
        misuses = self._misuses(part, method, given, result) if thorough else ()
        try:
            wrong = next(chain(_broken(part, method, given, result), misuses), None)
        except Exception as error:  # something in it cannot be looked at
            wrong = f"returned {_kind(result)} that cannot be read: {describe(error)}"
        if wrong:
            raise PartError(part, method, wrong)

    def _misuses(
        self, part: Any, method: str, given: tuple[Any, ...], result: Any
    ) -> Iterator[str]:
        """Yield what a result, or what a part keeps, does to the step."""
        device = self._device
        for value in _tensors(result):
            # Indices may lie on the CPU.
            away = device and value.is_floating_point() and value.device.type != device.type
            if value.is_complex() or away:
                yield f"promised real numbers on {device and device.type}, returned {_kind(value)}"
        if method == "after_step":
            for name, value in vars(part).items():
                if isinstance(value, Tensor) and value.grad_fn:
                    yield f"keeps the graph of a step alive in {name}; detach what is kept"
        if isinstance(result, TokenSums) and result.count.requires_grad:
            yield "returned a count with gradient; detach it"
        if isinstance(result, LossOutput | TokenSums) or method in ("forward", "pool"):
            made = getattr(result, "value", getattr(result, "total", result))
            learns = torch.is_grad_enabled() and _learns(given[0])
            if learns and not made.requires_grad:
                yield f"returned {_kind(made)} without gradient: nothing would learn from it"

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
            self._notes.append((path, method, ~torch.isfinite(values.detach()).all()))

    def end_step(self, step: int) -> None:
        """Keep the notes of a step under its number."""
        if self._notes:
            made = [(path, method) for path, method, _ in self._notes]
            self._steps.append((step, made, torch.stack([flag for _, _, flag in self._notes])))
        self._notes, self._first = [], False

    def first_bad(self) -> tuple[int, str, str] | None:
        """Take what was the first to make a number that is not finite since the last call.

        Given are the step, what made the number, and its method.
        """
        steps, self._steps = self._steps, []
        if not steps or not bool(torch.cat([flags for _, _, flags in steps]).any()):
            return None
        step, made, flags = next(noted for noted in steps if bool(noted[2].any()))
        return step, *made[int(flags.nonzero()[0])]


@cache
def _contract(part: Any, method: str) -> tuple[str, Any]:
    """Look up what a method of a class returns, as the contract says it, and as a type."""
    bases = (base for base in part.__mro__ if base.__module__ == parts.__name__)
    function = next(vars(base)[method] for base in bases if method in vars(base))
    hint = get_type_hints(function, vars(protocols) | vars(types) | vars(parts))["return"]
    kind = hint if isinstance(hint, UnionType) else get_origin(hint) or hint
    return function.__annotations__["return"], object if hint in (Any, NoneType) else kind


def _broken(part: Any, method: str, given: tuple[Any, ...], result: Any) -> Iterator[str]:
    """Yield what a result is not that the contract promises: its type, counts, shapes."""
    words, kind = _contract(part.__class__, method)
    first: Any = given[0] if given else None
    if not isinstance(result, kind):
        yield f"promised {words}, returned {_kind(result)}"
    elif method == "views":
        for view in result:
            count = len(first if view.owner is None else view.owner)
            texts = len(view.texts or ()) if view.tokens is None else view.tokens.rows
            if texts != count:
                yield f"promised {count} texts, returned {texts} as {view.name}"
            elif bad := _unreadable(view.texts or ()):
                yield f"promised texts, returned {bad} as {view.name}, with a lone surrogate"
    elif (
        method == "order"
        and result is not None
        and (
            result.dtype is not torch.int64
            or not torch.equal(result.sort().values, torch.arange(len(first)))
        )
    ):
        yield f"promised each of {len(first)} rows once, in int64, returned {_kind(result)}"
    elif isinstance(part, Augmenter) and method == "__call__" and not _same_rows(first, result):
        promised = f"{len(first)} texts" if isinstance(first, list) else _kind(first)
        yield f"promised {promised} of the same rows, returned {_kind(result)}"
    elif isinstance(part, Augmenter) and isinstance(result, list) and (bad := _unreadable(result)):
        yield f"promised texts, returned {bad}, with a lone surrogate"
    elif isinstance(result, Negatives) and result.mask.dtype is not torch.bool:
        yield f"promised a mask of bool, returned {result.mask.dtype}"
    for name, value, shape in _shapes(method, given, result):
        sizes = zip(shape, value.shape, strict=False)
        if value.dim() != len(shape) or any(size not in ("P", "D", now) for size, now in sizes):
            yield f"promised {name} [{', '.join(map(str, shape))}], returned {_kind(value)}"
        if name not in _INTEGERS and not value.is_floating_point():
            yield f"promised {name} of real numbers, returned {_kind(value)}"


def _same_rows(given: Any, changed: Any) -> bool:
    """Check that an augmenter returned texts, tokens or vectors of the rows that it was given."""
    if isinstance(given, list):
        texts = isinstance(changed, list) and all(isinstance(text, str) for text in changed)
        return texts and len(changed) == len(given)
    if isinstance(given, TokenBatch):
        return isinstance(changed, TokenBatch) and torch.equal(changed.owner, given.owner)
    return isinstance(changed, Tensor) and changed.shape == given.shape


def _unreadable(texts: Sequence[str]) -> str:
    """Return the first text that no tokenizer can read, cut; "" where there is none."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        bad = next(text for text in texts if any("\ud800" <= char <= "\udfff" for char in text))
        return truncate_repr(bad, 60)
    return ""


def _shapes(method: str, given: tuple[Any, ...], result: Any) -> Iterator[tuple[str, Tensor, Any]]:
    """Yield the tensors of a result with their names and shapes; a letter is any number."""
    if isinstance(result, LossOutput | TokenSums):
        numbers = [value for name, value in vars(result).items() if name != "parts"]
        for value in (*numbers, *result.parts.values()):
            yield "a scalar tensor", value, ()
    elif isinstance(result, Negatives):
        rows = len((given[0] if method == "weigh" else result).vectors)
        pairs = len(given[-2].anchors), rows
        shapes = {"row": (rows,), "age": (rows,), "mask": pairs, "log_weights": pairs}
        for name, shape in {"vectors": (rows, "D"), **shapes}.items():
            yield name, getattr(result, name), shape
    elif method == "mine":
        anchors, size = given[0].anchors.shape
        for group in result.values():
            yield "vectors", group.vectors, (anchors, "P", size)
            if group.weights is not None:
                yield "weights", group.weights, group.vectors.shape[:2]
    elif method == "__call__" and isinstance(result, Mapping):  # of a transform
        for name, view in result.items():
            yield name, view.vectors, given[0][name].vectors.shape


def _kind(value: Any) -> str:
    """Describe a value in a few words."""
    if isinstance(value, Tensor):
        return f"{list(value.shape)} of {str(value.dtype).removeprefix('torch.')} on {value.device}"
    if isinstance(value, list | tuple):
        items = ", ".join(sorted({type(item).__name__ for item in value}))
        return f"{type(value).__name__} of {len(value)} {items}"
    return "None" if value is None else type(value).__name__


def _learns(value: Any) -> bool:
    """Tell if what a part reads has a gradient; of a batch, the anchors' vectors of every level."""
    if not isinstance(value, types.Batch):
        return any(tensor.requires_grad for tensor in _tensors(value))
    levels = value.views.get(value.view, {}).items()
    read = [rows.vectors for level, rows in levels if level != types.INPUT]
    return all(tensor.requires_grad for tensor in (value.anchors, *read))


def _tensors(*values: Any) -> Iterator[Tensor]:
    """Yield the tensors in values of the contract, as far as they were made."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, Mapping):
            yield from _tensors(*value.values())
        elif is_dataclass(value) and not isinstance(value, StepContext):
            yield from _tensors(*vars(value).values())
