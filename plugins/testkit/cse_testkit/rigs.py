"""Runs a few steps of a composition with a tiny encoder, as a training run would."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from cse_core.data import Corpus
from cse_core.engine.assembly import Assembly, build
from cse_core.engine.optimizer import Optimizer
from cse_core.engine.step import Engine, StepResult
from cse_core.parts import Loss
from cse_core.recipes.compose import resolve
from cse_core.recipes.composition import Composition
from cse_core.recipes.model_facts import STARTER, model_facts, resolve_model
from cse_core.records import Kind, RunInfo
from cse_core.registry.registry import Registry
from cse_core.runtime.device import resolve_precision
from cse_core.runtime.reporter import Reporter
from cse_core.tokenization.training_rows import Batches, TrainingRows
from cse_core.training import checkpoint as saved
from cse_core.training.checkpoint import Checkpoint
from cse_core.training.loop import TrainingLoop
from cse_core.training.rounds import Rounds, TrainingRound
from cse_core.training.run_folder import RunFolder
from cse_testkit.corpora import tiny_corpus
from cse_testkit.encoders import shared_encoder
from cse_testkit.installed import installed_registry
from cse_testkit.watching import UncheckedCalls, Watch

BATCH = 4
"""Sentences of a batch, unless a setting says otherwise."""
SETTINGS = (f"train.batch_size={BATCH}", "train.lr=0.001", "train.precision=fp32")
_GIVEN = ("content", "reads", "forward")
"""Methods of poolers and heads, whose dropout may differ when they are called twice."""
_WATCHED = ("mine", "candidates", "weigh", "views", "pool", "slices", "join")


def tiny_facts(encoder: Path, corpus: Corpus, registry: Registry | None = None) -> RunInfo:
    """Return the facts of a tiny encoder and corpus; recipes take it for the starter's encoder."""
    return replace(
        model_facts(str(encoder), registry or installed_registry()),
        starter=True,
        rows=len(corpus),
        columns=corpus.names,
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
    """Resolve a recipe or kind flags for the tiny encoder and corpus.

    Args:
        recipe: As for ``cse_core.recipes.compose.resolve``; so are ``kinds`` and ``sets``.
        kinds: Kind flags.
        sets: Settings; they come after a batch of 4 and fp32.
        registry: What is installed, by default everything.
        encoder: Folder of the encoder; by default a shared uncased one.
        corpus: By default ``tiny_corpus()``.

    Raises:
        CseError: If the composer refuses it.
    """
    registry = registry or installed_registry()
    folder = encoder or shared_encoder()
    return resolve(
        registry,
        recipe=recipe,
        kinds=kinds,
        sets=[*SETTINGS, *sets],
        model=str(folder),
        facts=tiny_facts(folder, corpus or tiny_corpus(), registry),
    )


class Rig:
    """A composition ready to step.

    Args:
        composition: The checked recipe; its ``model.name`` is the encoder's folder.
        corpus: The training rows.
        registry: Where second encoders are found; ``starter`` means the run's own.
        precision: ``fp32`` or ``bf16``.
        total_steps: Steps of the round, for schedules.
        device: Where it trains.
        watch: Whether the parts' pure methods are called twice and compared.

    Attributes:
        assembly: What was made: ``assembly.parts["loss.NAME"]`` is a part,
            ``assembly.online.encoder`` the encoder in training.
        loop: Its steps, once it has begun: those of the first round where a miner asks for rounds.
        watches: By path, where watched.
        bad_gradients: Parameters that once had a gradient that is not finite.
    """

    def __init__(
        self,
        composition: Composition,
        corpus: Corpus,
        *,
        registry: Registry | None = None,
        precision: str = "fp32",
        total_steps: int = 10,
        device: str = "cpu",
        watch: bool = False,
    ) -> None:
        registry = registry or installed_registry()
        own = composition.model.name
        self.composition, self.corpus, self.total_steps = composition, corpus, total_steps
        self.device = torch.device(device)
        self.precision = resolve_precision(precision, self.device)
        self.assembly: Assembly = build(
            composition,
            corpus=corpus,
            device=self.device,
            resolve_model=lambda name: own if name == STARTER else resolve_model(name, registry),
            total_steps=total_steps,
        )
        self.watches: dict[str, Watch] = {}
        if watch:
            self._watch()
        for part in self.assembly.parts.values():
            part.prepare(corpus)
        self._folder = tempfile.TemporaryDirectory(prefix="cse-rounds-")
        self.rounds = Rounds(
            self.assembly, corpus, RunFolder(Path(self._folder.name)), self.encode, Reporter()
        )
        self.bad_gradients: set[str] = set()

    @cached_property
    def loop(self) -> TrainingLoop:
        """The steps of the round, over its rows in order; miners are asked for one now."""
        current = next(self.rounds.each(False), TrainingRound())
        rows = self.rounds.begin(current)
        loop = TrainingLoop(
            self.assembly, current, rows, self.precision, total=self.total_steps, prefetch=False
        )
        loop.before_update = self._check_gradients
        return loop

    @property
    def rows(self) -> TrainingRows:
        """Rows of the round."""
        return self.loop.rows

    @property
    def engine(self) -> Engine:
        """Engine of the round."""
        return self.loop.engine

    @property
    def optimizer(self) -> Optimizer:
        """Optimiser of the round."""
        return self.loop.optimizer

    def begin(self) -> None:
        """Begin the round, where it has not begun."""
        _ = self.loop

    def step(self, count: int = 1, *, rows: int | None = None) -> list[StepResult]:
        """Run steps over the rows in order, and return what they leave.

        Args:
            count: How many.
            rows: Rows of each batch; by default ``train.batch_size``.
        """
        size = rows or self.composition.train.batch_size
        self.loop.batches = Batches(len(self.rows), min(size, len(self.rows)))
        return [self.loop.step(count_negatives=True) for _ in range(count)]

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Return ``[N, D]`` vectors of the current weights in evaluation mode, without heads."""
        with self.precision.autocast():
            return replace(self.assembly.online, heads={}).encode(texts, self.device)

    def weights(self) -> dict[str, Tensor]:
        """Return a copy of all trained weights."""
        return {name: value.clone() for name, value in saved.weights(self.assembly).items()}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors and the JSON values that the parts keep in a checkpoint."""
        return saved.part_states(self.assembly)

    def save(self, folder: Path) -> None:
        """Write a checkpoint."""
        self.loop.checkpoint().write(folder)

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint of an equal composition."""
        self.begin()
        read = Checkpoint.read(folder)
        saved.restore_assembly(self.assembly, read)
        self.loop.restore(read)

    def _check_gradients(self) -> None:
        modules: list[tuple[str, nn.Module]] = [("encoder", self.assembly.online.encoder)]
        for path, module in (*modules, *self.assembly.modules()):
            for name, parameter in module.named_parameters():
                gradient = parameter.grad
                if gradient is not None and not bool(torch.isfinite(gradient).all()):
                    self.bad_gradients.add(f"{path}.{name}")

    def _watch(self) -> None:
        self.assembly.calls = UncheckedCalls()
        for path, part in self.assembly.parts.items():
            watch = self.watches[path] = Watch(part, path)
            for name in _WATCHED:
                method = getattr(part, name, None)
                if method is not None:
                    setattr(part, name, watch.around(name, method))
            part.next_round = watch.noting("next_round", part.next_round)  # type: ignore[method-assign]
            part.after_step = watch.giving("after_step", part.after_step)  # type: ignore[method-assign]
            for name in _GIVEN:
                method = getattr(part, name, None)
                if method is not None and not isinstance(part, Loss):
                    setattr(part, name, watch.giving(name, method))
        for placed in self.assembly.augmenters:
            watch = self.watches[placed.choice.path]
            placed.part = cast(Any, watch.around("call", placed.part))
        for name, loss in self.assembly.losses.items():
            watched = self.watches[f"loss.{name}"].around("call", loss)
            self.assembly.losses[name] = cast(Any, watched)


@dataclass(frozen=True)
class StepRun:
    """What some steps came to.

    Attributes:
        losses: Loss of each step.
        scalars: What each step logs: every loss's value and its parts.
        weights: Trained weights after the last step.
        state: Tensors and JSON values that the parts keep.
        unchanged: Augmenters that never changed anything, with the number of their calls.
        composition: What ran.
    """

    losses: tuple[float, ...]
    scalars: tuple[dict[str, float], ...]
    weights: dict[str, Tensor]
    state: tuple[dict[str, Tensor], dict[str, Any]]
    unchanged: dict[str, int]
    composition: Composition


def run_steps(
    kinds: Mapping[Kind, Sequence[str]] | None = None,
    sets: Sequence[str] = (),
    recipe: str | Path | None = None,
    *,
    steps: int = 3,
    registry: Registry | None = None,
    encoder: Path | None = None,
    corpus: Corpus | None = None,
    precision: str = "fp32",
) -> StepRun:
    """Resolve a composition and run some steps of it with a tiny encoder.

    Args:
        kinds: Kind flags as typed: ``{"aug": ["fgsm"], "loss": ["+bml"]}``.
        sets: Settings as typed: ``["loss.infonce.temperature=0.1", "train.seed=7"]``.
        recipe: An installed recipe or a TOML file.
        steps: How many.
        registry: What is installed, by default everything.
        encoder: Folder of the encoder; by default a shared uncased one.
        corpus: The rows; by default ``tiny_corpus()``.
        precision: ``fp32`` or ``bf16``.

    Raises:
        CseError: If the composer refuses the composition.
    """
    corpus = corpus or tiny_corpus()
    composition = compose(
        recipe=recipe, kinds=kinds, sets=sets, registry=registry, encoder=encoder, corpus=corpus
    )
    rig = Rig(
        composition, corpus, registry=registry, precision=precision, total_steps=max(steps, 2)
    )
    results = rig.step(steps)
    return StepRun(
        losses=tuple(float(result.loss) for result in results),
        scalars=tuple(
            {name: float(v) for name, v in {**result.parts, **result.logged}.items()}
            for result in results
        ),
        weights=rig.weights(),
        state=rig.state(),
        unchanged=dict(rig.engine.builder.unchanged()),
        composition=composition,
    )
