"""Tiny runs: a composition ready to step, and what some steps of it leave."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cse import Composition, StepResult, resolve_precision
from cse_cli.terminal.progress import libraries_quiet
from cse_core.data import Corpus
from cse_core.encoders.dropout import Dropout
from cse_core.encoders.encoder import PackedEncoder
from cse_core.engine.assembly import Assembly, build
from cse_core.parts import Loss
from cse_core.recipes.compose import resolve
from cse_core.recipes.model_facts import model_facts
from cse_core.records import Kind
from cse_core.registry.registry import Registry
from cse_core.reporter import Reporter
from cse_core.tokenization.tokenizer import TextTokenizer
from cse_core.tokenization.training_rows import Batches
from cse_core.training import checkpoint as saved
from cse_core.training.checkpoint import Checkpoint
from cse_core.training.loop import TrainingLoop
from cse_core.training.rounds import Rounds, TrainingRound
from cse_core.training.run_folder import RunFolder
from cse_testkit.promises import installed_registry
from cse_testkit.tiny import TEACHER, shared_encoder, tiny_corpus
from cse_testkit.watching import Watch

BATCH = 4
"""Sentences of a batch, unless a setting says otherwise."""
SETTINGS = (f"train.batch_size={BATCH}", "train.lr=0.001", "train.precision=fp32")
_PURE = ("pool", "slices", "join")
"""Methods that the engine calls by itself and that must be pure."""
_GIVEN = ("content", "reads", "forward", "next_round")
"""Further ones, which may return something else when they are called twice, as by dropout."""


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
    registry, corpus = registry or installed_registry(), corpus or tiny_corpus()
    model = str(encoder or shared_encoder())
    # recipes take the tiny encoder for the starter's
    facts = replace(
        model_facts(model, registry), origin="starter", rows=len(corpus), columns=corpus.names
    )
    return resolve(
        registry, recipe=recipe, kinds=kinds, sets=[*SETTINGS, *sets], model=model, facts=facts
    )


@lru_cache(maxsize=16)
def _read(name: str, written: int, **how: Any) -> tuple[PackedEncoder, TextTokenizer]:
    return PackedEncoder.load_with_tokenizer(name, **how)


def _load(name: str, **how: Any) -> tuple[PackedEncoder, TextTokenizer]:
    """Return a copy of an encoder, which is read once, and its tokenizer."""
    weights = Path(name, "model.safetensors")
    encoder, tokenizer = _read(name, weights.stat().st_mtime_ns if weights.exists() else 0, **how)
    return deepcopy(encoder), tokenizer


def _folder_of(name: str) -> str:
    """Return a folder itself, and for any other encoder a tiny one that is wider than the run's."""
    folder = Path(name).is_absolute() or Path(name).is_dir()
    return name if folder else str(shared_encoder(hidden=TEACHER))


