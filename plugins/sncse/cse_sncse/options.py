"""Options of SNCSE's parts."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from cse_core.options import AugmenterOptions, Location, LossOptions, PoolerOptions
from cse_core.schedule import Schedule

TEXT, MASK = "[X]", "[MASK]"
"""What stands in a prompt for the text, and for the vocabulary's mask token."""
INSTALL_SPACY = "pip install 'spacy>=3.7' && python -m spacy download"


def _prompt(value: str) -> str:
    for mark, what in ((TEXT, "the text"), (MASK, "the mask token")):
        if value.count(mark) != 1:
            raise ValueError(f"a prompt has {mark} once, for {what}")
    return value


Prompt = Annotated[str, AfterValidator(_prompt)]


class NegationOptions(AugmenterOptions):
    """Options of ``negation``."""

    method: Literal["auto", "spacy", "rules", "code", "column"] = "auto"
    """auto: spacy where spaCy and the pipeline are installed, else rules; spacy: by a dependency
    parse, as in the paper; rules: English auxiliaries and do-support, without a parse; code: what
    SNCSE's public code makes of the parse, faults included; column: negations from the data."""
    column: str = "negated"
    """Column of the negated sentences, with method column."""
    spacy_model: Location = "en_core_web_sm"
    """Name or folder of the spaCy pipeline, with methods spacy and code."""

    def resolved(self) -> NegationOptions:
        """Return the options with ``auto`` replaced by the method that is installed.

        Raises:
            ValueError: If the method needs spaCy, and it is not installed.
        """
        spacy = find_spec("spacy") is not None
        if self.method in ("spacy", "code") and not spacy:
            hint = f"{INSTALL_SPACY} {self.spacy_model}, or use method rules"
            raise ValueError(f"method = {self.method}: spaCy is not installed; {hint}")
        if self.method != "auto":
            return self
        name = self.spacy_model
        pipeline = find_spec(name) is not None if name.isidentifier() else Path(name).exists()
        return self.model_copy(update={"method": "spacy" if spacy and pipeline else "rules"})


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
