"""Calls the methods that must be pure twice, and notes what they broke."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

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
        shared: Names that it drew by for all processes, ``apart`` those for its own rows.
        other: What it returned under another seed, where it drew.
    """

    method: str
    arguments: tuple[Any, ...]
    result: Any
    step: int
    drew: bool = False
    other: Any = None
    shared: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()


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
        met: Rows that came out otherwise beside other rows, at an embedding point.
        looked: Calls that were looked at for that.
    """

    part: Any
    path: str
    calls: list[Call] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    met: list[str] = field(default_factory=list)
    looked: int = 0

    def of(self, method: str) -> list[Call]:
        """Return the calls of a method."""
        return [call for call in self.calls if call.method == method]

    def around(self, method: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls another twice, compares, and returns the first result."""

        def called(*arguments: Any) -> Any:
            drawn: list[tuple[str, bool]] = []
            given = tuple(_counting(each, drawn) for each in arguments)
            held, before, states = snapshot(self.part), snapshot(arguments), random_states()
            result = function(*given)
            self._compare(method, "changes what the part holds:", held, snapshot(self.part))
            self._compare(method, "changes its arguments:", before, snapshot(arguments))
            self._note_draws(method, states)
            kept = snapshot(result)
            self._compare(
                method, "called twice returns another", kept, snapshot(function(*arguments))
            )
            plain = tuple(each for each in arguments if not isinstance(each, StepContext))
            call = Call(
                method,
                plain,
                result,
                _step_of(arguments),
                bool(drawn),
                shared=frozenset(name for name, shared in drawn if shared),
                apart=frozenset(name for name, shared in drawn if not shared),
            )
            if drawn:
                call.other = function(*(_reseeded(each) for each in arguments))
            self.calls.append(call)
            if method == "call" and isinstance(arguments[0], Tensor):
                self._look_for_neighbours(function, arguments)
            return result

        return called

    def giving(self, method: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls another once, and sees that it leaves what it is given."""

        def called(*arguments: Any, **named: Any) -> Any:
            before, states = snapshot(arguments), random_states()
            result = function(*arguments, **named)
            self._compare(method, "changes its arguments:", before, snapshot(arguments))
            self._note_draws(method, states)
            return result

        return called

    def noting(self, method: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls another once, pure or not, and notes the call."""

        def called(*arguments: Any) -> Any:
            result = function(*arguments)
            self.calls.append(Call(method, arguments, result, -1))
            return result

        return called

    def _note_draws(self, method: str, states: dict[str, Any]) -> None:
        for name, state in random_states().items():
            if difference(state, states[name]) is not None:
                self._note(f"{method} draws from the global generator of {name}")

    def _look_for_neighbours(
        self, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        """Change all rows but one at an embedding point: that one must come out as before."""
        x, tokens = arguments[0].detach(), arguments[1]
        if tokens.rows < 2 or self.looked >= 2:
            return
        self.looked += 1
        row_of_token = tokens.row_of_token()
        for row in (0, tokens.rows - 1):
            own = (row_of_token == row).unsqueeze(1)
            changed = torch.where(own, x, 0.5 - 2 * x)
            one, other = (function(each, *arguments[1:]).detach() for each in (x, changed))
            if not torch.allclose(one[own[:, 0]], other[own[:, 0]], rtol=1e-4, atol=1e-6):
                self.met.append(f"row {row} of {tokens.rows} (view {arguments[2].name})")

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


def _counting(argument: Any, drawn: list[tuple[str, bool]]) -> Any:
    if not isinstance(argument, StepContext):
        return argument
    inner = argument.generator

    def generator(name: str, **options: Any) -> torch.Generator:
        drawn.append((name, bool(options.get("shared", True))))
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
