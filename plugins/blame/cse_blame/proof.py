"""Trains a run again without some rows: what they moved, beside what random rows did."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cse import CseError, Session, StoredRun
from cse_blame.products import Pair
from cse_blame.replay import Kept
from cse_cli.api import Installed
from cse_core.reporter import Reporter

SAME = 1e-5
"""Difference of similarities, at a scale of 1 or more, up to which a training repeats another."""


@dataclass(frozen=True)
class Claim:
    """What a training without the first rows of a list showed.

    Attributes:
        rows: Their numbers.
        without: The similarity after it.
        change: That minus the similarity of the training with all rows.
        confirmed: Whether it changed as the list says, by more than without any of the random rows.
    """

    rows: tuple[int, ...]
    without: float
    change: float
    confirmed: bool


@dataclass(frozen=True)
class Proof:
    """What trainings of a run without some rows showed.

    Attributes:
        count: Rows that were left out, of each list as many as it has.
        again: The similarity after a training with all rows.
        repeats: Whether that is the run's own.
        raised: Without rows that raised it; None where none did.
        lowered: Without rows that lowered it.
        controls: The similarities after trainings without random other rows.
        changes: These minus the one with all rows.
    """

    count: int
    again: float
    repeats: bool
    raised: Claim | None
    lowered: Claim | None
    controls: tuple[float, ...]
    changes: tuple[float, ...]


def check_provable(run: StoredRun, count: int) -> None:
    """Refuse a run of which rows cannot be left out, before anything is computed.

    Raises:
        CseError: If its miners ask for rounds.
    """
    if miners := run.composition.round_miners:
        what = f"{miners[0].path} makes rounds of pairs, which change with every row left out"
        hint = "leave out --prove"
        raise CseError(what, where="--prove", value=count, hint=hint)


def prove(
    lists: tuple[Sequence[int], Sequence[int]],
    end: float,
    run: Path,
    plugins: Installed,
    pair: Pair,
    steps: int,
    count: int,
    controls: int,
    reporter: Reporter,
) -> Proof:
    """Train a run again without the first ``count`` rows of each list.

    Every training has the batches of the run, in which the rows are absent. All else that a step
    draws depends on the step alone, but dropout masks lie over a batch end to end: rows behind one
    that is absent get others. That, and smaller batches, is what the controls show.

    Args:
        lists: Rows that raised the similarity and rows that lowered it, the first most of all.
        end: The similarity in the run.
        run: The run's folder.
        plugins: The installed plugins.
        pair: The texts.
        steps: Of a training.
        count: Rows of each list.
        controls: Trainings without random rows that are in no list.
        reporter: Hears of the progress.

    Raises:
        CseError: If the run has too few other rows.
    """
    firsts = [tuple(rows[:count]) for rows in lists]
    again = Again(run, plugins, pair, steps, reporter, 1 + controls + sum(map(bool, firsts)))
    listed, most_rows = {row for rows in lists for row in rows}, max(map(len, firsts))
    drawn = _random_rows(again.seen, listed, most_rows, controls, again.seed)
    whole = again.without(())
    others = [again.without(rows) for rows in drawn]
    changes = tuple(other - whole for other in others)
    most = max(map(abs, changes), default=0.0)
    claims: list[Claim | None] = []
    for rows, sign in zip(firsts, (-1, 1), strict=True):
        if not rows:
            claims.append(None)
            continue
        left = again.without(rows)
        change = left - whole
        claims.append(Claim(rows, left, change, confirmed=change * sign > most))
    scale = max(1.0, abs(end))
    return Proof(
        count=count,
        again=whole,
        repeats=abs(whole - end) <= SAME * scale,
        raised=claims[0],
        lowered=claims[1],
        controls=tuple(others),
        changes=changes,
    )


class Again:
    """Trainings of a run without a folder, on the batches that it drew.

    Args:
        run: The run's folder.
        plugins: The installed plugins.
        pair: The texts.
        steps: Of a training.
        reporter: Hears of the progress.
        trainings: How many there will be.

    Attributes:
        seen: The rows of all batches.
        seed: Of the run.
    """

    def __init__(
        self,
        run: Path,
        plugins: Installed,
        pair: Pair,
        steps: int,
        reporter: Reporter | None = None,
        trainings: int = 1,
    ) -> None:
        self.run, self.plugins, self.pair, self.steps = run, plugins, pair, steps
        self.reporter, self.all, self.done = reporter or Reporter(), steps * trainings, 0
        self.models: dict[Any, Any] = {}
        with self._session() as session:
            self.seed = session.composition.train.seed
            self.seen = sorted({row for n in range(steps) for row in session.batch(n).tolist()})

    def _session(self) -> Session:
        kept = Kept(self.run, self.plugins, (0, 0), precision=None)
        return Session(kept, models=self.models)

    def without(self, rows: Collection[int]) -> float:
        """Train without some rows, and return the similarity at the end."""
        with self.trained(rows) as session:
            return self.pair.similarity(session)

    @contextmanager
    def trained(self, rows: Collection[int]) -> Iterator[Session]:
        """Give a session that was trained without some rows.

        A step whose batch has no other rows is not made; the next one is what it was.
        """
        absent = torch.tensor(sorted(rows), dtype=torch.int64)
        with self._session() as session:
            for number in range(self.steps):
                batch = session.batch(number)
                there = batch[~torch.isin(batch, absent)]
                session.done = number
                if len(there):
                    session.step(there)
                self.done += 1
                self.reporter.progress(self.done, self.all, "steps of trainings without rows")
            yield session


def _random_rows(
    seen: Sequence[int], listed: Iterable[int], count: int, times: int, seed: int
) -> list[list[int]]:
    """Draw ``times`` times ``count`` rows that are in no list, with a seed.

    Raises:
        CseError: If there are fewer.
    """
    others = torch.tensor([row for row in seen if row not in {*listed}], dtype=torch.int64)
    if times and len(others) < count:
        what = f"only {len(others)} of {len(seen)} rows are in no list to draw random ones from"
        hint = "ask for fewer with --prove and --top"
        raise CseError(what, where="--prove", value=count, hint=hint)
    draws = torch.Generator().manual_seed(seed)
    if times * count <= len(others):  # no row twice
        order = torch.randperm(len(others), generator=draws)[: times * count]
        return others[order].reshape(times, count).tolist()
    return [
        others[torch.randperm(len(others), generator=draws)[:count]].tolist() for _ in range(times)
    ]
