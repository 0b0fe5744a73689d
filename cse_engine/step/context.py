"""What the engine answers to the parts of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.functional import derive_seed, hashed_uniform
from cse_core.options import LossOptions
from cse_core.token_batch import offsets_of, positions_of, ragged_index
from cse_core.types import SENTENCE, Batch, Embeddings, Negatives, StepContext, TokenBatch, View
from cse_engine.compose.composition import PlannedView
from cse_engine.runtime.seeds import generator
from cse_engine.step.assembly import Assembly
from cse_engine.step.negatives import loss_negatives
from cse_engine.step.row_keys import number
from cse_engine.step.training_rows import TrainingRows


@dataclass(kw_only=True, eq=False)
class Context(StepContext):
    """The context of a step, narrowed by ``replace`` for a part that has draws or rows of its own.

    Attributes:
        assembly: The parts and encoders of the run.
        training: The rows of the round.
        seed: ``train.seed`` of the round.
        logged: Takes the scalars that parts log.
        index: ``[b]`` rows of the round whose texts and values it gives.
        encode: Gives the vectors of a view by a branch; None before anything is encoded.
        place: A part that has draws of its own, and the view that it changes.
        chunk: The chunk that it changes, by which its generators differ too.
        first: Batch row of owner 0 of the tokens that ``uniform`` gets.
        gradients: Looks up the input gradients that an augmenter asks for.
    """

    assembly: Assembly
    training: TrainingRows
    seed: int
    rank: int
    logged: dict[str, Tensor | float]
    index: Tensor
    encode: Callable[[str, str | None], Mapping[str, Embeddings]] | None = None
    place: tuple[str, ...] = ()
    chunk: tuple[int, ...] = ()
    first: int = 0
    gradients: Callable[[View, TokenBatch], Tensor | None] | None = None

    def generator(
        self, name: str, *, shared: bool = True, device: torch.device | str = "cpu"
    ) -> torch.Generator:
        """Seed it by the run, the step, the place and the chunk."""
        who = "shared" if shared else f"rank {self.rank}"
        purpose = self.round, self.step, "part", name, who
        return generator(torch.device(device), self.seed, *purpose, *self.place, *self.chunk)

    def uniform(self, name: str, tokens: TokenBatch) -> Tensor:
        """Draw by the row keys of the tokens, and by the place."""
        key = derive_seed(self.seed, self.round, self.step, "uniform", name, *self.place)
        row, device = tokens.row_of_token(), tokens.ids.device
        places = positions_of(tokens.offsets).to(device, non_blocking=True)
        return hashed_uniform(key, tokens.owner[row] + self.first, tokens.slot[row], places)

    def vectors(self, view: str, branch: str | None) -> Mapping[str, Embeddings]:
        """Encode what a record declares in ``encodes`` once; raise for anything else."""
        if self.encode is None:
            raise RuntimeError(f"asks for the vectors of view {view} before they are encoded")
        return self.encode(view, branch)

    def beside(self, view: str, rows: Embeddings) -> Mapping[str, Tensor]:
        """Match the vectors of other branches to the rows by their texts."""
        kept = {"slot": rows.slot}
        for branch in self.assembly.composition.side_branches:
            other = self.vectors(view, branch)[SENTENCE]
            ordered, order = torch.sort(number(other.owner, other.text))
            place = torch.searchsorted(ordered, number(rows.owner, rows.text))
            kept[branch] = other.vectors[order[place]]
        return kept

    def gradient(self, view: View, tokens: TokenBatch) -> Tensor | None:
        """Look it up by token."""
        return None if self.gradients is None else self.gradients(view, tokens)

    def texts(self, column: str) -> list[str]:
        """Read the column."""
        return self.training.texts(column, self.places(column)[0])

    def values(self, column: str) -> Tensor:
        """Read the column; raise ``RuntimeError`` if no record reads it as numbers."""
        composition = self.assembly.composition
        kind = composition.needed_columns.types.get(column, "text")
        if kind == "text":
            what = f"column {column} has no type of numbers"
            raise RuntimeError(f'{what}: write reads = {{"{column}": "float"}} in the record')
        places, counts = self.places(column, composition.scored_views.get(column))
        values = self.training.values(column, kind)[places]
        if counts is not None:
            rows = torch.arange(len(counts)).repeat_interleave(counts)
            listed = values.new_zeros(len(counts), max(1, int(counts.max())))
            values = listed.index_put((rows, positions_of(offsets_of(counts))), values)
        return values.to(self.device, non_blocking=True)

    def places(self, column: str, view: PlannedView | None = None) -> tuple[Tensor, Tensor | None]:
        """Return which texts of a column the rows at hand have: ``[N]`` rows, or places of lists.

        Of lists a view that draws has one each, others all, of which ``[b]`` counts come with them.
        """
        offsets = self.training.offsets(column)
        if offsets is None:
            return self.index, None
        rows = self.training.corpus_row[self.index]
        starts, counts = offsets[rows], offsets.diff()[rows]
        if view is None or view.lists != "draw":
            return ragged_index(starts, counts), counts
        key = derive_seed(self.seed, self.round, self.step, "draw", view.name)
        drawn = (hashed_uniform(key, self.index) * counts).long()
        return starts + drawn.clamp_max(counts - 1), None

    def tokens(self, column: str) -> TokenBatch:
        """Read the column, which the round tokenised before; refuse one of lists."""
        if self.places(column)[1] is not None:
            what = f"column {column} holds lists, and a part of this run reads one text of each row"
            hint = "set its view's lists = rows, or remove the part"
            raise CseError(what, where="data", hint=hint)
        tokenizer = self.assembly.online.tokenizer
        return self.training.content(column, self.index, tokenizer)

    def negatives(
        self, batch: Batch, options: LossOptions, given: Negatives | None = None
    ) -> Negatives:
        """Mask them as the options say."""
        return loss_negatives(batch, options, given)

    def log(self, name: str, value: Tensor | float) -> None:
        """Refuse what cannot be logged, by the name of the part that is called."""
        self.assembly.calls.log(self.logged, name, value)
