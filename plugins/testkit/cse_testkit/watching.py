"""Calls parts as a run does, and sees what they change, draw and return beyond what a run sees."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, is_dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor, nn

from cse_core.functional import derive_seed
from cse_core.parts import Loss, Part, Setup, TokenLoss
from cse_core.protocols import Encoder
from cse_core.types import StepContext
from cse_testkit.doors import doors

ANOTHER_SEED = 7
PURE = ("views", "__call__", "mine", "candidates", "weigh", "pool", "slices", "units", "join")
"""Methods that must be pure."""
GIVEN = ("sums", "after_step", "content", "reads", "forward", "next_round")
"""Further ones, which may return something else when they are called twice, as by dropout."""
_BY_IDENTITY = (
    *(Encoder, Setup, StepContext, BaseModel, ModuleType, type),
    *(FunctionType, MethodType, BuiltinFunctionType),
)
"""What parts share and must not own, and functions."""
_PLAIN = (str, bytes, int, float, complex, type(None))
_STATES = (Tensor, np.ndarray, torch.Generator, np.random.Generator, random.Random)
_LEAVES = (*_PLAIN, *_STATES, *_BY_IDENTITY)


def leaves(value: Any, path: str = "", seen: dict[int, Any] | None = None) -> Iterator[Any]:
    """Yield path and value of everything that an object holds and that holds nothing itself."""
    seen = {} if seen is None else seen
    if isinstance(value, _LEAVES):
        yield path, value
        return
    if id(value) in seen:
        return
    seen[id(value)] = value  # kept, since the id of an object that is gone is given out again
    if isinstance(value, set | frozenset):
        items = {number: item for number, item in enumerate(sorted(value, key=repr))}
    elif isinstance(value, list | tuple):
        items = dict(enumerate(value))
    elif isinstance(value, Mapping):
        items = dict(value)
    elif _of_the_core(type(value)):
        yield path, value
        return
    else:
        slots = (name for base in type(value).__mro__ for name in getattr(base, "__slots__", ()))
        items = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        items |= getattr(value, "__dict__", {})
        if not items:
            yield path, value
    for name, item in items.items():
        yield from leaves(item, f"{path}.{name}".lstrip("."), seen)


def _of_the_core(kind: type) -> bool:
    """Check whether a class is behind the doors: what parts share, such as a corpus."""
    rooms = ("cse_core.", "cse_engine.", "cse_defaults.")
    behind = kind.__module__.startswith(rooms) and kind.__module__ not in doors()
    return behind and not issubclass(kind, Part | nn.Module)


def random_state() -> tuple[object, ...]:
    """Return the state of the generators that a plugin shares with everybody."""
    numbers = np.random.get_state(legacy=False)
    keys = numbers["state"].pop("key").tobytes()
    return torch.get_rng_state().numpy().tobytes(), keys, numbers, random.getstate()


def snapshot(value: Any) -> dict[str, Any]:
    """Return everything that a value holds by its path, to compare later bit for bit.

    What parts share and must not own (encoder, tokenizer, corpus, setup, options) is compared by
    identity.
    """
    return {path: _frozen(leaf) for path, leaf in leaves(value)}


def _frozen(leaf: Any) -> Any:
    if isinstance(leaf, _PLAIN):
        return repr(leaf)
    if isinstance(leaf, Tensor):
        array = leaf.detach().cpu()
        if array.dtype == torch.bfloat16:  # which numpy has not
            array = array.view(torch.int16)
        return leaf.dtype, tuple(leaf.shape), array.numpy().tobytes()
    if isinstance(leaf, np.ndarray):
        return leaf.dtype.str, leaf.shape, leaf.tobytes()
    if isinstance(leaf, torch.Generator):
        return leaf.get_state().numpy().tobytes()
    if isinstance(leaf, np.random.Generator):
        return repr(leaf.bit_generator.state)
    if isinstance(leaf, random.Random):
        return leaf.getstate()
    return id(leaf)


def difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """Find the first path at which two snapshots differ, or None where they are equal."""
    for path in dict.fromkeys((*one, *other)):
        if path not in one or path not in other or one[path] != other[path]:
            return path or "its value"
    return None


def same(what: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Check that two snapshots are equal; ``what`` says what it means where they are not."""
    where = difference(one, other)
    assert where is None, f"{what}: {where}"


