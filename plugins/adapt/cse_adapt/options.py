"""Options of the questions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cse_core.options import AugmenterOptions

Share = Annotated[float, Field(ge=0, le=1)]


class QuestionOptions(AugmenterOptions):
    """Options of ``question``."""

    titles: Share = 0.5
    """How often the title asks for a text that has a title and several sentences."""
    keep: Share = 0.1
    """How often the sentence that asks for a text also stays in it."""
