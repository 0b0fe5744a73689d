"""Options of the miner."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cse_core.options import Location, MinerOptions


class MinedOptions(MinerOptions):
    """Options of ``mined``."""

    rounds: Annotated[int, Field(ge=1, le=10_000)] = 4
    """How many times it mines, each time before a round."""
    every: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Steps of a round; by default the run's steps divided by ``rounds``."""
    rows: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Rows whose anchors are searched in a round, others in each; by default all. A round trains
    ``every`` times the batch size of them: that number saves the rest of the search."""
    number: Annotated[int, Field(ge=1, le=100)] = 1
    """Negatives of an anchor; each makes a row of the round."""
    depth: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Nearest texts of an anchor to look at, without its positives."""
    skip: Annotated[int, Field(ge=0, le=9_999)] = 0
    """How many of the nearest to skip."""
    margin: Annotated[float, Field(ge=-2, le=2)] = 0.05
    """How far a negative's cosine must be below the positive's."""
    strategy: Literal["absolute", "relative"] = "relative"
    """absolute: the margin is a difference of cosines; relative: a share of the positive's."""
    take: Literal["nearest", "drawn"] = "nearest"
    """Of the remaining texts, the nearest, or some drawn by the seed."""
    texts: Location | None = None
    """A file or data set whose texts may be negatives too."""

    @model_validator(mode="after")
    def _some_are_left(self) -> MinedOptions:
        if self.skip + self.number > self.depth:
            raise ValueError(
                f"depth = {self.depth} has no {self.number} texts after skip = {self.skip}: "
                "raise depth"
            )
        return self

    def steps_of(self, run: int | None) -> int | None:
        """Return the steps of a round of a run with so many, None where it is not known yet.

        Raises:
            ValueError: If the rounds need more steps than the run has.
        """
        steps = self.every or (run and run // self.rounds)
        if run is not None and (not steps or self.rounds * steps > run):
            needed = f"{self.rounds} rounds of {steps or 1:,}"
            raise ValueError(f"the run has {run:,} steps, not {needed}; set rounds and every, or "
                             "train.max_steps")  # fmt: skip
        return steps
