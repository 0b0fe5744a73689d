"""Some tokens of a row twice."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cse_core.functional import derive_seed, sample_in_rows
from cse_core.parts import Augmenter, Setup
from cse_core.types import StepContext, TokenBatch, View, positions_in_order, positions_of
from cse_esimcse.options import WordRepetitionOptions

Words = NDArray[np.uint64]

_STRIDE = np.uint64(0x9E3779B97F4A7C15)
CODE_CAP = 10
"""The code's rows have fewer repetitions than this."""


@dataclass(frozen=True)
class Units:
    """What is repeated: tokens, or words of several tokens.

    Attributes:
        of_token: ``[T]`` unit of each token, counted over all rows.
        first: ``[U]`` first token of each unit.
        row: ``[U]`` row of each unit.
        content: ``[U]`` bool, units that are no special or prompt tokens.
    """

    of_token: Tensor
    first: Tensor
    row: Tensor
    content: Tensor


class WordRepetition(Augmenter):
    """Repeats some units of each row, each right behind itself; special tokens never.

    ESimCSE, section 3.1: ``dup_len`` is uniform in ``[0, max(2, int(dup_rate * N))]``, and as many
    of the N sub-words are drawn without replacement, without another bound. The authors' code
    differs: it draws
    ``randrange(min(10, int(dup_rate * L)))`` of all L tokens, special tokens counted, and leaves
    rows alone where that share is zero; in its word mode ``randrange(min(10, W, max(2,
    int(dup_rate * W))))`` of W words, the last one never. It repeats once, before training; that
    is ``when = "once"``. ``count`` chooses between them, ``cap`` sets another bound.

    Rows are those that the encoder would take, cut to ``model.max_length`` before they grow, as in
    the code. A doubled token keeps its ``source`` and ``word``.
    """

    def __init__(self, options: WordRepetitionOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.seed = setup.seed

    def __call__(
        self, x: TokenBatch, tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> TokenBatch:
        """Return the rows with their repetitions, in the order of the positions there were."""
        if not len(x.ids):
            return x
        of_rows, of_tokens = self._draws(x, view, ctx)
        units = self._units(x)
        limit = self._limits(x, units)
        eligible = self._eligible(units, x.rows)
        count = (of_rows * limit).long()
        chosen = sample_in_rows(units.row, count, of_tokens[units.first], eligible)
        again = chosen[units.of_token].nonzero().squeeze(1)
        # Every token once, then the chosen units; sorted by unit, a copy behind its original.
        index = torch.cat([torch.arange(len(x.ids)), again])
        order = torch.argsort(units.of_token[index], stable=True)
        lengths = x.lengths.index_add(0, x.row_of_token()[again], torch.ones_like(again))
        longer = x.take_tokens(index[order], lengths)
        places = self._places(x, units, again)[order]
        return replace(longer, positions=positions_in_order(places, longer.offsets))

    def _places(self, x: TokenBatch, units: Units, again: Tensor) -> Tensor:
        """Return sort keys of tokens and copies in their rows, also for permuted positions.

        A copy of a unit comes right behind the last of its tokens.
        """
        scale = x.positions.amax() + 2
        last = torch.zeros_like(units.first)
        last = last.scatter_reduce(0, units.of_token, x.positions, "amax")
        copies = last[units.of_token[again]] * scale + x.positions[again] + 1
        return torch.cat([x.positions * scale, copies])

    def _draws(self, x: TokenBatch, view: View, ctx: StepContext) -> tuple[Tensor, Tensor]:
        """Return ``[R]`` and ``[T]`` uniform numbers."""
        if self.options.when == "once":
            return fixed_draws(x, derive_seed(self.seed, self.name, view.name))
        draws = ctx.generator("repetition", shared=False)
        of_rows = torch.rand(x.rows, generator=draws, dtype=torch.float64)
        return of_rows, torch.rand(len(x.ids), generator=draws, dtype=torch.float64)

    def _units(self, x: TokenBatch) -> Units:
        row = x.row_of_token()
        begins = torch.ones_like(x.special)
        if self.options.unit == "word":
            same = (row[1:] == row[:-1]) & (x.word[1:] == x.word[:-1])
            begins[1:] = ~(same & (x.word[1:] >= 0))
        first = begins.nonzero().squeeze(1)
        return Units(begins.cumsum(0) - 1, first, row[first], ~x.special[first])

    def _limits(self, x: TokenBatch, units: Units) -> Tensor:
        """Return ``[R]`` float64: repetitions of a row are uniform in 0 to this minus one."""
        options = self.options
        content = torch.zeros(x.rows, dtype=torch.long)
        content.index_add_(0, units.row, units.content.long())
        if options.count == "paper":
            limit = self._share(content).clamp_min(2) + 1
        elif options.unit == "word":
            limit = torch.minimum(self._share(content).clamp_min(2), content)
        else:
            limit = self._share(x.lengths)
        cap = options.cap
        if cap == "auto":
            cap = CODE_CAP if options.count == "code" else None
        if cap is not None:
            limit = limit.clamp_max(cap)
        return limit.clamp_min(1).double()

    def _share(self, lengths: Tensor) -> Tensor:
        return (lengths.double() * self.options.rate).long()

    def _eligible(self, units: Units, rows: int) -> Tensor:
        """Return ``[U]`` bool, units that may be repeated."""
        if self.options.unit == "token":
            return units.content
        # The last content unit of each row: the highest number among them.
        number = torch.where(units.content, torch.arange(len(units.row)), -1)
        last = torch.full((rows,), -1).scatter_reduce(0, units.row, number, "amax")
        return units.content & (number != last[units.row])


def fixed_draws(tokens: TokenBatch, seed: int) -> tuple[Tensor, Tensor]:
    """Return ``[R]`` and ``[T]`` float64 numbers in [0, 1), for rows and for tokens.

    Rows of equal ids draw the same, whatever the step, the order of the batch, the chunk or the
    process. The numbers are those of SplitMix64 (Steele, Lea and Flood, 2014), counted from a sum
    over the row.
    """
    place = positions_of(tokens.offsets).numpy().astype(np.uint64)
    ids = tokens.ids.cpu().numpy().astype(np.uint64)
    start = np.uint64(seed)
    hashes = _mix(_mix(ids + start) + place * _STRIDE)
    # Sums modulo 2**64, so that the difference of two of them is the sum of a row.
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    offsets = tokens.offsets.numpy()
    row = _mix(sums[offsets[1:]] - sums[offsets[:-1]] + start)
    rows = np.repeat(row, tokens.lengths.numpy())
    return _uniform(_mix(row + _STRIDE)), _uniform(_mix(rows + (place + np.uint64(2)) * _STRIDE))


def _mix(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _uniform(words: Words) -> Tensor:
    return torch.from_numpy((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)
