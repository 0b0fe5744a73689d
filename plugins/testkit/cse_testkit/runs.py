"""Tiny runs: a composition of the tiny encoder and texts, and what some steps of it leave."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cse import Composition, Session, StepResult, StoredRun
from cse_cli.api import Installed, Registry, resolve
from cse_core.errors import CseError
from cse_core.options import models_named
from cse_core.protocols import Corpus
from cse_core.records import Kind
from cse_core.run_info import RunInfo
from cse_testkit.promises import installed_registry, plugins_of
from cse_testkit.tiny import TEACHER, data_file, shared_encoder, tiny_corpus
from cse_testkit.watching import Watch

BATCH = 4
"""Sentences of a batch, unless a setting says otherwise."""
MODELS: dict[Any, Any] = {}
"""What runs of this process read of models: a run has copies, which it may change."""
_WIDE = 2**16
"""A width that no size of a loss exceeds."""
SETTINGS = (
    *(f"train.batch_size={BATCH}", "train.lr=0.001", "train.max_steps=10", "data.shuffle=false"),
    *("train.precision=fp32", "train.device=cpu"),
)


def compose(
    *,
    recipe: str | Path | None = None,
    kinds: Mapping[Kind, Sequence[str]] | None = None,
    sets: Sequence[str] = (),
    registry: Registry | None = None,
    encoder: Path | None = None,
    corpus: Corpus | None = None,
) -> Composition:
    """Compose a recipe or kind flags for the tiny encoder and corpus.

    Sizes of a Matryoshka loss beyond the encoder's width are made smaller, all by one factor.

    Args:
        recipe: An installed recipe or a TOML file.
        kinds: Kind flags as typed: ``{"aug": ["fgsm"], "loss": ["+bml"]}``.
        sets: Settings as typed: ``["loss.infonce.temperature=0.1", "train.seed=7"]``; they come
            after a batch of 4, 10 steps over the rows in order, fp32 and the CPU.
        registry: What is installed, by default everything.
        encoder: Folder of the encoder; by default a shared uncased one.
        corpus: By default ``tiny_corpus()``.

    Raises:
        CseError: If the composer refuses it.
    """
    corpus, folder = corpus or tiny_corpus(), encoder or shared_encoder()
    facts = replace(_facts(folder), rows=len(corpus), columns=corpus.names)

    def composed(facts: RunInfo | None, *more: str) -> Composition:
        return resolve(
            registry or installed_registry(),
            recipe=recipe,
            kinds=kinds,
            sets=[*SETTINGS, *sets, *more],
            model=str(folder),
            data=[str(data_file(corpus))],
            facts=facts,
        )

    more: list[str] = []
    try:
        made = composed(facts)
    except CseError as error:
        if not of_dimensions(error):
            raise
        more += _smaller(composed(replace(facts, hidden=_WIDE, embedding=_WIDE)), facts.hidden)
        made = composed(facts, *more)
    if any(models_named(part.options) for part in made.parts):
        more += _teachers(made)
        made = replace(composed(facts, *more), named=composed(None, *more).named)
    return made


@cache
def _facts(encoder: Path) -> RunInfo:
    """Return the facts of an encoder; recipes take it for the starter."""
    made = resolve(installed_registry(), kinds={"pool": ["mean"]}, model=str(encoder))
    return replace(made.facts, origin="starter")


def of_dimensions(error: CseError) -> bool:
    """Check whether sizes of losses are all that is wrong: there are wider encoders."""
    several: Sequence[CseError] = getattr(error, "errors", (error,))
    return all(str(one.where).endswith(".dimensions") for one in several)


def _smaller(made: Composition, width: int | None) -> Iterator[str]:
    """Yield the settings by which the sizes of losses fit vectors of a width."""
    for part in made.of("loss"):
        sizes = getattr(part.options, "dimensions", ())
        if sizes and width and max(sizes) > width:
            fitting = [max(1, size * width // max(sizes)) for size in sizes]
            yield f"{part.path}.dimensions={fitting}"


def _teachers(made: Composition) -> Iterator[str]:
    """Yield the settings by which a tiny model stands for other models, but for folders."""
    for part in made.parts:
        for name, model in models_named(part.options).items():
            if not Path(model).is_absolute() and not Path(model).is_dir():
                yield f"{part.path}.{name}={shared_encoder(hidden=TEACHER)}"


class Rig:
    """Steps of a tiny run, and what they leave.

    Args:
        made_of: What ``compose`` returned, or a stored run, which goes on.
        plugins: The installed plugins of a composition.
        watch: Whether the parts' methods are called twice and compared; a path for one part's.
        compare: Whether they are; else what is watched is only seen.

    Attributes:
        session: The run: ``session.parts["loss.NAME"]`` is a part, ``session.encoder()`` the
            encoder in training.
        watch: What parts were seen to do, where they are watched.
        results: What each step left.
        bad_gradients: Parameters that once had a gradient that is not finite.
    """

    def __init__(
        self,
        made_of: Composition | StoredRun,
        plugins: Installed | None = None,
        *,
        watch: bool | str = False,
        compare: bool = True,
    ) -> None:
        self.session = Session(
            made_of, plugins=plugins or plugins_of(), models=MODELS, check_parts=True
        )
        self.watch = Watch(compare)
        if watch:
            seen = [part for path, part in self.session.parts.items() if watch in (True, path)]
            self.watch.see(seen, self.session.encoder())
        self.results: list[StepResult] = []
        self.bad_gradients: set[str] = set()

    def step(self, count: int = 1, *, rows: int | None = None) -> list[StepResult]:
        """Run steps over the rows in order, and return what they leave.

        Args:
            count: How many.
            rows: Rows of each batch; by default ``train.batch_size``.
        """
        session, left = self.session.prepare(), list[StepResult]()
        session.before_update(self._check_gradients)
        for _ in range(count):
            size = rows or 0
            taken = (torch.arange(size) + session.done * size) % len(session.rows)
            left.append(session.step(taken if rows else None, count_negatives=True))
        self.results += left
        return left

    @property
    def losses(self) -> tuple[float, ...]:
        """Return the loss of each step so far."""
        return tuple(float(result.loss) for result in self.results)

    @property
    def scalars(self) -> tuple[dict[str, float], ...]:
        """Return the numbers that each step logs: every loss's value and its parts."""
        return tuple(
            {name: float(value) for name, value in {**result.parts, **result.logged}.items()}
            for result in self.results
        )

    def weights(self) -> dict[str, Tensor]:
        """Return a copy of all trained weights, and of what parts that are modules hold."""
        weights: dict[str, Tensor] = dict(self.session.prepare().trained)
        for path, part in self.session.parts.items():
            if isinstance(part, nn.Module):
                weights |= {f"part.{path}.{name}": item for name, item in part.state_dict().items()}
        return {name: value.detach().clone() for name, value in weights.items()}

    def not_finite(self) -> str:
        """Return the first loss, or the gradients and weights, that are no finite numbers."""
        for number, loss in enumerate(self.losses):
            if not math.isfinite(loss):
                return f"the loss of step {number + 1} is {loss}"
        weights = self.weights().items()
        bad = [*sorted(self.bad_gradients), *(n for n, w in weights if not w.isfinite().all())]
        return f"no finite gradients or weights: {', '.join(bad[:5])}" if bad else ""

    def without_dropout(self) -> Rig:
        """Switch off the dropout that parts hold, also that of a branch; return the run."""
        for part in self.session.parts.values():
            for value in (part, *vars(part).values(), *getattr(part, "heads", {}).values()):
                for module in value.modules() if isinstance(value, nn.Module) else ():
                    if isinstance(module, nn.Dropout):
                        module.p = 0.0
        return self

    def _check_gradients(self) -> None:
        grads = {n: leaf.grad for n, leaf in self.session.trained.items() if leaf.grad is not None}
        if not nn.utils.get_total_norm(grads.values()).isfinite():
            self.bad_gradients |= {n for n, leaf in grads.items() if not leaf.isfinite().all()}


def run_steps(
    kinds: Mapping[Kind, Sequence[str]] | None = None,
    sets: Sequence[str] = (),
    recipe: str | Path | None = None,
    *,
    steps: int = 3,
    registry: Registry | None = None,
    **given: Any,
) -> Rig:
    """Compose as ``compose`` does, make all steps of the run, and return it.

    Args:
        kinds: As for ``compose``.
        sets: As for ``compose``.
        recipe: As for ``compose``.
        steps: How many.
        registry: As for ``compose``.
        given: The encoder and the corpus, as for ``compose``.

    Raises:
        CseError: If the composer refuses the composition.
    """
    sets = [f"train.max_steps={max(steps, 2)}", *sets]
    made = compose(recipe=recipe, kinds=kinds, sets=sets, registry=registry, **given)
    rig = Rig(made, plugins_of(registry))
    rig.step(steps)
    return rig
