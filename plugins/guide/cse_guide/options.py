"""Options of the guide."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from cse_core.options import StoreOptions


class GuideOptions(StoreOptions):
    """Options of ``guide``."""

    branch: str | None = "frozen"
    """Branch of the guide; its model is an option of the branch: branch.frozen.model."""
    margin: Annotated[float, Field(ge=-2, le=2)] = 0.0
    """A text is removed unless its similarity to the anchor is at least this far below the
    positive's."""
    strategy: Literal["absolute", "relative"] = "absolute"
    """absolute: the margin is a difference of cosines; relative: a share of the positive's."""
    views: tuple[str, ...] = ()
    """Views of negatives with their own texts that it judges; by default all of the run."""
    stored: bool = False
    """Also judge what other stores keep. Ours, not the paper's."""

    @field_validator("branch")
    @classmethod
    def _is_another(cls, value: str | None) -> str | None:
        if value in (None, "online"):
            raise ValueError("must be another branch than the model in training")
        return value
