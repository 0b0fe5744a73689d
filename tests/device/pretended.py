"""A device that is none: tensors say that they are on it, and are computed on the CPU.

What it checks is what a GPU would: that no operator is given tensors of two devices, and where the
program waits for the device, by the line that makes it wait. What it cannot check: speed, number
formats, and the kernels that only a GPU has.

Importing this registers the device for the whole process, and torch takes it for an accelerator.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

NAME = "pretended"
ROOT = Path(__file__).resolve().parents[2]
CPU = torch.device("cpu")
aten = torch.ops.aten

READ = {
    aten._local_scalar_dense.default, aten.equal.default, aten.is_nonzero.default,
    aten.nonzero.default, aten.masked_select.default, aten._unique2.default,
    aten.unique_dim.default, aten.unique_consecutive.default,
}  # fmt: skip
"""Operators whose result, or its size, depends on values that only the device knows."""
INDEXED = {
    aten.index.Tensor, aten.index_put.default, aten.index_put_.default,
    aten._index_put_impl_.default,
}  # fmt: skip


class TwoDevices(RuntimeError):
    """An operator was given tensors of two devices."""


class _Module(backend_registration._DummyBackendModule):
    """What torch asks of ``torch.pretended``."""

    def manual_seed(self, value: int) -> None:
        torch.default_generator.manual_seed(value)

    def manual_seed_all(self, value: int) -> None:
        torch.default_generator.manual_seed(value)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
DEVICE = torch.device(NAME, 0)


class Pretended(Tensor):
    """A tensor on the device; ``inner`` has its values."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Pretended":
        made: Pretended = Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(),
            dtype=inner.dtype, layout=inner.layout, device=DEVICE,
        )  # fmt: skip
        made.inner = inner
        return made

    def __repr__(self, **_: Any) -> str:
        return f"Pretended({self.inner!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) not in memo:
            made: Tensor = Pretended(self.inner.clone())
            if isinstance(self, nn.Parameter):
                made = nn.Parameter(made, self.requires_grad)
            memo[id(self)] = made
        return memo[id(self)]

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a tensor of a device has no numpy array; copy it to the CPU first")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Mode(TorchDispatchMode):
    """Sees what makes tensors out of none, and what moves them to the device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


WAITS: Counter[str] = Counter()
"""How often each line waited for the device, by what it did."""


@contextmanager
def pretended() -> Iterator[str]:
    """Make the device usable; return its name."""
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with _Mode():
            yield NAME
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)


def values(tensor: Tensor) -> Tensor:
    return tensor.inner if isinstance(tensor, Pretended) else tensor


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operator on the CPU; its results are where a GPU's would be."""
    tensors = list(_tensors((args, kwargs)))
    there = any(isinstance(each, Pretended) for each in tensors)
    asked = None if kwargs.get("device") is None else torch.device(kwargs["device"]).type
    if not there and asked != NAME:
        return func(*args, **kwargs)
    to = asked or NAME
    if there or func is aten._to_copy.default:
        if (why := _waits(func, args, kwargs, to, there)) is not None:
            WAITS[f"{why}: {_line()}"] += 1
        _check_devices(func, args, kwargs, tensors)
    plain = {**_mapped(kwargs, values), **({"device": CPU} if asked else {})}
    out = func(*_mapped(args, values), **plain)
    if not isinstance(out, (Tensor, tuple, list)) or to != NAME:
        return out
    if func is aten._to_copy.default and out is values(args[0]):
        out = out.clone()
    if func is aten.copy_.default:
        return args[0]
    made = _mapped(out, Pretended)
    return return_and_correct_aliasing(func, args, kwargs, made) if there else made


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return what an operator takes or gives with other tensors; faster than torch's trees."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)([_mapped(each, change) for each in value])
    if isinstance(value, dict):
        return {name: _mapped(each, change) for name, each in value.items()}
    return value


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors(each)


def _waits(func: Any, args: Any, kwargs: dict[str, Any], to: str, there: bool) -> str | None:
    """Return why the CPU waits for the device here, None where it does not."""
    if func in READ:
        return f"reads what only the device knows ({func})"
    if func is aten._to_copy.default:
        if there and to != NAME:
            return "copies to the CPU"
        if not there and not kwargs.get("non_blocking"):
            return "copies from the CPU"
    if func is aten.copy_.default and not (len(args) > 2 and args[2]):
        one, other = (isinstance(each, Pretended) for each in args[:2])
        return "copies between devices" if one != other else None
    if func is aten.repeat_interleave.Tensor and kwargs.get("output_size") is None:
        return "counts repeats"
    if func in INDEXED:
        for index in args[1]:
            if index is not None and index.dtype == torch.bool:
                return "counts a mask"
            if index is not None and not isinstance(index, Pretended):
                return "copies an index from the CPU"
        if any(not isinstance(each, Pretended) for each in args[2:3]):
            return "copies a value from the CPU"
    return None


def _check_devices(func: Any, args: Any, kwargs: Any, tensors: list[Tensor]) -> None:
    """Raise where tensors of the CPU, other than numbers and indices, meet the device's."""
    if func in (aten._to_copy.default, aten.copy_.default):
        return
    if func in INDEXED:
        tensors = list(_tensors((args[0], args[2:])))
    if any(not isinstance(each, Pretended) and each.dim() for each in tensors):
        found = ", ".join(
            f"{NAME if isinstance(each, Pretended) else 'cpu'} {tuple(each.shape)}"
            for each in tensors
        )
        raise TwoDevices(f"{func} is given {found} at {_line()}")


def _line() -> str:
    """Return the innermost line of the project's own code."""
    frame = sys._getframe()
    while (frame := frame.f_back) is not None:  # type: ignore[assignment]
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(ROOT):
            continue
        inside = path.relative_to(ROOT)
        if inside.parts[0] in ("cse_core", "cse_engine", "cse_defaults", "plugins") and not {
            "testing",
            "tests",
        } & {*inside.parts}:
            return f"{inside}:{frame.f_lineno}"
    return "?"
