"""The state of a mask token in a template around the text."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from cse_core.errors import CseError
from cse_core.parts import RowPooler, Setup
from cse_core.types import Hidden, TokenBatch
from cse_promptbert.options import MASK, TEXT, TemplateOptions

ENDS = frozenset(".?\"'")
"""Characters after which the published evaluation appends no full stop."""


class TemplatePooler(nn.Module, RowPooler):
    """The last state of the template's last mask token.

    PromptBERT (Jiang et al., 2022), section 3.2; CoT-BERT (Zhang et al., 2023) has a mask for each
    of two stages. Mask tokens of the text itself are nothing but tokens. Where a row has none of
    the template's (a branch with another vocabulary) its vector is NaN, which ends the run.

    It has no weights. It is a module because texts are read in another way in training than when
    they are scored: there a full stop may be appended, and the first word has its space in front.
    """

    def __init__(self, options: TemplateOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        self.dimension = setup.dimension
        self.train(setup.corpus is not None)
        self._hf = hf = setup.tokenizer.hf
        where = f"pool.{setup.name}"
        if hf.mask_token is None or hf.mask_token_id is None:
            raise CseError(
                "needs a mask token, and the vocabulary has none",
                where=where,
                hint="choose another --model or --pool",
            )
        self._mask_id = int(hf.mask_token_id)
        for view in ("anchor", "positive", "negative"):
            ids = [token for text in self.prompt(view) for token in self._ids(text)]
            if ids.count(self._mask_id) != (masks := options.of_view(view).count(MASK)):
                raise CseError(
                    f"has {masks} mask tokens, and the vocabulary reads {ids.count(self._mask_id)}",
                    where=f"{where}.{view}",
                    value=options.of_view(view),
                    hint=f"put a space on both sides of {MASK}",
                )
        self._stop = self._ids(".") if options.full_stop else []
        tokens, unknown = hf.convert_ids_to_tokens(range(len(hf))), hf.unk_token_id
        self._closed = [token[-1:] in ENDS and i != unknown for i, token in enumerate(tokens)]
        self._spaced: dict[tuple[int, ...], list[int]] = {}

    def prompt(self, view: str) -> tuple[str, str]:
        """Return the texts before and after the content, with the vocabulary's mask token."""
        template = self.options.of_view(view).replace(MASK, self._hf.mask_token)
        before, after = template.split(TEXT)
        # A space that ends the text before the content is a token of its own in byte-level BPE.
        return before.rstrip(), after.rstrip()

    def content(self, tokens: TokenBatch) -> TokenBatch:
        """Return content as the published evaluation reads it; in training as it is.

        Of the slices of a text the first one has its first word and the last one gets the stop.
        """
        if self.training or not (self._stop or self.options.leading_space):
            return tokens
        ids, place, lengths = [], [], []
        offsets, given, word = (part.tolist() for part in (tokens.offsets, tokens.ids, tokens.word))
        owner, slot = tokens.owner.tolist(), tokens.slot.tolist()
        for row, (start, stop) in enumerate(zip(offsets, offsets[1:], strict=False)):
            head: list[int] = []
            opens = row == 0 or owner[row] != owner[row - 1] or slot[row] <= slot[row - 1]
            if self.options.leading_space and opens and start < stop:
                end = next((i for i in range(start, stop) if word[i] != word[start]), stop)
                head = self._with_space(tuple(given[start:end]))
                place += [min(start + i, end - 1) for i in range(len(head))]
                start = end
            last = row + 1 == tokens.rows
            ends = last or owner[row] != owner[row + 1] or slot[row] >= slot[row + 1]
            full = head + given[start:stop]
            place += range(start, stop)
            if full and ends and not self._closed[full[-1]]:
                full += self._stop
                place += [stop - 1] * len(self._stop)
            ids += full
            lengths.append(len(full))
        longer = tokens.take_tokens(torch.tensor(place, dtype=torch.long), torch.tensor(lengths))
        return replace(longer, ids=torch.tensor(ids, dtype=torch.long))

    def reads(self, tokens: TokenBatch) -> Tensor:
        """Return the index of each row's last mask of the template ``[R]``; 0 where it has none."""
        return self._places(tokens).clamp_min(0)

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, H]``."""
        place = self._places(tokens)
        states = hidden.at(place.clamp_min(0))
        return states.masked_fill((place < 0).unsqueeze(1), torch.nan)

    def _places(self, tokens: TokenBatch) -> Tensor:
        masks = (tokens.ids == self._mask_id) & tokens.special
        index = torch.arange(len(tokens.ids), device=tokens.ids.device)
        places = index.masked_fill(~masks, -1)
        none = torch.full((tokens.rows,), -1, device=places.device)
        return none.scatter_reduce(0, tokens.row_of_token(), places, "amax")

    def _with_space(self, word: tuple[int, ...]) -> list[int]:
        """Return the ids of a text's first word with a space in front.

        A word that the tokenizer does not read back as it stands, as one that was cut, is kept.
        """
        if word not in self._spaced:
            text = self._hf.decode(word, clean_up_tokenization_spaces=False)
            same = self._ids(text) == list(word)
            self._spaced[word] = self._ids(f" {text}") if same else list(word)
        return self._spaced[word]

    def _ids(self, text: str) -> list[int]:
        return list(self._hf(text, add_special_tokens=False)["input_ids"]) if text else []
