"""A part in the least composition that lets it run, and made-up batches to match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from cse_core.capabilities import flatten
from cse_core.data import Corpus
from cse_core.engine.step import StepResult
from cse_core.parts import Part
from cse_core.recipes.composition import Composition, PlannedPart
from cse_core.records import Kind
from cse_core.registry.registry import Registry
from cse_core.types import Batch, StepContext
from cse_testkit.batches import make_batch, make_context
from cse_testkit.completion import complete
from cse_testkit.corpora import tiny_corpus
from cse_testkit.encoders import shared_encoder
from cse_testkit.installed import installed_registry
from cse_testkit.rigs import Rig, compose
from cse_testkit.watching import Watch


class Trial:
    """A part in the least composition that lets it run, and some watched steps of it.

    Args:
        part: Kind and name.
        options: Options that differ from the defaults.
        kinds: Kind flags instead of those found.
        sets: Further settings.
        columns: Further columns of the corpus.
        steps: Steps to run.
        registry: What is installed, by default everything.

    Attributes:
        path: The part's path in the recipe.
        composition: The composition.
        corpus: Its rows.
        rig: The run.
        results: What its steps left.
        error: What a step raised, None where none did.
        watch: The part's calls and what they broke.
    """

    def __init__(
        self,
        part: tuple[Kind, str],
        *,
        options: Mapping[str, Any] | None = None,
        kinds: Mapping[Kind, Sequence[str]] | None = None,
        sets: Sequence[str] = (),
        columns: Sequence[str] = (),
        steps: int = 4,
        registry: Registry | None = None,
    ) -> None:
        self.registry = registry or installed_registry()
        needed = complete(self.registry, [part], {part: options or {}})
        self.corpus: Corpus = tiny_corpus(columns=(*needed.columns, *columns))
        self.encoder = shared_encoder(cased=needed.cased)
        self._kinds = {**needed.kinds, **(kinds or {})}
        self._sets = [*needed.sets, *sets]
        self.composition = self._compose()
        self.path = f"{part[0]}.{part[1].rpartition('/')[2]}"
        self.steps = steps
        self.rig = self.fresh(watch=True)
        self.error: Exception | None = None
        self.results: list[StepResult] = []
        try:
            self.results = self.rig.step(steps)
        except Exception as error:  # the calls until then still say what the part did
            self.error = error
        self.watch: Watch = self.rig.watches[self.path]

    @property
    def part(self) -> Part:
        """Return the part of the watched run."""
        return self.rig.assembly.parts[self.path]

    @property
    def choice(self) -> PlannedPart:
        """Return the part's place in the composition: record, options, name."""
        return next(each for each in self.composition.parts if each.path == self.path)

    def fresh(
        self, *sets: str, precision: str = "fp32", watch: bool = False, total_steps: int = 10
    ) -> Rig:
        """Return a new run of the same composition, with other settings where given.

        Raises:
            CseError: If the composer refuses the settings.
        """
        return Rig(
            self._compose(*sets) if sets else self.composition,
            self.corpus,
            registry=self.registry,
            precision=precision,
            total_steps=total_steps,
            watch=watch,
        )

    def batch(self, level: str, *, sentences: int = 4, dtype: torch.dtype = torch.float32) -> Batch:
        """Return a made-up batch with the views, levels and groups of this run.

        Its corpus rows are no batch rows, so that nobody takes the one for the other.
        """
        views = {each.name: each.role for each in self.composition.views if each.name != "anchor"}
        provided = [
            token
            for choice in self.composition.of("positives")
            for token in flatten(choice.spec.provided(choice.options))
        ]
        groups = {t.partition(":")[2]: 2 for t in provided if t.startswith("positives:")}
        return make_batch(
            sentences=sentences,
            rows=[(17 + 5 * number) % len(self.corpus) for number in range(sentences)],
            segments=1 if level in ("sentence", "input") else 2,
            dimension=self.rig.assembly.online.encoder.hidden_size,
            views=views,
            groups=groups,
            level=level,
            levels=("sentence", "input"),
            dtype=dtype,
        )

    def context(self, batch: Batch) -> StepContext:
        """Return a context for a made-up batch; its texts are those of the corpus."""
        rows = batch.rows.tolist()
        texts = {name: self.corpus.column(name).take(rows) for name in self.corpus.names}
        return make_context(batch, texts=texts)

    def _compose(self, *sets: str) -> Composition:
        return compose(
            kinds=self._kinds,
            sets=[*self._sets, *sets],
            registry=self.registry,
            encoder=self.encoder,
            corpus=self.corpus,
        )
