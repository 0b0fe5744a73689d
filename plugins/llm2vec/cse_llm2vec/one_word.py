"""The state of the last token of a template that asks for the text in one word."""

from __future__ import annotations

from torch import Tensor

from cse_core.parts import RowPooler, Setup
from cse_core.types import Hidden, TokenBatch
from cse_llm2vec.options import TEXT, OneWordOptions


class OneWord(RowPooler):
    """PromptEOL (Jiang et al., 2024): what a decoder would say next has the text's meaning.

    Rows end with the template, unless the tokenizer itself puts something behind every text; then
    the token before that is read.
    """

    options: OneWordOptions

    def __init__(self, options: OneWordOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self._behind = len(setup.tokenizer.after)

    def prompt(self, view: str) -> tuple[str, str]:
        """Return the template's texts before and after the content."""
        before, after = self.options.template.split(TEXT)
        return before, after

    def reads(self, tokens: TokenBatch) -> Tensor:
        """Return the last tokens of the rows' templates ``[R]``."""
        return tokens.offsets[1:] - 1 - self._behind

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, H]``."""
        return hidden.at(self.reads(tokens))
