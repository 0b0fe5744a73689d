"""Rounds of training: what miners ask for between them, written down before it is trained on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor

from cse_core.errors import CseError, PartError, truncate_repr
from cse_core.files import atomic_folder, verify_checksums
from cse_core.parts import RoundContext
from cse_core.protocols import Corpus
from cse_core.records import MinerSpec
from cse_core.reporter import Reporter
from cse_core.types import Round
from cse_engine.compose.composition import Composition
from cse_engine.compose.settings import TrainOptions
from cse_engine.run.run_folder import RunFolder
from cse_engine.runtime import distributed
from cse_engine.runtime.seeds import generator
from cse_engine.runtime.sharing import gather_rows
from cse_engine.step.assembly import Assembly
from cse_engine.step.training_rows import Pairs, TrainingRows

PAIRS, ROUND = "pairs.parquet", "round.json"
ROUND_STATE = ("number", "place", "scores", "scheduled")
"""What a checkpoint keeps of ``Rounds``."""


@dataclass(frozen=True)
class TrainingRound(Round):
    """A round to train, over the corpus without pairs; 0 is that of a run without rounds."""

    pairs: Pairs = field(default_factory=dict)
    number: int = 0

    def options(self, base: TrainOptions) -> TrainOptions:
        """Return the options of the round.

        Epochs of its own bound a round as well as ``max_steps`` of the run, which is meant for
        rounds of other sizes: the smaller of the two counts.
        """
        patience = {} if self.patience is None else {"patience": self.patience}
        own = TrainOptions.model_validate({**base.model_dump(), **self.train, **patience})
        if not self.pairs or "epochs" not in self.train or "max_steps" in self.train:
            return own
        of_epochs = own.model_copy(update={"max_steps": None}).steps(len(self.pairs["text"]))
        most = of_epochs if own.max_steps is None else min(own.max_steps, of_epochs)
        return own.model_copy(update={"max_steps": most})


@dataclass
class Rounds:
    """Asks the miners for rounds, in recipe order; one round over the corpus where none asks.

    Attributes:
        encode: Vectors of texts by the current model.
        rows: The corpus as it is trained on where a round brings no pairs.
        place: Of the miner that is asked next.
        scores: Best score of each round that is over.
        scheduled: Steps of the learning rate's schedule that are done when a round begins.
    """

    assembly: Assembly
    corpus: Corpus
    folder: RunFolder
    encode: Callable[[Sequence[str]], Tensor]
    reporter: Reporter
    number: int = 0
    place: int = 0
    scores: list[float | None] = field(default_factory=list)
    scheduled: int = 0

    def __post_init__(self) -> None:
        """Find the miners that ask for rounds."""
        composition = self.assembly.composition
        self.miners = composition.round_miners
        self.rows = TrainingRows(self.corpus, composition.model.max_length)

    def each(self, resumed: bool) -> Iterator[TrainingRound]:
        """Yield the rounds as they are asked for, the interrupted one first where ``resumed``."""
        if not self.miners:
            yield TrainingRound()
        elif resumed and self.number:
            yield read_round(self.folder.round(self.number), self.number)
        while self.place < len(self.miners):
            planned = self.miners[self.place]
            part = self.assembly.parts[planned.path]
            wanted = part.next_round(self._context(self.number + 1))
            if wanted is None:
                self.place += 1
                continue
            columns = cast(MinerSpec, planned.spec).columns
            if wrong := _wrong(wanted, columns, self.assembly.composition, self.corpus):
                raise PartError(part, "next_round", wrong)
            self.number += 1
            folder = self.folder.round(self.number)
            if distributed.rank_and_size()[0] == 0:
                _write_round(folder, wanted)
            distributed.barrier()
            yield read_round(folder, self.number)

    def begin(self, current: TrainingRound) -> TrainingRows:
        """Show every part the rows of a round that begins, or goes on after a break."""
        rows = self.rows
        if current.pairs:
            rows = TrainingRows(self.corpus, rows.longest, current.pairs, rows, current.number)
        for part in self.assembly.parts.values():
            part.begin_round(rows, self._context(current.number))
        return rows

    def _context(self, number: int) -> RoundContext:
        seed = self.assembly.composition.train.seed

        def draws(name: str, **_: Any) -> torch.Generator:
            return generator(torch.device("cpu"), seed, number, "round", name)

        return RoundContext(
            round=number,
            corpus=self.corpus,
            encode=self.encode,
            scores=tuple(self.scores),
            generator=draws,
            shared=_shared,
            progress=self.reporter.progress,
        )


def _shared(count: int, make: Callable[[int, int], Tensor], at_once: int = 1) -> Tensor:
    """Return what ``RoundContext.shared`` does."""
    blocks = distributed.share(-(-count // at_once), *distributed.rank_and_size())
    start, stop = (min(block * at_once, count) for block in blocks)
    return gather_rows(lambda: make(start, stop))


def _wrong(wanted: Round, columns: tuple[str, ...], run: Composition, corpus: Corpus) -> str | None:
    """Return what a round does not keep of its contract, where its record promises ``columns``."""
    pairs = {name: _rows_or_texts(values) for name, values in wanted.pairs.items()}
    of_corpus = isinstance(pairs.get("text"), np.ndarray)
    there = {*pairs, *(corpus.names if of_corpus else ())}
    if missing := [name for name in ("text", "positive", *columns) if name not in there]:
        return f"promised a column {missing[0]}, returned {', '.join(pairs)}"
    if not of_corpus and "text" not in columns:
        return 'returned texts of its own; promise them in the record: columns=("text",)'
    sizes = {name: len(values) for name, values in pairs.items()}
    if len({*sizes.values()}) > 1:
        return f"promised columns of one length, returned {sizes}"
    for name, values in pairs.items():
        if run.needed_columns.types.get(name, "text") != "text":
            continue  # a number that a part reads
        if isinstance(values, np.ndarray):
            promised = f"corpus rows, integers from 0 to {len(corpus) - 1},"
            rows = values.dtype.kind in "iu"
            bad = values[(values < 0) | (values >= len(corpus)) if rows else ...].tolist()
        else:
            promised = "texts that are not blank"
            bad = [text for text in values if not (isinstance(text, str) and text.strip())]
        if bad:
            return f"promised {promised} as {name}, returned {truncate_repr(bad[0])}"
    names = [loss.name for loss in run.of("loss")]
    if wanted.losses is not None and not (wanted.losses and {*wanted.losses} <= {*names}):
        return f"promised names of losses ({', '.join(names)}), returned {wanted.losses}"
    try:
        TrainingRound(**vars(wanted)).options(run.train)
    except ValidationError as error:
        first = error.errors()[0]
        return f"returned train.{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return None


def _rows_or_texts(values: Any) -> Any:
    """Return numbers as an array, of corpus rows or of what a part reads, and texts as a list."""
    if isinstance(values, np.ndarray):
        return values if values.dtype.kind in "iuf" else values.tolist()
    numbers = len(values) and isinstance(values[0], int | float)
    return np.asarray(values) if numbers else values


def _write_round(folder: Path, wanted: Round) -> None:
    """Write a round's pairs and settings, whole or not at all; one without pairs is refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        name: pa.array(values if isinstance(values, np.ndarray) else list(values))
        for name, values in wanted.pairs.items()
    }
    table = pa.table(columns)
    if "text" not in columns or not len(table):
        hint = "give it documents of several sentences, or looser settings"
        raise CseError("the round has no pairs to train on", where="positives", hint=hint)
    with atomic_folder(folder) as beside:
        pq.write_table(table, beside / PAIRS)
        settings = {**vars(wanted), "train": dict(wanted.train)}
        del settings["pairs"]
        (beside / ROUND).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def read_round(folder: Path, number: int) -> TrainingRound:
    """Read a round that was written; refuse one whose files have changed since."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if wrong := verify_checksums(folder, PAIRS, ROUND):
            raise ValueError(wrong)
        settings = json.loads((folder / ROUND).read_text(encoding="utf-8"))
        table = pq.read_table(folder / PAIRS)
    except ValueError as error:
        raise CseError(
            f"the saved round is not the one that was mined: {str(error).splitlines()[0]}",
            where=str(folder),
            hint="restore it from a copy, or start a new run",
        ) from None
    pairs: dict[str, Any] = {
        name: table[name].to_numpy()
        if pa.types.is_integer(table[name].type)
        else table[name].to_pylist()
        for name in table.column_names
    }
    if settings["losses"] is not None:
        settings["losses"] = tuple(settings["losses"])
    return TrainingRound(pairs, **settings, number=number)
