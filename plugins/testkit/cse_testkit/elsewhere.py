"""A pretended device: tensors that say they are not on the CPU, so that mixing both is seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map

from cse_core.types import StepContext, TokenBatch, TokenStates, Units

DEVICE = torch.device("meta")
"""What the tensors say; backward passes of torch run for it as for the CPU."""
ELSEWHERE = "on the run's device"
"""What every error here says."""
_ACROSS = {"copy_", "_to_copy"}
"""Operators that take tensors of two devices."""
_INDEX = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
"""Operators whose indices may be on the CPU."""
_FROM_DATA = (torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor)


class Elsewhere(Tensor):
    """A tensor that says it is on ``DEVICE`` and holds one of the CPU."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Elsewhere:
        """Wrap a tensor of the CPU."""
        made: Any = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
        )
        made.held = held.detach()
        return made  # type: ignore[no-any-return]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Compute outside of :func:`pretended`, as inside."""
        return _compute(func, args, kwargs or {})


@contextmanager
def pretended() -> Iterator[None]:
    """Compute where tensors pretend to be."""
    with _Computed(), _Made(), patch.object(torch, "autocast", _autocast):  # type: ignore[no-untyped-call]
        yield


class _Computed(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Computes operators on what the tensors hold."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute one operator."""
        return _compute(func, args, kwargs or {})


class _Made(TorchFunctionMode):
    """Makes tensors of lists and arrays, and the other way round, which torch does by itself."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch."""
        kwargs = kwargs or {}
        if func is Tensor.tolist and isinstance(args[0], Elsewhere):
            return args[0].held.tolist()
        if func in (Tensor.numpy, Tensor.__array__) and isinstance(args[0], Elsewhere):
            raise RuntimeError(f"numpy reads a tensor {ELSEWHERE}: write .cpu() first")
        if func in _FROM_DATA and kwargs.get("device") is not None:
            device = torch.device(kwargs.pop("device"))
            return func(*args, **kwargs).to(device)
        return func(*args, **kwargs)


_AUTOCAST = torch.autocast


def _autocast(device_type: str, *given: Any, **named: Any) -> Any:
    return _AUTOCAST("cpu" if device_type == DEVICE.type else device_type, *given, **named)


def _compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute an operator on what the tensors hold; its result is where they say they are."""
    name = func.overloadpacket.__name__
    flat = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
    away = any(isinstance(leaf, Elsewhere) for leaf in flat)
    near = [leaf for leaf in flat if not isinstance(leaf, Elsewhere) and leaf.dim()]
    if name in _INDEX and isinstance(args[0], Elsewhere):
        near = [leaf for leaf in near if leaf is not args[0] and leaf.is_floating_point()]
    if away and near and name not in _ACROSS:
        raise RuntimeError(
            f"{name} of tensors on the CPU and {ELSEWHERE}: make them on ctx.device, or with the "
            "device of a tensor that was given"
        )
    to = kwargs.get("device")
    if to is not None:
        away = torch.device(to).type == DEVICE.type
        kwargs = {**kwargs, "device": torch.device("cpu")}
    elif name == "copy_":
        away = isinstance(args[0], Elsewhere)
    held_args, held_kwargs = tree_map(_held, (args, kwargs))
    made = func(*held_args, **held_kwargs)
    if not away:
        return made
    made = tree_map(lambda leaf: Elsewhere(leaf) if isinstance(leaf, Tensor) else leaf, made)
    return return_and_correct_aliasing(func, args, kwargs, made)  # type: ignore[no-untyped-call]


def _held(leaf: Any) -> Any:
    return leaf.held if isinstance(leaf, Elsewhere) else leaf


def moved(value: Any) -> Any:
    """Return a value of the contract with its tensors where a run with another device has them."""
    if isinstance(value, Tensor):
        made = Elsewhere(value.detach().clone())
        return made.requires_grad_(value.requires_grad)
    if isinstance(value, StepContext):
        return _context(value)
    if isinstance(value, TokenBatch):
        return replace(_each(value, moved), offsets=value.offsets)
    if isinstance(value, Units):
        return replace(_each(value, moved), lengths=value.lengths)
    if isinstance(value, TokenStates):
        return replace(_each(value, moved), place=value.place)
    return _each(value, moved)


def held(value: Any) -> Any:
    """Return a value with the tensors of the CPU that it holds."""
    return _held(value) if isinstance(value, Tensor) else _each(value, held)


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a mapping or a data type of the contract with its values changed."""
    if isinstance(value, Mapping):
        return {name: change(item) for name, item in value.items()}
    if not is_dataclass(value) or isinstance(value, type):
        return value
    names = [field.name for field in fields(value) if field.init]
    return replace(value, **{name: change(getattr(value, name)) for name in names})


def _context(ctx: StepContext) -> StepContext:
    def after(method: str) -> Callable[..., Any]:
        return lambda *given: moved(getattr(ctx, method)(*map(held, given)))

    def generator(name: str, **how: Any) -> torch.Generator:
        return ctx.generator(name, **{**how, "device": "cpu"})

    names = ("vectors", "beside", "gradient", "values", "uniform", "negatives")
    changed: dict[str, Any] = {name: after(name) for name in names}
    return ctx.replace(device=DEVICE, generator=generator, log=lambda *_: None, **changed)


def move_module(module: nn.Module) -> None:
    """Move the parameters and buffers of a module, as a run does."""
    for inner in module.modules():
        for name, parameter in inner._parameters.items():
            if parameter is not None:
                there = nn.Parameter(moved(parameter.detach()), parameter.requires_grad)
                inner._parameters[name] = there
        for name, buffer in inner._buffers.items():
            inner._buffers[name] = None if buffer is None else moved(buffer)
