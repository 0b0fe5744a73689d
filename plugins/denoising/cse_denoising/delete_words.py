"""Words that are deleted."""

from __future__ import annotations

from dataclasses import replace

from cse_core.functional import first_of_word
from cse_core.parts import Augmenter
from cse_core.types import StepContext, TokenBatch, View, positions_in_order
from cse_denoising.options import DeleteWordsOptions


class DeleteWords(Augmenter):
    """Deletes whole words (Wang et al., 2021, section 3), each with ``probability``.

    Of a row whose words are all drawn one stays, a random one. Words are the tokenizer's; the
    authors' code deletes those of NLTK from the text. A row's draws do not depend on how rows are
    shared by processes and chunks.
    """

    options: DeleteWordsOptions

    def __call__(
        self, x: TokenBatch, tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> TokenBatch:
        """Return the same rows with fewer tokens; special and prompt tokens stay."""
        first, row = first_of_word(x), x.row_of_token()
        draw = ctx.uniform("kept", x)[first].masked_fill(x.special, -1.0)
        # The largest draw of a row is of the word that stays whatever happens.
        largest = draw.new_full((x.rows,), -1.0).scatter_reduce(0, row, draw, "amax")
        keep = x.special | (draw >= self.options.probability) | (draw == largest[row])
        kept = x.keep_tokens(keep)
        return replace(kept, positions=positions_in_order(x.positions[keep], kept.offsets))
