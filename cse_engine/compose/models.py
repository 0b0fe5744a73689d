"""Models by name: where each lies, which backend reads it, what is known before it is loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import Field

from cse_core.backend import Backend
from cse_core.errors import CseError
from cse_core.files import HEADS, MANIFEST, SUMS, file_sum, read_json
from cse_core.loading import load_factory, package_path
from cse_core.model_card import WHOLE, Declared, Stage, checked_card
from cse_core.records import BackendSpec, EncoderSpec
from cse_core.registry.plugin_info import TOOLKIT
from cse_core.registry.registry import Registry
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_core.protocols import Encoder, MaskedHead, Tokenizer
    from cse_engine.compose.settings import ModelOptions

_HUB_NAME = re.compile(
    r"(?=.{1,96}$)(?!.*(--|\.\.|\.git$))[A-Z0-9]([\w.-]*\w)?(/[A-Z0-9]([\w.-]*\w)?)?", re.A | re.I
)
_MODEL_FILES = ("config.json", "modules.json", "model/config.json")


class _Manifest(Declared):
    row: Stage
    max_length: Annotated[int, Field(ge=2, le=10**9, strict=True)]
    origin: str | None = None


class Models:
    """The models that names stand for, by the installed encoders and backends."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    @cached_property
    def backends(self) -> dict[str, Backend]:
        """The installed backends, those of the toolkit last: what nobody else takes is theirs.

        Raises:
            CseError: If there is none.
        """
        items = self.registry.all(BackendSpec)
        records = sorted(items, key=lambda item: item.distribution == TOOLKIT)
        if not records:
            hint = "leave out no plugin of cse-toolkit: remove --no-plugin"
            raise CseError("no installed plugin reads models", where="model.name", hint=hint)
        return {item.name: load_factory(item.spec.factory)() for item in records}

    def backend(self, folder: Path) -> Backend:
        """Choose the backend of a folder."""
        return self.backends[self._taking(folder)]

    def _taking(self, folder: Path) -> str:
        takers = (name for name, backend in self.backends.items() if backend.takes(folder))
        return next(takers, [*self.backends][-1])

    def find(self, name: str) -> Path | None:
        """Find the folder that a model's name stands for, None where it is a name on the hub.

        Raises:
            CseError: If it is neither, names an encoder of a plugin that is not installed, or is
                the name of an installed encoder and of a folder with a model.
        """
        registry, path = self.registry, Path(name).expanduser()
        if registry.has("encoder", name):
            if any(Path(name, file).is_file() for file in _MODEL_FILES):
                record = registry.one(EncoderSpec, name)
                what = "is an installed encoder, and a folder with a model"
                hint = f"write ./{name} for the folder, {record.plugin}/{record.name} for the other"
                raise CseError(what, where="model.name", value=name, hint=hint)
            return package_path(registry.one(EncoderSpec, name).spec.path, where="model.name")
        if os.path.exists(path):
            inside = path / "model"
            inner = any((inside / file).is_file() for file in ("config.json", MANIFEST))
            return inside if inner else path
        if registry.how_to_get("encoder", name):
            registry.one(EncoderSpec, name)
        if name.startswith((".", "/", "~")) or _HUB_NAME.fullmatch(name) is None:
            names = ", ".join(item.name for item in registry.all(EncoderSpec)) or "none is there"
            hint = f"name a model folder, a run, an installed encoder ({names}) or a model of "
            hint += "the Hugging Face hub"
            raise CseError("no such folder", where="model.name", value=name, hint=hint)
        return None

    def folder(self, name: str, *, weights: bool = False, fetch: bool = True) -> Path | None:
        """Find the folder of a model, fetched where it is on the hub; None where it cannot be.

        Args:
            name: Name of the model.
            weights: Whether its weights are wanted too; they are there or refused.
            fetch: Whether to fetch it, or to find only what is here or was fetched before.

        Raises:
            CseError: As :meth:`find` does, and if the weights cannot be had.
        """
        path, installed = self.find(name), [item.name for item in self.registry.all(EncoderSpec)]
        for backend in self.backends.values():
            if path is None and fetch:
                path = backend.find(name, installed, weights=weights)
            elif path is None:
                path = backend.cached(name)
        return path

    def weights(self, name: str) -> Path:
        """Find the folder of a model with its weights."""
        folder = self.folder(name, weights=True)
        assert folder is not None, "weights are there or refused"
        return folder

    def look(self, name: str) -> tuple[RunInfo, Declared]:
        """Read what is known of a model and how it encodes, from only its small files.

        Where the hub cannot be reached and has nothing cached, all facts but the name are None.
        """
        folder = self.folder(name)
        if folder is None:
            return RunInfo(model=name), Declared()
        card, taking = self.card(folder, name), self._taking(folder)
        facts = replace(self.backends[taking].facts(folder, name), backend=taking)
        if self.registry.has("encoder", name):
            facts = replace(facts, origin=self.registry.one(EncoderSpec, name).name)
        elif roots := [root for root in (folder, folder / "model") if (root / MANIFEST).is_file()]:
            facts = replace(facts, origin=_manifest(roots[0], name).origin)  # perhaps saved over
        return replace(facts, cased=False) if card.do_lower_case else facts, card

    def check(self, name: str) -> None:
        """Refuse a model whose small files show that it cannot be loaded; not one on the hub."""
        if (folder := self.find(name)) is not None:
            self.backend(folder).check(folder, name)

    def card(self, folder: Path, name: str) -> Declared:
        """Read how a model encodes: cse's own file goes before those of its library."""
        saved = saved_by_cse(folder, name)
        return _manifest(saved, name) if saved else self.backend(folder).card(folder, name)

    def problems(self, options: ModelOptions, facts: RunInfo) -> Iterator[CseError | str]:
        """Yield the backend's objections to the options ``model.*``."""
        if self.registry.all(BackendSpec):  # else no facts were read either
            backend = self.backends.get(facts.backend) or [*self.backends.values()][-1]
            yield from backend.problems(options, facts)

    def load(self, name: str, options: ModelOptions, *, seed: int = 0) -> tuple[Encoder, Tokenizer]:
        """Load an encoder and its tokenizer (see ``Backend.load``)."""
        folder = self.weights(name)
        return self.backend(folder).load(folder, options, self.card(folder, name), seed=seed)

    def tokenizer(self, name: str) -> Tokenizer:
        """Load only a model's tokenizer (see ``Backend.load_tokenizer``)."""
        folder = self.weights(name)
        return self.backend(folder).load_tokenizer(folder, self.card(folder, name))

    def load_masked_lm(self, name: str, *, seed: int = 0) -> tuple[Encoder, MaskedHead, Tokenizer]:
        """Load an encoder with its head for masked tokens."""
        folder = self.weights(name)
        return self.backend(folder).load_masked_lm(folder, self.card(folder, name), seed=seed)

    def head_weights(self, folder: Path, name: str) -> dict[str, Any]:
        """Read the weights that a model's folder has for a pooler or head, by their names in it.

        Raises:
            CseError: If they cannot be read.
        """
        if (saved := saved_by_cse(folder, str(folder))) is None:
            return self.backend(folder).head_weights(folder, name)
        from cse_core.weights import read_tensors

        tensors, start = read_tensors(saved / HEADS), f"{name}."
        return {key[len(start) :]: value for key, value in tensors.items() if key.startswith(start)}


def _manifest(folder: Path, name: str) -> _Manifest:
    file = folder / MANIFEST
    return cast(_Manifest, checked_card(read_json(file, name, kind=dict), file, _Manifest))


def saved_by_cse(folder: Path, name: str) -> Path | None:
    """Find the folder that cse saved and sentence-transformers has not saved over, or None."""
    for root in (folder, folder / "model"):
        if not (root / MANIFEST).is_file():
            continue
        modules = root / "modules.json"
        if not modules.is_file() or WHOLE in modules.read_text(encoding="utf-8"):
            return root
        sums = read_json(root / SUMS, name, kind=dict) if (root / SUMS).is_file() else {}
        files = {root / key: kept for key, kept in sums.items() if key.endswith(".json")}
        if files and all(path.is_file() and file_sum(path) == files[path] for path in files):
            return root
    return None
