"""Rounds of training: what miners ask for between them, written down before it is trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor

from cse_core.errors import CseError, PartError, truncate_repr
from cse_core.parts import RoundContext
from cse_core.protocols import Corpus
from cse_core.records import MinerSpec
from cse_core.types import Round
from cse_engine.compose.composition import Composition
from cse_engine.compose.settings import TrainOptions
from cse_engine.run.checkpoint import RESTORE, Checkpoint
from cse_engine.run.prepare import Prepared
from cse_engine.run.run_folder import RunFolder
from cse_engine.runtime import distributed
from cse_engine.runtime.seeds import generator
from cse_engine.runtime.sharing import gather_rows
from cse_engine.step.training_rows import Pairs, TrainingRows

_SETTINGS = tuple(field.name for field in fields(Round) if field.name != "pairs")


@dataclass(frozen=True)
class TrainingRound(Round):
    """A round to train, over the corpus without pairs; 0 is that of a run without rounds."""

    pairs: Pairs = field(default_factory=dict)
    number: int = 0


def round_options(asked: Round, base: TrainOptions) -> TrainOptions:
    """Lay the options of a round over those of the run.

    Epochs of its own bound a round as well as ``max_steps`` of the run, which is meant for rounds
    of other sizes: the smaller of the two counts.

    Raises:
        ValidationError: If one of them is wrong.
    """
    options = TrainOptions.model_validate({**base.model_dump(), **asked.train})
    bounded = "epochs" in asked.train and "max_steps" not in asked.train
    if not (asked.pairs and bounded and options.max_steps is not None):
        return options
    steps = options.model_copy(update={"max_steps": None}).steps(len(asked.pairs["text"]))
    return options.model_copy(update={"max_steps": min(options.max_steps, steps)})


@dataclass
class RoundState:
    """What a checkpoint keeps of the rounds.

    Attributes:
        number: Of the round that is trained, 0 where no miner asks for one.
        place: Of the miner that is asked next.
        scores: Best score of each round that is over.
        steps: Steps of these rounds.
        scheduled: Steps of the learning rate's schedule that are done when a round begins.
    """

    number: int = 0
    place: int = 0
    scores: list[float | None] = field(default_factory=list)
    steps: int = 0
    scheduled: int = 0


@dataclass
class Rounds:
    """Asks the miners for rounds, in recipe order; one round over the corpus where none asks.

    Attributes:
        encode: Vectors of texts by the current model.
        encode_in_training: The same by a branch, as it encodes in training.
    """

    prepared: Prepared
    folder: RunFolder
    encode: Callable[[Sequence[str]], Tensor]
    encode_in_training: Callable[..., Tensor]
    state: RoundState = field(default_factory=RoundState)

    def run(self, resumed: bool) -> Iterator[TrainingRound]:
        """Yield the rounds as they are asked for, the interrupted one first where ``resumed``.

        Each is written before it is trained on.

        Raises:
            CseError: If a round has no pairs, or one that was written is damaged.
            PartError: If a miner breaks the contract of ``next_round``.
        """
        state, composition = self.state, self.prepared.composition
        miners = composition.round_miners
        if not miners:
            yield TrainingRound()
        elif resumed and state.number:
            yield read_round(self.folder.round(state.number), state.number)
        while state.place < len(miners):
            planned = miners[state.place]
            part = self.prepared.assembly.parts[planned.path]
            asked = part.next_round(self._context(state.number + 1))
            if asked is None:
                state.place += 1
                continue
            columns = cast(MinerSpec, planned.spec).columns
            if wrong := _wrong(asked, columns, composition, self.prepared.corpus):
                raise PartError(part, "next_round", wrong)
            most = composition.train.steps(len(self.prepared.corpus))
            if asked.keep_schedule and state.scheduled >= most:
                what = (
                    f"keeps a schedule whose {most:,} steps are over, so it would train at rate 0"
                )
                hint = "return train={'max_steps': N} in its rounds"
                raise PartError(part, "next_round", f"{what}: {hint}")
            state.number += 1
            folder = self.folder.round(state.number)
            if distributed.rank_and_size()[0] == 0:
                _write_round(folder, asked)
            distributed.barrier()
            yield read_round(folder, state.number)
        if miners and not state.number:
            what, hint = "asked for no round, so nothing would be trained", "see what it mines"
            raise CseError(what, where=" and ".join(m.path for m in miners), hint=hint)

    def begin(self, current: TrainingRound) -> TrainingRows:
        """Show every part the rows of a round that begins, or goes on after a break."""
        rows, corpus = self.prepared.rows, self.prepared.corpus
        if current.pairs:
            rows = TrainingRows(corpus, rows.longest, current.pairs, rows, current.number)
        for part in self.prepared.assembly.parts.values():
            part.begin_round(rows, self._context(current.number))
        return rows

    def _context(self, number: int) -> RoundContext:
        seed = self.prepared.composition.train.seed

        def draws(name: str, **_: Any) -> torch.Generator:
            return generator(torch.device("cpu"), seed, number, "round", name)

        return RoundContext(
            round=number,
            corpus=self.prepared.corpus,
            encode=self.encode,
            encode_in_training=self.encode_in_training,
            scores=tuple(self.state.scores),
            generator=draws,
            shared=_shared,
            progress=self.prepared.reporter.progress,
            warning=self.prepared.reporter.warning,
        )


def _shared(count: int, make: Callable[[int, int], Tensor], at_once: int = 1) -> Tensor:
    """Make rows in all processes, each its share: ``RoundContext.shared``."""
    blocks = distributed.share(-(-count // at_once), *distributed.rank_and_size())
    start, stop = (min(block * at_once, count) for block in blocks)
    return gather_rows(lambda: make(start, stop))


def _wrong(asked: Round, columns: tuple[str, ...], run: Composition, corpus: Corpus) -> str | None:
    """Find what breaks a round's contract, where its record promises ``columns``."""
    pairs = {name: _column(values) for name, values in asked.pairs.items()}
    of_corpus = isinstance(pairs.get("text"), np.ndarray)
    present = {*pairs, *(corpus.names if of_corpus else ())}
    if missing := [name for name in ("text", "positive", *columns) if name not in present]:
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
            bad = values[(values < 0) | (values >= len(corpus))].tolist()
        else:
            bad = [text for text in values if not (isinstance(text, str) and text.strip())]
        if bad:
            promised = f"corpus rows, integers from 0 to {len(corpus) - 1}, or texts not blank"
            return f"promised {promised}, as {name}, returned {truncate_repr(bad[0])}"
    names = [loss.name for loss in run.of("loss")]
    if asked.losses is not None and not (asked.losses and {*asked.losses} <= {*names}):
        return f"promised names of losses ({', '.join(names)}), returned {asked.losses}"
    try:
        round_options(asked, run.train)
    except ValidationError as error:
        first = error.errors()[0]
        return f"returned train.{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return None


