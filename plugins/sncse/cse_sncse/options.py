"""Options of SNCSE's parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from cse_core.options import AugmenterOptions, Location, LossOptions, PoolerOptions
from cse_core.schedule import Schedule

TEXT, MASK = "[X]", "[MASK]"
"""What stands in a prompt for the text, and for the vocabulary's mask token."""
NO_SPACY = "spaCy is not installed"
WITHOUT_SPACY = "pip install 'spacy>=3.7', or use method rules"
"""What is said where it is missing, and what to do."""


def _prompt(value: str) -> str:
    for mark, what in ((TEXT, "the text"), (MASK, "the mask token")):
        if value.count(mark) != 1:
            raise ValueError(f"a prompt has {mark} once, for {what}")
    return value


Prompt = Annotated[str, AfterValidator(_prompt)]


class NegationOptions(AugmenterOptions):
    """Options of ``negation``."""

    method: Literal["rules", "spacy", "code", "column"] = "rules"
    """rules: our own English rules; spacy: a dependency parse; code: what SNCSE's public code makes
    of that parse, faults included; column: negated sentences from the data."""
    column: str = "negated"
    """Column of the negated sentences, with method column."""
    spacy_model: Location = "en_core_web_sm"
    """Name or folder of the spaCy pipeline, with methods spacy and code."""


class MaskPromptOptions(PoolerOptions):
    """Options of ``mask-prompt``."""

    anchor: Prompt = f'This sentence : " {TEXT} " means {MASK} .'
    """Prompt of anchors and of every text after training: [X] is the text, [MASK] the mask."""
    positive: Prompt = f'This sentence of " {TEXT} " means {MASK} .'
    """Prompt of positives, and of negatives."""
    soft_negative: Prompt | None = None
    """Prompt of soft negatives; by default that of positives."""
    leading_space: bool = False
    """In byte-level vocabularies, keep the space in front of [X] as a token, as the public code
    does."""
    full_stop: bool = True
    """Append " ." to a text that does not end in a punctuation mark, as the public code does."""


class BmlOptions(LossOptions):
    """Options of ``bml``."""

    weight: Schedule = Schedule("constant", 1e-3, 1e-3)
    """Factor in the sum of losses (the paper's lambda: 1e-3 for BERT, 5e-4 for RoBERTa)."""
    negatives: Literal["none"] = "none"
    """It takes no negatives."""
    alpha: float = Field(default=0.1, ge=0)
    """A soft negative is less similar than the positive by at least this much."""
    beta: float = Field(default=0.3, ge=0)
    """A soft negative is less similar than the positive by at most this much."""
    view: str = "soft_negative"
    """View of the soft negatives."""

    @model_validator(mode="after")
    def _band(self) -> BmlOptions:
        if self.alpha > self.beta:
            raise ValueError(f"alpha {self.alpha} is above beta {self.beta}: the band is empty")
        return self
