"""Calls of parts: what comes back keeps the contract, or the part is named.

Types and shapes are looked at in every call, which costs microseconds. Whether numbers are finite
is noted on the device and read when metrics are written. What costs more, or helps only authors,
is looked at in the first step of a run.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from math import isfinite
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from cse_core.errors import PartError, describe
from cse_core.parts import Augmenter, Head, Loss, Part, Transform
from cse_core.types import (
    Batch,
    Embeddings,
    LossOutput,
    Negatives,
    Positives,
    Round,
    StepContext,
    TokenBatch,
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
        self._made: list[tuple[str, str]] = []
        self._flags: list[Tensor] = []
        self._steps: list[tuple[int, list[tuple[str, str]], Tensor]] = []

    def __call__(self, part: Any, method: str, *given: Any) -> Any:
        """Call a part's method.

        Raises:
            PartError: If it does not keep the contract.
        """
        result = self._run(part, method, getattr(part, method), given)
        for tensor in _numbers(result):
            self.note(part.path, method, tensor)
        if self.look is not None:
            self.look(part, method, given, result)
        return result

    def watch(self, part: Any) -> None:
        """See what a part returns where others than the step call it."""
        if isinstance(part, Head) and isinstance(part, nn.Module):  # of which branches have copies
            part.register_forward_hook(lambda _, *seen: self._see(part, "forward", *seen))
        for method in _BESIDE_STEPS:
            if function := getattr(part, method, None):
                setattr(part, method, self._watched(part, method, function))

    def _watched(self, part: Any, method: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: self._run(part, method, function, given)

    def _run(
        self, part: Any, method: str, function: Callable[..., Any], given: tuple[Any, ...]
    ) -> Any:
        before, self._calling = self._calling, (part, method)
        thorough = self.always or self._first
        try:
            result, wrong = _supervised(function, given) if thorough else (function(*given), None)
        finally:
            self._calling = before
        if wrong:
            raise PartError(part, method, wrong)
        self._see(part, method, given, result)
        return result

    def _see(self, part: Any, method: str, given: tuple[Any, ...], result: Any) -> None:
        """Refuse what the contract does not promise."""
        kinds = (Augmenter, Transform, Loss) if method == "__call__" else ()
        key = next((kind.__name__ for kind in kinds if isinstance(part, kind)), method)
        words, types, promise = _PROMISES[key]
        wrong = None if isinstance(result, types) else f"promised {words}, returned {_kind(result)}"
        try:
            wrong = wrong or (promise and promise(result, *given))
            if self.always or self._first:
                wrong = wrong or _misuse(part, method, given, result, self._device)
        except Exception as error:  # something in it cannot be looked at
            wrong = f"promised {words}, returned {_kind(result)} that is none: {describe(error)}"
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
        self._made, self._flags, self._first = [], [], False

    def first_bad(self) -> Bad | None:
        """Take what was the first to make a number that is not finite since the last call."""
        steps, self._steps = self._steps, []
        if not steps or not bool(torch.cat([flags for _, _, flags in steps]).any()):
            return None
        step, made, flags = next(noted for noted in steps if bool(noted[2].any()))
        return step, *made[int(flags.nonzero()[0])]


def _differ(*tensors: tuple[str, Tensor, Sequence[Any]], of: str = "") -> str | None:
    """Describe the first of some tensors that has another shape; a letter is any number."""
    for name, value, shape in tensors:
        sizes = zip(value.shape, shape, strict=False)
        same = all(isinstance(want, str) or size == want for size, want in sizes)
        if not same or value.dim() != len(shape):
            dimensions = f"[{', '.join(map(str, shape))}]" if len(shape) else ""
            return f"promised {f'{name} {dimensions}'.strip()}, returned {_kind(value)}{of}"
    return None


def _views(result: list[View], rows: Tensor, *_: Any) -> str | None:
    for view in result:
        count = len(rows if view.owner is None else view.owner)
        texts = view.tokens.rows if view.tokens is not None else len(view.texts or ())
        if texts != count:
            return f"promised {count} texts, returned {texts} as {view.name}"
    return None


def _ordered(result: Tensor, rows: Any, *_: Any) -> str | None:
    if torch.equal(result.sort().values, torch.arange(len(rows))):
        return None
    return f"promised each of {len(rows)} rows once, returned {_kind(result)}"


def _augmented(result: Any, x: Any, *_: Any) -> str | None:
    promised, fits = f"{len(x)} texts" if isinstance(x, list) else _kind(x), False
    if isinstance(x, Tensor):
        fits = result.shape == x.shape and result.is_floating_point()
    elif isinstance(x, TokenBatch):
        promised = "tokens of the same rows in the same order"
        fits = torch.equal(result.owner, x.owner)
    elif isinstance(result, list) and len(result) == len(x):
        promised, fits = "texts", all(isinstance(text, str) for text in result)
    return None if fits else f"promised {promised}, returned {_kind(result)}"


def _transformed(result: Mapping[str, Embeddings], views: Any, *_: Any) -> str | None:
    for name, rows in result.items():
        if wrong := _differ(("", rows.vectors, views[name].vectors.shape), of=f" as {name}"):
            return wrong
    return None


def _mined(result: Mapping[str, Positives], batch: Batch, *_: Any) -> str | None:
    count, dimension = batch.anchors.shape
    for name, group in result.items():
        shapes: list[Any] = [("vectors", group.vectors, (count, "P", dimension))]
        if group.weights is not None:
            shapes.append(("weights", group.weights, group.vectors.shape[:2]))
        if wrong := _differ(*shapes, of=f" as {name}"):
            return wrong
    return None


def _candidates(result: Negatives | None, batch: Batch, *_: Any) -> str | None:
    if result is None:
        return None
    return _differ(("vectors", result.vectors, ("N", "D"))) or _weighed(result, result, batch)


def _weighed(result: Negatives, given: Negatives, batch: Batch, *_: Any) -> str | None:
    if result.mask.dtype is not torch.bool:
        return f"promised a mask of bool, returned {result.mask.dtype}"
    count = len(given.vectors)
    columns = [(name, getattr(result, name), (count,)) for name in ("row", "age")]
    pairs = [(n, getattr(result, n), (len(batch.anchors), count)) for n in ("mask", "log_weights")]
    return _differ(("vectors", result.vectors, given.vectors.shape), *columns, *pairs)


def _scalars(result: LossOutput | TokenSums, *_: Any) -> str | None:
    values = [value for name, value in vars(result).items() if name != "parts"]
    return _differ(*(("a scalar tensor", v, ()) for v in (*values, *result.parts.values())))


def _measured(result: Mapping[str, float], *_: Any) -> str | None:
    wrong = next((name for name, value in result.items() if not isinstance(value, Real)), None)
    return wrong and f"promised a number as {wrong}, returned {_kind(result[wrong])}"


_PROMISES: dict[str, tuple[str, Any, Callable[..., str | None] | None]] = {
    "views": ("a list of View", list, _views),
    "order": ("the order of the rows", Tensor, _ordered),
    "Augmenter": ("it changed", object, _augmented),
    "Transform": ("Embeddings by view", Mapping, _transformed),
    "Loss": ("a LossOutput", LossOutput, _scalars),
    "sums": ("TokenSums", TokenSums, _scalars),
    "mine": ("groups of Positives by name", Mapping, _mined),
    "candidates": ("Negatives or None", Negatives | None, _candidates),
    "weigh": ("Negatives", Negatives, _weighed),
    "after_step": ("nothing", object, None),
    "wrap": ("nothing", object, None),
    "forward": ("vectors [N, D]", Tensor, None),
    "pool": ("vectors [N, D]", Tensor, None),
    "prompt": ("two texts", tuple, None),
    "content": ("a TokenBatch", TokenBatch, None),
    "slices": ("a TokenBatch", TokenBatch, None),
    "reads": ("tokens [R] or None", Tensor | None, None),
    "join": ("Embeddings", Embeddings, None),
    "next_round": ("a Round or None", Round | None, None),
    "compute": ("numbers by name", Mapping, _measured),
}
"""What a method returns, in words and as a type, and what else is wrong with it; ``__call__`` goes
by the part's kind."""
_BESIDE_STEPS = ("pool", "prompt", "content", "reads", "slices", "join", "next_round", "compute")