def tensors_of(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in a value of the contract."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_of(item)
    elif is_dataclass(value) and not isinstance(value, StepContext):
        yield from tensors_of(vars(value))


def attached(part: Any) -> list[str]:
    """Return the tensors of a part that still hold a graph, or ask for a gradient unasked.

    Parameters of modules are no such tensors.
    """
    return [
        path
        for path, leaf in leaves(part)
        if isinstance(leaf, Tensor) and not isinstance(leaf, nn.Parameter) and leaf.requires_grad
    ]


@dataclass
class Call:
    """A call of a part's method in a step.

    Attributes:
        path: The part's path in the recipe.
        method: Name of the method, ``call`` for the part itself.
        arguments: What it was given, the context last; one of a step logs nothing any more.
        result: What it returned.
        drawn: Names that it drew by, each with whether for all processes.
        own: Generators that it made or seeded itself.
        other: What it returned under another seed, where it drew.
    """

    path: str
    method: str
    arguments: tuple[Any, ...]
    result: Any
    drawn: list[tuple[str, bool]] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    other: Any = None


class Watch:
    """Sees what parts do in a run; what must be pure is called twice and compared.

    Attributes:
        compare: Whether it calls twice and compares; False only sees.
        calls: Every call so far.
        online: The encoder in training, whose weights the optimiser alone moves.
    """

    def __init__(self, compare: bool = True) -> None:
        self.compare = compare
        self.calls: list[Call] = []
        self.online: nn.Module = nn.Identity()

    def of(self, path: str, method: str | None = None) -> list[Call]:
        """Return the calls of a part, of one method where it is named."""
        return [call for call in self.calls if call.path == path and method in (None, call.method)]

    def see(self, parts: Iterable[Part], online: nn.Module) -> None:
        """Watch parts from here on.

        A call then raises ``AssertionError`` if it changes what it must not, draws from a global
        generator, or returns something else when it is called again.
        """
        self.online = online
        for part in parts:
            loss = isinstance(part, Loss | TokenLoss)
            for name in (*PURE, *GIVEN):
                if hasattr(part, name) and not (name == "forward" and loss):
                    setattr(part, name, self._around(part, name))

    def _around(self, part: Part, method: str) -> Callable[..., Any]:
        function = getattr(part, method)

        def called(*given: Any) -> Any:
            return self._call(part, method.strip("_"), function, given, method in PURE)

        return called

    def _call(
        self,
        part: Part,
        method: str,
        function: Callable[..., Any],
        given: tuple[Any, ...],
        pure: bool,
    ) -> Any:
        silent = (silenced(value) for value in given)
        call = Call(part.path, method, tuple(silent), None)
        watched = [_with_generator(value, call.drawn.append if pure else None) for value in given]
        if not self.compare:
            call.result = function(*watched)
            self.calls.append(call)
            return call.result
        before, arguments, state = snapshot(part), snapshot(given), random_state()
        weights = snapshot(dict(self.online.state_dict()))
        with _noted_generators(type(part).__module__) as call.own:
            call.result = function(*watched)
        self.calls.append(call)
        same(f"{method} changes its arguments", arguments, snapshot(given))
        assert state == random_state(), f"{method} draws from a global generator: use ctx.generator"
        online = snapshot(dict(self.online.state_dict()))
        same(f"{method} changes the online encoder", weights, online)
        if pure:
            same(f"{method} changes what the part holds", before, snapshot(part))
            first = snapshot(call.result)
            same(f"{method}, called again, returns another", first, snapshot(function(*given)))
        if call.drawn:
            call.other = function(*(_with_generator(value, seed=ANOTHER_SEED) for value in given))
        return call.result


def silenced(argument: Any) -> Any:
    """Return a context that logs nothing, for calls outside of a step; others as they are."""
    if not isinstance(argument, StepContext):
        return argument
    return argument.replace(log=lambda name, value: None)


_GENERATORS = (
    *((torch, name) for name in ("Generator", "manual_seed")),
    *((random, name) for name in ("Random", "seed")),
    *((np.random, name) for name in ("default_rng", "RandomState", "Generator", "seed")),
)
"""What makes or seeds a generator."""


@contextmanager
def _noted_generators(module: str) -> Iterator[list[str]]:
    """Note the generators that a module's package makes or seeds meanwhile, by their names."""
    package, made = module.partition(".")[0], list[str]()

    def noted(holder: ModuleType, name: str) -> Any:
        original = getattr(holder, name)

        def call(*given: Any, **named: Any) -> Any:
            frame: Any = sys._getframe(1)
            while frame.f_globals is globals():
                frame = frame.f_back
            if frame.f_globals.get("__name__", "").partition(".")[0] == package:
                made.append(f"{holder.__name__}.{name}")
            return original(*given, **named)

        if not isinstance(original, type):
            return call

        class Noted(type):
            def __call__(cls, *given: Any, **named: Any) -> Any:
                return call(*given, **named)

            def __instancecheck__(cls, value: object) -> bool:
                return isinstance(value, original)

        return Noted(name, (), {})

    with ExitStack() as stack:
        for holder, name in _GENERATORS:
            stack.enter_context(patch.object(holder, name, noted(holder, name)))
        yield made


def _with_generator(
    argument: Any, note: Callable[[tuple[str, bool]], None] | None = None, seed: int | None = None
) -> Any:
    """Return a context whose draws are noted, or come from another seed; others as they are."""
    if not isinstance(argument, StepContext):
        return argument
    inner = argument.generator

    def generator(name: str, **options: Any) -> torch.Generator:
        if note is not None:
            note((name, bool(options.get("shared", True))))
        drawn = inner(name, **options)
        if seed is not None:
            drawn.manual_seed(derive_seed(seed, drawn.initial_seed()))
        return drawn

    return argument.replace(generator=generator)
