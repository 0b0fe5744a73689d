"""Calls the methods that must be pure twice, and notes what they broke."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from cse_core.engine.part_calls import PartCalls
from cse_core.runtime.seeds import derive_seed
from cse_core.types import StepContext
from cse_testkit.snapshots import difference, random_states, snapshot

ANOTHER_SEED = 7


@dataclass
class Call:
    """A call of a part's method in a step.

    Attributes:
        method: Name of the method, ``call`` for the part itself.
        arguments: What it was given, without the context.
        result: What it returned.
        step: Step of the run.
        drew: Whether it asked for random numbers.
        other: What it returned under another seed, where it drew.
    """

    method: str
    arguments: tuple[Any, ...]
    result: Any
    step: int
    drew: bool = False
    other: Any = None


class UncheckedCalls(PartCalls):
    """Calls parts as they are: their watches look at more than a run does."""

    def __call__(self, part: Any, method: str, *given: Any) -> Any:
        """Return what a part's method, or what stands for the part, returns."""
        function = part if method == "__call__" else getattr(part, method)
        return function(*given)


@dataclass
class Watch:
    """Watches one part.

    Attributes:
        part: The part.
        path: Its path in the recipe.
        calls: Its calls so far.
        broken: What it broke, a line each.
    """

    part: Any
    path: str
    calls: list[Call] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def of(self, method: str) -> list[Call]:
        """Return the calls of a method."""
        return [call for call in self.calls if call.method == method]

    def around(self, method: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls another twice, compares, and returns the first result."""

        def called(*arguments: Any) -> Any:
            drawn: list[str] = []
            given = tuple(_counting(each, drawn) for each in arguments)
            held, before, states = snapshot(self.part), snapshot(arguments), random_states()
            result = function(*given)
            self._compare(method, "changes what the part holds:", held, snapshot(self.part))
            self._compare(method, "changes its arguments:", before, snapshot(arguments))
            for name, state in random_states().items():
                if difference(state, states[name]) is not None:
                    self._note(f"{method} draws from the global generator of {name}")
            kept = snapshot(result)
            self._compare(
                method, "called twice returns another", kept, snapshot(function(*arguments))
            )
            plain = tuple(each for each in arguments if not isinstance(each, StepContext))
            call = Call(method, plain, result, _step_of(arguments), bool(drawn))
            if drawn:
                call.other = function(*(_reseeded(each) for each in arguments))
            self.calls.append(call)
            return result

        return called

    def noting(self, method: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls another once, pure or not, and notes the call."""

        def called(*arguments: Any) -> Any:
            result = function(*arguments)
            self.calls.append(Call(method, arguments, result, -1))
            return result

        return called

    def _compare(self, method: str, what: str, before: Any, after: Any) -> None:
        found = difference(before, after)
        if found is not None:
            self._note(f"{method} {what} {found}")

    def _note(self, text: str) -> None:
        line = f"{self.path}: {text}"
        if line not in self.broken:
            self.broken.append(line)


def _step_of(arguments: tuple[Any, ...]) -> int:
    return next((each.step for each in arguments if isinstance(each, StepContext)), -1)


def _counting(argument: Any, drawn: list[str]) -> Any:
    if not isinstance(argument, StepContext):
        return argument
    inner = argument.generator

    def generator(name: str, **options: Any) -> torch.Generator:
        drawn.append(name)
        return inner(name, **options)

    return replace(argument, generator=generator)


def _reseeded(argument: Any) -> Any:
    if not isinstance(argument, StepContext):
        return argument
    inner = argument.generator

    def generator(name: str, **options: Any) -> torch.Generator:
        drawn = inner(name, **options)
        return drawn.manual_seed(derive_seed(ANOTHER_SEED, drawn.initial_seed()))

    return replace(argument, generator=generator)