class Rig:
    """A composition ready to step, as a training run would.

    Args:
        composition: The checked recipe; its ``model.name`` is the encoder's folder. For a second
            encoder that is not a folder stands a tiny one of another hidden size.
        corpus: The training rows.
        precision: ``fp32`` or ``bf16``.
        total_steps: Steps of the round, for schedules.
        device: Where it trains.
        watch: Whether the parts' pure methods are called twice and compared.
        folder: Where rounds are written, the same for several processes; by default one of its own.

    Attributes:
        assembly: What was made: ``assembly.parts["loss.NAME"]`` is a part,
            ``assembly.online.encoder`` the encoder in training.
        loop: Its steps, once it has begun: those of the first round where a miner asks for rounds.
        watch: What parts were seen to do, where they are watched.
        results: What each step left.
        bad_gradients: Parameters that once had a gradient that is not finite.
    """

    def __init__(
        self,
        composition: Composition,
        corpus: Corpus,
        *,
        precision: str = "fp32",
        total_steps: int = 10,
        device: str = "cpu",
        watch: bool = False,
        folder: Path | None = None,
    ) -> None:
        self.composition, self.corpus, self.total_steps = composition, corpus, total_steps
        self.device = torch.device(device)
        self.precision = resolve_precision(precision, self.device)
        with libraries_quiet():
            self.assembly: Assembly = build(
                composition,
                corpus=corpus,
                device=self.device,
                resolve_model=_folder_of,
                total_steps=total_steps,
                load_encoder=_load,
            )
        self.watch = Watch()
        if watch:
            self._watch()
        for part in self.assembly.parts.values():
            part.prepare(corpus)
        self._folder = tempfile.TemporaryDirectory(prefix="cse-rounds-")
        own = RunFolder(folder or Path(self._folder.name))
        self.rounds = Rounds(self.assembly, corpus, own, self.encode, Reporter())
        self.results: list[StepResult] = []
        self.bad_gradients: set[str] = set()

    @cached_property
    def loop(self) -> TrainingLoop:
        """The steps of the round, over its rows in order; a miner is asked for one at first use."""
        current = next(self.rounds.each(False), TrainingRound())
        rows = self.rounds.begin(current)
        loop = TrainingLoop(self.assembly, current, rows, self.precision)
        loop.total = loop.optimizer.total_steps = self.total_steps
        loop.before_update = self._check_gradients
        return loop

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
        self.loop.batches = Batches(len(self.loop.rows), min(size, len(self.loop.rows)))
        left = [self.loop.step(count_negatives=True) for _ in range(count)]
        self.results += left
        return left

    @property
    def losses(self) -> tuple[float, ...]:
        """Return the loss of each step so far."""
        return tuple(float(result.loss) for result in self.results)

    @property
    def scalars(self) -> tuple[dict[str, float], ...]:
        """Return what each step logs: every loss's value and its parts."""
        return tuple(
            {name: float(value) for name, value in {**each.parts, **each.logged}.items()}
            for each in self.results
        )

    @property
    def unchanged(self) -> dict[str, int]:
        """Return augmenters that never changed anything, with the number of their calls."""
        return dict(self.loop.engine.builder.unchanged())

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Return ``[N, D]`` vectors of the current weights in evaluation mode, without heads."""
        with self.precision.autocast():
            return replace(self.assembly.online, heads={}).encode(texts, self.device)

    def weights(self) -> dict[str, Tensor]:
        """Return a copy of all trained weights."""
        return {name: value.clone() for name, value in saved.weights(self.assembly).items()}

    def not_finite(self) -> str:
        """Return the first loss, or the gradients and weights, that are no finite numbers."""
        for number, loss in enumerate(self.losses):
            if not math.isfinite(loss):
                return f"the loss of step {number + 1} is {loss}"
        weights = self.weights().items()
        bad = [*sorted(self.bad_gradients), *(n for n, w in weights if not w.isfinite().all())]
        return f"no finite gradients or weights: {', '.join(bad[:5])}" if bad else ""

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors and the JSON values that the parts keep in a checkpoint."""
        return saved.part_states(self.assembly)

    def save(self, folder: Path) -> None:
        """Write a checkpoint."""
        self.loop.checkpoint().write(folder)

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint of an equal composition."""
        loop, read = self.loop, Checkpoint.read(folder)
        saved.restore_assembly(self.assembly, read)
        loop.restore(read)

    def without_dropout(self) -> Rig:
        """Switch off all dropout, also that of heads, branches and parts; return the run."""
        held: list[Any] = []
        for own in self.assembly.encoders.values():
            held += (own.encoder, *own.heads.values())
        for part in self.assembly.parts.values():
            held += (part, *vars(part).values())
        for module in (each for each in held if isinstance(each, nn.Module)):
            for inside in module.modules():
                if isinstance(inside, Dropout | nn.Dropout):
                    inside.p = 0.0
        return self

    def _check_gradients(self) -> None:
        encoder = ("encoder", self.assembly.online.encoder)
        for path, module in (encoder, *self.assembly.modules()):
            for name, parameter in module.named_parameters():
                gradient = parameter.grad
                if gradient is not None and not bool(torch.isfinite(gradient).all()):
                    self.bad_gradients.add(f"{path}.{name}")

    def _watch(self) -> None:
        self.assembly.calls = self.watch
        self.watch.online = self.assembly.online.encoder
        for part in self.assembly.parts.values():
            for name in (*_PURE, *_GIVEN):
                if hasattr(part, name) and not (name == "forward" and isinstance(part, Loss)):
                    self.watch.around(part, name, pure=name in _PURE)


def run_steps(
    kinds: Mapping[Kind, Sequence[str]] | None = None,
    sets: Sequence[str] = (),
    recipe: str | Path | None = None,
    *,
    steps: int = 3,
    corpus: Corpus | None = None,
    **given: Any,
) -> Rig:
    """Resolve a composition as ``compose`` does, run some steps of it, and return the run.

    Args:
        kinds: Kind flags as typed: ``{"aug": ["fgsm"], "loss": ["+bml"]}``.
        sets: Settings as typed: ``["loss.infonce.temperature=0.1", "train.seed=7"]``.
        recipe: An installed recipe or a TOML file.
        steps: How many.
        corpus: As for ``compose``.
        given: The registry and the encoder, as for ``compose``.

    Raises:
        CseError: If the composer refuses the composition.
    """
    corpus = corpus or tiny_corpus()
    composition = compose(recipe=recipe, kinds=kinds, sets=sets, corpus=corpus, **given)
    rig = Rig(composition, corpus, total_steps=max(steps, 2))
    rig.step(steps)
    return rig