def _supervised(function: Callable[..., Any], given: tuple[Any, ...]) -> tuple[Any, str | None]:
    """Call a part's method; return its result, and what else it did that it must not do."""
    try:
        inspect.signature(function).bind(*given)
    except TypeError as error:
        return None, f"takes other arguments: {error}"
    read = [tensor for value in given for tensor in _tensors(value)]
    versions, graded = [tensor._version for tensor in read], torch.is_grad_enabled()
    result = function(*given)
    if torch.is_grad_enabled() is not graded:
        torch.set_grad_enabled(graded)
        return result, "left gradients switched on or off"
    if [tensor._version for tensor in read] != versions:
        return result, "wrote into a tensor that it was given; return a new one"
    return result, None


def _misuse(
    part: Any, method: str, given: tuple[Any, ...], result: Any, device: torch.device | None
) -> str | None:
    """Describe what a result, or what a part keeps, does to the step; None where all is well."""
    for value in _numbers(result):
        # Indices may lie on the CPU.
        away = device and value.is_floating_point() and value.device.type != device.type
        if value.is_complex() or away:
            return f"promised real numbers on {device and device.type}, returned {_kind(value)}"
    if method == "after_step":
        attached = (n for n, v in vars(part).items() if isinstance(v, Tensor) and v.grad_fn)
        if name := next(attached, None):
            return f"keeps the graph of a step alive in {name}; detach what is kept"
    if isinstance(result, TokenSums) and result.count.requires_grad:
        return "returned a count with gradient; detach it"
    if isinstance(result, LossOutput | TokenSums) or method in ("forward", "pool"):
        made = getattr(result, "value", getattr(result, "total", result))
        read = _tensors(getattr(given[0], "anchors", given[0]))
        learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in read)
        if learns and not made.requires_grad:
            what = "vectors" if made is result else "a value"
            return f"returned {what} without gradient: nothing would learn from it"
    return None


def _kind(value: Any) -> str:
    """Describe a value in a few words."""
    if isinstance(value, Tensor):
        return f"{list(value.shape)} of {str(value.dtype).removeprefix('torch.')} on {value.device}"
    size = f" of {len(value)}" if isinstance(value, list | tuple | Negatives) else ""
    return "None" if value is None else f"{type(value).__name__}{size}"


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors of a value of the contract, as far as they were made."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping) or is_dataclass(value) and not isinstance(value, StepContext):
        for item in (value if isinstance(value, Mapping) else vars(value)).values():
            yield from _tensors(item)


def _numbers(result: Any) -> Iterator[Tensor]:
    """Yield the tensors of a result that must be finite."""
    return _tensors(result.vectors if isinstance(result, Negatives) else result)