def _column(values: Any) -> Any:
    """Return integers, which are corpus rows, as an array; texts and other numbers as a list."""
    if len(values) and isinstance(values[0], int | np.integer):
        array = np.ascontiguousarray(values)
        if array.dtype.kind in "iu":
            return array
    return values.tolist() if isinstance(values, np.ndarray) else values


def _write_round(folder: Path, asked: Round) -> None:
    """Write a round's pairs and settings, whole or not at all; one without pairs is refused."""
    columns = {name: _column(values) for name, values in asked.pairs.items()}
    if not len(columns.get("text", ())):
        hint = "give it documents of several sentences, or looser settings"
        raise CseError("the round has no pairs to train on", where="positives", hint=hint)
    rows = {n: torch.from_numpy(v) for n, v in columns.items() if isinstance(v, np.ndarray)}
    pairs = {name: None if name in rows else [*values] for name, values in columns.items()}
    settings = {name: getattr(asked, name) for name in _SETTINGS}
    Checkpoint(rows, {**settings, "train": dict(asked.train), "pairs": pairs}).write(folder)


def read_round(folder: Path, number: int) -> TrainingRound:
    """Read a round that was written; refuse one whose files have changed since."""
    written = Checkpoint.read(folder, RESTORE)
    settings, rows = written.values, written.tensors
    pairs = {n: rows[n].numpy() if v is None else v for n, v in settings.pop("pairs").items()}
    if settings["losses"] is not None:
        settings["losses"] = tuple(settings["losses"])
    return TrainingRound(pairs, **settings, number=number)
