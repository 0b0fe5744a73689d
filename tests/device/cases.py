"""What takes steps on a device: every installed part, and some in chunks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from cse_testkit import compose, installed_registry
from cse_testkit.completion import complete
from cse_testkit.runs import Rig
from cse_testkit.tiny import shared_encoder
from torch import nn

from cse_core.records import Kind
from cse_core.registry.registry import Registry
from cse_engine.compose.composition import Composition
from cse_engine.runtime import seeds

KINDS: tuple[Kind, ...] = ("aug", "pool", "positives", "negatives", "branch", "loss")
CHUNKS = ("train.chunk_size=2",)
Case = tuple[Kind, str, tuple[str, ...]]
LEXICON = Path(__file__).parents[2] / "plugins/ifcl/tests/lexicon.tsv"
NEEDS = {
    "synonym": (f"aug.synonym.lexicon={LEXICON}",),
    "mlm": ("loss.mlm.tied=false",),
    "reconstruction": ("loss.reconstruction.decoder=new",),
    "mined": ("positives.mined.margin=-1",),
    "one-word": ("model.max_length=64",),
}
"""Settings without which a part is refused; or shares weights with the encoder, of which the device
that is none makes two."""
CASES: tuple[Case, ...] = (
    *(
        (kind, found.name, NEEDS.get(found.name, ()))
        for kind in KINDS
        for found in installed_registry().parts(kind)
    ),
    ("loss", "infonce", CHUNKS),
    ("loss", "twins", CHUNKS),
    ("negatives", "queue", CHUNKS),
    ("pool", "segments", CHUNKS),
    ("aug", "fgsm", CHUNKS),
)
JOINED = {
    "positives.labels": "cse_engine/step/row_keys.py",
    "loss.auxiliary-mlm": "plugins/mlm/cse_mlm/auxiliary.py",
    "loss.maxsim": "plugins/late/cse_late/maxsim.py",
}
"""Runs that wait, and where alone. Views with unlike rows, titles and documents of many sentences:
the loss takes the rows that both have, and only the keys on the device say how many. Tokens that a
loss hides by draws on the device: the head, over the whole vocabulary, sees no others. Texts with
several vectors: only the keys on the device say which vectors are of a text."""


def named(case: Case) -> str:
    kind, name, sets = case
    return " ".join((f"{kind}.{name}", *sets))


def composed(cases: Sequence[Case], registry: Registry, *sets: str) -> Composition:
    """Return the least run of cases without dropout in the encoder."""
    needed = complete(registry, [(kind, name) for kind, name, _ in cases])
    own = [each for *_, sets in cases for each in sets]
    return compose(
        kinds=needed.kinds,
        sets=[*needed.sets, "model.dropout=0", *own, *sets],
        registry=registry,
        encoder=shared_encoder(cased=needed.cased),
        corpus=needed.corpus(),
    )


class _Torch:
    """torch, whose generators are all the CPU's."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def Generator(self, device: Any = None) -> torch.Generator:  # noqa: N802
        return torch.Generator()


@contextmanager
def cpu_generators() -> Iterator[None]:
    """Draw with generators of the CPU, whatever the device is."""
    before = seeds.torch
    seeds.torch = _Torch()  # type: ignore[attr-defined, assignment]
    try:
        yield
    finally:
        seeds.torch = before


def draws_dropout(rig: Rig) -> bool:
    """Return whether heads draw dropout of their own."""
    modules = (part for part in rig.session.parts.values() if isinstance(part, nn.Module))
    inside = (each for module in modules for each in module.modules())
    return any(getattr(each, "p", 0.0) for each in inside)
