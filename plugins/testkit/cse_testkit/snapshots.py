"""Deep comparison of what parts hold and return."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor, nn

from cse_core.data import Corpus
from cse_core.encoders.encoder import PackedEncoder
from cse_core.parts import Setup
from cse_core.tokenization.tokenizer import TextTokenizer

_SHARED = (PackedEncoder, TextTokenizer, Corpus, Setup, BaseModel, ModuleType, type)
_CALLABLES = (FunctionType, MethodType, BuiltinFunctionType)


@dataclass(frozen=True)
class Same:
    """Something that is compared by identity: what parts share, and functions."""

    number: int


def snapshot(value: Any) -> Any:
    """Return a copy of everything that a value holds, as plain data to compare later.

    Tensors and arrays are copied, generators become their states, objects the mapping of their
    attributes. What parts share and must not own (encoder, tokenizer, corpus, setup, options) is
    noted by identity.
    """
    return _copy(value, {})


def _copy(value: Any, seen: dict[int, tuple[int, Any]]) -> Any:
    if value is None or isinstance(value, str | bytes | int | float | complex):
        return value
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, np.random.Generator):
        return _copy(value.bit_generator.state, seen)
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, _SHARED) or isinstance(value, _CALLABLES):
        return Same(id(value))
    if id(value) in seen:
        return f"seen {seen[id(value)][0]}"
    # The value is kept beside its number, since the id of one that is gone is given out again.
    seen[id(value)] = len(seen), value
    if isinstance(value, Mapping):
        return {key: _copy(item, seen) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(item, seen) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    attributes = _attributes(value)
    if attributes is None:
        return Same(id(value))
    return {name: _copy(item, seen) for name, item in attributes.items()}


def _attributes(value: Any) -> dict[str, Any] | None:
    names = [
        name
        for base in type(value).__mro__
        for name in getattr(base, "__slots__", ())
        if isinstance(name, str) and hasattr(value, name)
    ]
    own = getattr(value, "__dict__", None)
    if own is None and not names:
        return None
    return {**{name: getattr(value, name) for name in names}, **(own or {})}


def difference(one: Any, other: Any, path: str = "") -> str | None:
    """Return where two snapshots differ first, or None where they are equal, bit for bit."""
    if type(one) is not type(other):
        return path or "its type"
    if isinstance(one, Tensor):
        return None if _equal(one, other) else path or "its values"
    if isinstance(one, np.ndarray):
        return None if np.array_equal(one, other, equal_nan=one.dtype.kind == "f") else path or "it"
    if isinstance(one, dict):
        if list(one) != list(other):
            return f"{path}.{sorted(set(map(str, one)) ^ set(map(str, other)))}".lstrip(".")
        pairs = [(key, one[key], other[key]) for key in one]
    elif isinstance(one, list | tuple):
        if len(one) != len(other):
            return f"{path} (its length)".strip()
        pairs = [(place, *each) for place, each in enumerate(zip(one, other, strict=True))]
    else:
        return None if one == other or (one != one and other != other) else path or "its value"
    for key, left, right in pairs:
        found = difference(left, right, f"{path}.{key}".lstrip("."))
        if found is not None:
            return found
    return None


def _equal(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if torch.equal(one, other):
        return True
    return (
        one.is_floating_point()
        and torch.equal(one.isnan(), other.isnan())
        and torch.equal(one.nan_to_num(), other.nan_to_num())
    )


def held_tensors(value: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield every tensor that an object holds, by its path; what parts share is left out."""
    yield from _tensors(value, "", {})


def _tensors(value: Any, path: str, seen: dict[int, Any]) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield path, value
        return
    plain = value is None or isinstance(value, str | bytes | int | float)
    if plain or isinstance(value, _SHARED) or isinstance(value, _CALLABLES) or id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, Mapping):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list | tuple | set | frozenset):
        items = [(str(place), item) for place, item in enumerate(value)]
    else:
        items = list((_attributes(value) or {}).items())
    for name, item in items:
        yield from _tensors(item, f"{path}.{name}".lstrip("."), seen)


def attached(part: Any) -> list[str]:
    """Return the tensors of a part that still hold a graph, or ask for a gradient unasked.

    Parameters of modules are no such tensors.
    """
    return [
        path
        for path, tensor in held_tensors(part)
        if tensor.grad_fn is not None
        or (tensor.requires_grad and not isinstance(tensor, nn.Parameter))
    ]


def random_states() -> dict[str, Any]:
    """Return the states of the process's own generators, which no part may draw from."""
    name, keys, *rest = np.random.get_state()
    return {
        "torch": torch.get_rng_state(),
        "numpy": [name, np.asarray(keys).copy(), *rest],
        "random": random.getstate(),
    }
