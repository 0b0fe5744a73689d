"""Options of cropping."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cse_core.options import AugmenterOptions

Share = Annotated[float, Field(gt=0, le=1)]


class CropOptions(AugmenterOptions):
    """Options of ``crop``."""

    unit: Literal["sentences", "words"] = "sentences"
    """What a span is made of; a text without two spans of sentences is cropped by words."""
    sentences: Annotated[int, Field(ge=1, le=1000)] = 2
    """Sentences of a span."""
    shortest: Annotated[int, Field(ge=0)] = 100
    """Fewest characters of a sentence that counts; shorter ones are skipped."""
    longest: Annotated[int, Field(ge=1)] = 250
    """Most characters of a sentence that counts."""
    least: Share = 0.3
    """Smallest share of a text's words in a span of words."""
    most: Share = 0.7
    """Largest such share."""

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> CropOptions:
        if self.shortest > self.longest or self.least > self.most:
            raise ValueError("shortest must not exceed longest, nor least most")
        return self
