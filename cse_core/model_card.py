"""What a model's folder says of how it encodes, whatever library wrote it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from cse_core.errors import CseError, did_you_mean
from cse_core.suites import ROLE_PROMPTS, Role

Checked = TypeVar("Checked", bound=BaseModel)
AGAIN = "copy the whole model folder again"
WHOLE = "cse.in_sentence_transformers.Whole"
"""Module of sentence-transformers for a model that it has no modules for: without it, its loader
would pool by the mean and give other vectors in silence."""
ACTIVATIONS = {
    "tanh": "Tanh", "relu": "ReLU", "gelu": "GELU", "none": "Identity", "sigmoid": "Sigmoid",
    "silu": "SiLU", "elu": "ELU", "leaky-relu": "LeakyReLU", "softplus": "Softplus",
}  # fmt: skip
"""Functions behind a linear layer, and their classes in torch."""
_NAME = re.compile(r"\w[\w-]*", re.ASCII)


class Stage(BaseModel):
    """A row pooler, head or slicer, as ``cse.json`` names it."""

    use: str
    name: str = ""
    distribution: str | None = None
    options: dict[str, Any] = {}


SimilarityName = Literal["cosine", "dot", "euclidean", "manhattan"]


class Declared(BaseModel):
    """How a model encodes, with sentence-transformers' names where it has them.

    Attributes:
        row: Its row pooler; None where nothing says one, and it is the mean.
        several: Its poolers of several vectors of a row.
        max_length: Tokens of the longest row; None where nothing says it.
        normalize: Whether vectors are scaled to length 1, before they are cut to ``truncate_dim``.
        ensemble: Names of further encoders of the model, in ``members/``.
        join: How the vectors of all of them are joined.
        do_lower_case: Whether texts are lower-cased before the tokenizer has them.
        include_prompt: Whether the prompt's tokens are pooled; the row pooler ``mean`` says it in
            its options too.
    """

    format: Literal[1] = 1
    row: Stage | None = None
    several: tuple[Stage, ...] = ()
    heads: tuple[Stage, ...] = ()
    slice: Stage | None = None
    max_length: Annotated[int, Field(ge=2, le=10**9, strict=True)] | None = None
    prompts: dict[str, str] = {}
    default_prompt_name: str | None = None
    include_prompt: bool = True
    normalize: bool = False
    truncate_dim: Annotated[int, Field(ge=1, le=2**16, strict=True)] | None = None
    similarity_fn_name: SimilarityName | None = None
    ensemble: tuple[str, ...] = ()
    join: Literal["mean", "concat"] = "mean"
    do_lower_case: bool = False
    model_type: Literal["SentenceTransformer"] = "SentenceTransformer"
    transformer_task: Literal["feature-extraction"] = "feature-extraction"

    def prompt(
        self, given: str | None = None, where: str = "model.prompt", *, typed: bool = True
    ) -> str:
        """Return the text of a prompt by its name, any other text as it is, by default its own.

        A word alone that is ``typed``, and not recorded of a run, is a name: without a space or a
        sign behind it, it would be glued to each text.
        """
        name = self.default_prompt_name if given is None else given
        text = "" if name is None else self.prompts.get(name, name)
        if typed and _NAME.fullmatch(text) and text not in self.prompts.values():
            hint = f"write '{text}: ' for a text; {did_you_mean(text, self.prompts)}"
            raise CseError("is none of the model's prompts", where=where, value=text, hint=hint)
        if text and not self.include_prompt and self.row and self.row.use == "cls":
            what = "its pooling leaves out the tokens of the prompt, which cls cannot do"
            hint = "encode with sentence-transformers, or without a prompt: --prompt ''"
            raise CseError(what, where=where, value=text, hint=hint)
        return text

    @property
    def similarity(self) -> SimilarityName:
        """The similarity by which its vectors are compared."""
        return self.similarity_fn_name or "cosine"

    def role_prompts(self) -> dict[Role, str]:
        """Return the prompts of queries and of documents, where it has some."""
        named = ((role, name) for role, names in ROLE_PROMPTS.items() for name in reversed(names))
        return {role: self.prompt(name) for role, name in named if name in self.prompts}

    def inference(self) -> dict[str, Any]:
        """Return its settings for the vectors after training, as options of a recipe."""
        options = self.model_dump(include={"max_length", "normalize", "truncate_dim"})
        options["slice"] = self.slice is not None
        return {name: value for name, value in options.items() if value}

    def poolers(self) -> list[dict[str, Any]]:
        """Return its poolers, heads and slicer as items of a recipe, with its own weights."""
        stages = [self.row or Stage(use="mean"), *self.several, *self.heads, self.slice]
        return [
            {
                "use": f"{stage.distribution}/{stage.use}" if stage.distribution else stage.use,
                **stage.options,
                **{"name": stage.name or stage.use, "weights": "model"},
            }
            for stage in stages
            if stage is not None
        ]


def checked(kind: type[Checked], values: dict[str, Any], file: Path) -> Checked:
    """Check what a file of a model says.

    Raises:
        CseError: If it is malformed, or says what cse does not have.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        what, hint = f"is malformed: {place + ': ' if place else ''}{first['msg']}", AGAIN
        if first["type"] == "literal_error":
            what = f"says {place} {first['input']!r}, which cse does not have"
            hint = "update cse-toolkit, or encode with sentence-transformers"
        raise CseError(what, where=str(file), value=first["input"], hint=hint) from None


def checked_card(values: dict[str, Any], file: Path, kind: type[Declared] = Declared) -> Declared:
    """Check the values of a card, of which ``file`` has most, as :func:`checked` does."""
    if isinstance(prompts := values.get("prompts") or {}, dict):
        # sentence-transformers fills prompts that have no text with an empty one.
        values["prompts"] = {key: text or "" for key, text in prompts.items()}
    card = checked(kind, values, file)
    if (default := card.default_prompt_name) is not None and default not in card.prompts:
        what = f"its default_prompt_name {default!r} is none of its prompts"
        raise CseError(what, where=str(file), hint=AGAIN)
    return card
