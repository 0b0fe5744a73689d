"""Options of PromptBERT's and CoT-BERT's parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from cse_core.options import (
    AugmenterOptions,
    LossOptions,
    PoolerOptions,
    Temperature,
    TransformOptions,
)

TEXT, MASK = "[X]", "[MASK]"
"""What stands in a template for the text, and for the vocabulary's mask token."""


def _template(value: str) -> str:
    if value.count(TEXT) != 1 or MASK not in value:
        raise ValueError(f"a template has {TEXT} once, for the text, and {MASK} once or more")
    return value


Template = Annotated[str, AfterValidator(_template)]


class TemplateOptions(PoolerOptions):
    """Options of ``template``."""

    anchor: Template = f'This sentence of "{TEXT}" means{MASK}.'
    """Template of anchors, of other views and of every text after training: [X] is the text, the
    state of the last [MASK] its vector."""
    positive: Template | None = f'This sentence : "{TEXT}" means{MASK}.'
    """Template of positives; none: that of anchors."""
    negative: Template | None = None
    """Template of negatives; by default that of positives."""
    full_stop: bool = True
    """After training, append "." to a text whose last character is none of . ? " and ', as the
    published evaluation does."""
    leading_space: bool = True
    """After training, a byte-level vocabulary reads the first word with a space in front, as the
    published evaluation does."""

    def of_view(self, view: str) -> str:
        """Return the template of a view."""
        positive = self.positive or self.anchor
        forms = {"positive": positive, "negative": self.negative or positive}
        return forms.get(view, self.anchor)


class TemplateOnlyOptions(AugmenterOptions):
    """Options of ``template-only``."""

    gap: Literal["positions", "padding"] = "positions"
    """What replaces the text. positions: nothing, but later tokens keep their positions
    (PromptBERT); padding: as many padding tokens, which are attended to (CoT-BERT)."""
    columns: tuple[str, ...] | None = None
    """Column of each view's texts, for their lengths; by default those of the templates' views."""


class TemplateDenoisingOptions(TransformOptions):
    """Options of ``template-denoising``."""

    views: tuple[str, ...] = ("anchor", "positive")
    """Views from whose vectors those of their templates (the views VIEW-template) are subtracted.
    """
    projection: Literal["mlp", "none"] = "mlp"
    """mlp: a dense layer with tanh behind the difference, trained and not saved; none: the
    difference itself."""
    frozen: bool = False
    """No gradient goes through the template's vector."""


class ExtendedInfonceOptions(LossOptions):
    """Options of ``extended-infonce``."""

    temperature: Temperature = 0.05
    """Softmax temperature: similarities are divided by it."""
