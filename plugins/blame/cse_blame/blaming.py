"""Which training rows moved the similarity of two texts: ``cse blame`` from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from cse import CseError, Session, open_run
from cse_blame.products import Moved, Pair, Products, second_moments
from cse_blame.replay import Kept, Place, Segment, check_run, segments
from cse_cli.api import Installed
from cse_core.errors import did_you_mean
from cse_core.reporter import Reporter

if TYPE_CHECKING:
    from cse_blame.proof import Proof
UPDATES = ("adamw", "sgd")
"""What a gradient does to the weights."""
CONTROLS = 9
"""Trainings without random rows beside a proof: by chance 1 list in 20 is confirmed."""


@dataclass(frozen=True)
class Row:
    """A training row and what it did to the similarity.

    Attributes:
        round: 0 in a run without rounds.
        row: Its number in the data, from 0; in a round that brings its own texts, in the round.
        steps: The steps, from 1, whose batches it was in.
        moved: What it moved the similarity, to first order: the sum over its steps of what the
            losses of the batch move it, less what those of the batch without the row do.
        share: The same as a share of the sum of the sizes of all rows' numbers.
        columns: Its texts and other values by column.
    """

    round: int
    row: int
    steps: tuple[int, ...]
    moved: float
    share: float
    columns: dict[str, Any]


@dataclass(frozen=True)
class At:
    """A checkpoint: what stood there, and the steps that were replayed by its weights.

    Attributes:
        step: Steps of the round that were made there; 0 is the start.
        similarity: Of the pair.
        steps: First and last of the steps that were replayed there, from 1.
    """

    round: int
    step: int
    similarity: float
    steps: tuple[int, int]


@dataclass(frozen=True)
class Blame:
    """What moved the similarity of two texts in a run.

    Attributes:
        kind: The similarity of the model: ``cosine``, ``dot``, ``euclidean``, ``manhattan``.
        start: The similarity before the first step; None where a run with rounds does not have it.
        end: That by the weights that the run ended with.
        raised: The rows that raised it most, the first most of all.
        lowered: The rows that lowered it most.
        rows: How many rows were in the batches.
        steps: How many steps were replayed.
        checkpoints: By whose weights.
        moved: What the gradients of all batches moved: beside ``end - start``, what first order
            misses.
        rest: What the batches' own gradients moved beyond the sum of their rows, as a share of the
            sum of the sizes of the batches' numbers: rounding, or losses that read more than the
            vectors and token states of their rows.
        proof: What training again without the rows showed; None where it was not asked for.
    """

    query: str
    document: str
    kind: str
    start: float | None
    end: float
    raised: tuple[Row, ...]
    lowered: tuple[Row, ...]
    rows: int
    steps: int
    checkpoints: tuple[At, ...]
    moved: float
    rest: float
    proof: Proof | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def blame(
    plugins: Installed | None,
    run: str | PathLike[str],
    query: str,
    document: str,
    *,
    top: int = 10,
    prove: int = 0,
    controls: int | None = None,
    update: str = "adamw",
    reporter: Reporter | None = None,
) -> Blame:
    """List the training rows that moved the similarity of two texts most.

    The steps of the run are replayed with its batches, draws and dropout masks, each by the weights
    of the nearest checkpoint that the run kept.

    Args:
        plugins: The installed plugins; by default they are loaded.
        run: The folder of a finished run.
        query: A text, which gets the prompt of queries where the model has one.
        document: A text, which gets that of documents.
        top: Rows to list of those that raised it, and of those that lowered it.
        prove: Trains again without so many of the first rows of each list; 0 does not.
        controls: Trainings without as many random rows, beside which the proof stands; by default
            nine: a list that says nothing is confirmed 1 time in 20.
        update: What a gradient does to the weights: ``adamw`` divides it by the roots of AdamW's
            second moments at the checkpoint, as the run did; ``sgd`` does not, as TracIn has it.
        reporter: Hears of the progress.

    Raises:
        CseError: If the run is unfinished, kept no checkpoints or cannot be replayed, its data or
            its model has changed, or the model reads both texts as the same.
    """
    for where, text in (("QUERY", query), ("DOCUMENT", document)):
        if not text.strip():
            raise CseError("is blank", where=where, value=text, hint="write a text")
    if update not in UPDATES:
        hint = did_you_mean(update, UPDATES)
        raise CseError("is unknown", where="--update", value=update, hint=hint)
    plugins, reporter = plugins or Installed(), reporter or Reporter()
    stored = open_run(run, plugins=plugins)
    end = check_run(stored)
    if prove:
        from cse_blame.proof import check_provable

        check_provable(stored, prove)
    elif controls is not None:
        raise CseError("counts trainings beside a proof", where="--controls", value=controls,
                       hint="ask for one with --prove N")  # fmt: skip
    pair = Pair(query, document, stored.composition.says.similarity)
    start: list[Place] = [] if stored.composition.round_miners else [(0, 0)]
    kept = [*start, *(place for place in stored.checkpoints if place > (0, 0))]
    sums = _Sums(Path(run), plugins, pair, update, reporter)
    blamed = sums.of(segments(kept, end), end, max(top, prove))
    lists = [[row.row for row in rows] for rows in (blamed.raised, blamed.lowered)]
    blamed = replace(blamed, raised=blamed.raised[:top], lowered=blamed.lowered[:top])
    if prove:
        from cse_blame.proof import prove as proved

        given = (lists[0], lists[1]), blamed.end, Path(run), plugins, pair, end[1]
        blamed = replace(blamed, proof=proved(*given, prove, controls or CONTROLS, reporter))
    return blamed


class _Sums:
    """Sums what the rows of all batches moved."""

    def __init__(
        self, run: Path, plugins: Installed, pair: Pair, update: str, reporter: Reporter
    ) -> None:
        self.run, self.plugins, self.pair, self.reporter = run, plugins, pair, reporter
        self.update = update
        self.models: dict[Any, Any] = {}
        self.moved: dict[Place, float] = {}
        self.steps: dict[Place, list[int]] = {}
        self.show: dict[int, Callable[[int], tuple[int, dict[str, Any]]]] = {}
        self.whole = self.parts = self.sizes = 0.0

    def of(self, parts: Sequence[Segment], end: Place, top: int) -> Blame:
        """Replay all segments, and list ``top`` rows in each direction."""
        total, done, seen = sum(part.stop - part.first for part in parts), 0, []
        moments: dict[str, torch.Tensor] = {}
        for part in reversed(parts):
            with self._session(part.place) as session:
                if self.update == "adamw":
                    # The start has none: it takes those of the checkpoint behind it.
                    moments = second_moments(session) or moments
                products = Products(session, self.pair, moments)
                for step in range(part.first, part.stop):
                    self._add(part.place[0], step, products.step(step))
                    done += 1
                    self.reporter.progress(done, total, "steps replayed")
                shown = part.first + 1, part.stop
                seen.append(At(*part.place, products.before, shown))
                self.show[part.place[0]] = _shower(session)
        seen.reverse()
        last = next((at.similarity for at in seen if (at.round, at.step) == end), None)
        if last is None:
            with self._session(end) as session:
                last = self.pair.similarity(session)
        sizes = sum(map(abs, self.moved.values())) or 1.0
        order = sorted(self.moved, key=lambda place: self.moved[place])
        lowered = [self._row(place, sizes) for place in order[:top] if self.moved[place] < 0]
        raised = [
            self._row(place, sizes) for place in order[: -top - 1 : -1] if self.moved[place] > 0
        ]
        starts = bool(seen) and (seen[0].round, seen[0].step) == (0, 0)
        return Blame(
            query=self.pair.query,
            document=self.pair.document,
            kind=self.pair.kind,
            start=seen[0].similarity if starts else None,
            end=last,
            raised=tuple(raised),
            lowered=tuple(lowered),
            rows=len(self.moved),
            steps=total,
            checkpoints=tuple(seen),
            moved=self.whole,
            rest=(self.whole - self.parts) / (self.sizes or 1.0),
        )

    def _session(self, place: Place) -> Session:
        kept = Kept(self.run, self.plugins, place)
        return Session(kept, models=self.models)

    def _add(self, number: int, step: int, moved: Moved) -> None:
        """Add a step's rows."""
        if not bool(moved.by.isfinite().all()):
            what = f"the products of step {step + 1} are not finite"
            raise CseError(what, where="RUN", value=str(self.run), hint="its training diverged")
        for row, value in zip(moved.rows.tolist(), moved.by.tolist(), strict=True):
            place = number, row
            self.moved[place] = self.moved.get(place, 0.0) + value
            self.steps.setdefault(place, []).append(step + 1)
        self.whole += moved.whole
        self.parts += float(moved.parts.sum())
        self.sizes += abs(moved.whole)

    def _row(self, place: Place, sizes: float) -> Row:
        number, row = place
        shown, columns = self.show[number](row)
        moved = self.moved[place]
        return Row(number, shown, tuple(self.steps[place]), moved, moved / sizes, columns)


def _shower(session: Session) -> Callable[[int], tuple[int, dict[str, Any]]]:
    """Return what reads a row of a round: its number, and its values by column."""
    return partial(_shown, session.rows, session.corpus)


def _shown(rows: Any, corpus: Any, row: int) -> tuple[int, dict[str, Any]]:
    place = torch.tensor([row])
    number = int(rows.corpus_row[row]) - rows.keys.first
    columns: dict[str, Any] = {}
    for name in rows.columns:
        offsets = rows.offsets(name)
        if offsets is not None:
            at = int(rows.corpus_row[row])
            inside = torch.arange(int(offsets[at]), int(offsets[at + 1]))
            columns[name] = rows.texts(name, inside)
        else:
            columns[name] = _plain(rows.texts(name, place)[0])
    return number, columns


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
