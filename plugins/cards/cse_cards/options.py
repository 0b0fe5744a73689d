"""Options of CARDS's parts."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cse_core.options import AugmenterOptions, ModelName, StoreOptions


class CaseSwitchOptions(AugmenterOptions):
    """Options of ``case-switch``."""

    rate: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Share of the words whose first letter changes its case."""
    variant: Literal["v1", "v2"] = "v2"
    """v1: max(1, round(rate * words)) of the words that begin with a letter; v2: each word
    independently with probability rate, possibly none."""


class RetrievedOptions(StoreOptions):
    """Options of ``retrieved``."""

    view: Annotated[str, Field(pattern=r"^negative-.+$")] = "negative-retrieved"
    """View that it makes of the retrieved sentences: negative-NAME."""
    model: ModelName | None = None
    """Encoder, by name or folder, that finds the neighbours; by default the run's own, before
    training."""
    pool: Literal["mean", "cls"] | None = None
    """Pooling of that encoder's states: by default as a named model says, or the mean; with refresh
    = round, the run's own inference."""
    refresh: Literal["static", "round"] = "static"
    """static: neighbours are found once, and again before rounds with texts of their own; round:
    before each round, by the current model."""
    index: Literal["auto", "exact", "faiss"] = "auto"
    """exact: each text is compared with all; faiss: with those in the nearest lists, which misses
    some; auto: faiss for more than a million texts, if installed."""
    knn: Annotated[int, Field(ge=2)] = 65
    """Draw from the N most similar sentences, including the sentence itself."""
    skip: Annotated[int, Field(ge=0)] = 0
    """Leave out the N most similar other sentences, which may be near-duplicates (the code's
    skip_knn)."""
    take: Annotated[int, Field(ge=1)] = 1
    """Sentences drawn for each sentence in each step."""
    shared: bool = True
    """Use a drawn sentence as a negative of every anchor, not only of the one it was drawn for."""
    weight: float = 0.0
    """Logit added where a retrieved sentence meets the sentence that it was retrieved for; 0 is
    weight 1, log 2 weight 2."""

    @model_validator(mode="after")
    def _draws_from_enough(self) -> Self:
        if self.skip + self.take >= self.knn:
            raise ValueError(
                f"knn counts the sentence itself, so it must be above take and skip together: "
                f"{self.knn}, {self.take} and {self.skip}"
            )
        if self.refresh == "round" and self.model is not None:
            raise ValueError(
                "refresh = round finds neighbours by the model in training; leave model out, or "
                "take refresh = static"
            )
        return self
