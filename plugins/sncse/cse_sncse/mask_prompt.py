"""The state of the mask token in a prompt around the text."""

from __future__ import annotations

import string
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.parts import RowPooler, Setup
from cse_core.protocols import Tokenizer
from cse_core.types import Hidden, TokenBatch
from cse_sncse.options import MASK, TEXT, MaskPromptOptions


class MaskPrompt(RowPooler):
    """The last state of the prompt's own mask token.

    SNCSE (Wang and Dou, 2023), section 3.2: the anchor's prompt and the positive's differ, the soft
    negative has the positive's, and texts are scored with the anchor's. The mask is found by its
    place in the row, so a mask token in the text itself is nothing but a token. Where a row has
    another token at that place (a branch with another vocabulary) its vector is NaN, which ends
    the run.
    """

    def __init__(self, options: MaskPromptOptions, setup: Setup) -> None:
        self.dimension = setup.dimension
        hf = setup.tokenizer.hf
        where = f"pool.{setup.name}"
        if hf.mask_token is None or hf.mask_token_id is None:
            raise CseError(
                "needs a mask token, and the vocabulary has none",
                where=where,
                hint="choose another --model or --pool",
            )
        self._mask_id = int(hf.mask_token_id)
        soft = options.soft_negative or options.positive
        prompts = {"anchor": options.anchor, "positive": options.positive, "soft_negative": soft}
        space = options.leading_space
        self._parts = {
            role: _parts(prompt, hf.mask_token, leading_space=space)
            for role, prompt in prompts.items()
        }
        places = {role: _place(parts, setup.tokenizer) for role, parts in self._parts.items()}
        for role, place in places.items():
            if place is None or place != places["anchor"]:
                what = (
                    "does not have exactly one mask token"
                    if place is None
                    else "has its mask at another place"
                )
                raise CseError(
                    f"{what}: all prompts have it as many tokens from the row's same end",
                    where=f"{where}.{role}",
                    value=prompts[role],
                    hint=f"the anchor's is {options.anchor!r}",
                )
        self._place = places["anchor"] or 0
        self._stop = _ids(hf, " .") if options.full_stop else []
        self._ends = _punctuation(hf) if self._stop else torch.zeros(0, dtype=torch.bool)

    def prompt(self, view: str) -> tuple[str, str]:
        """Return the texts before and after the content, with the vocabulary's mask token."""
        view = "positive" if view == "negative" else view
        return self._parts.get(view, self._parts["anchor"])

    def content(self, tokens: TokenBatch) -> TokenBatch:
        """Return the content with a full stop where a text ends in no punctuation mark.

        Of the slices of a text the last one gets it: a text goes on behind the others.
        """
        if not self._stop or not len(tokens.ids):
            return tokens
        lengths = tokens.lengths
        last = (tokens.offsets[1:] - 1).clamp_min(0)
        bare = (lengths > 0) & ~self._ends[tokens.ids[last]]
        goes_on = (tokens.owner[1:] == tokens.owner[:-1]) & (tokens.slot[1:] > tokens.slot[:-1])
        bare[:-1] &= ~goes_on
        return _append(tokens, self._stop, bare, last)

    def reads(self, tokens: TokenBatch) -> Tensor:
        """Return the mask's index in each row, ``[R]``, on the CPU."""
        start = tokens.offsets[1:] if self._place < 0 else tokens.offsets[:-1]
        return start + self._place

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, H]``."""
        read = self.reads(tokens)
        states = hidden.at(read)
        masks = tokens.ids[read.to(tokens.ids.device, non_blocking=True)] == self._mask_id
        return states.masked_fill(~masks.unsqueeze(1), torch.nan)


def _parts(prompt: str, mask: str, *, leading_space: bool) -> tuple[str, str]:
    before, after = prompt.split(TEXT)
    # A space that ends the text before the content is a token of its own in byte-level BPE.
    before = before if leading_space else before.rstrip()
    return before.replace(MASK, mask), after.rstrip().replace(MASK, mask)


def _place(parts: tuple[str, str], tokenizer: Tokenizer) -> int | None:
    """Return the mask's place: from the row's first token, or below zero from behind its last."""
    mask = tokenizer.hf.mask_token_id
    before, after = (_ids(tokenizer.hf, text) for text in parts)
    masks = [ids.count(mask) for ids in (before, after)]
    if sum(masks) != 1:
        return None
    if masks[0]:
        return len(tokenizer.before) + before.index(mask)
    return after.index(mask) - len(after) - len(tokenizer.after)


def _ids(hf: Any, text: str) -> list[int]:
    return list(hf(text, add_special_tokens=False)["input_ids"]) if text else []


def _punctuation(hf: Any) -> Tensor:
    """Return ``[V]`` whether a token of the vocabulary ends in an ASCII punctuation mark."""
    tokens = hf.convert_ids_to_tokens(range(len(hf)))
    unknown = hf.unk_token_id
    return torch.tensor(
        [
            number != unknown and bool(token) and token[-1] in string.punctuation
            for number, token in enumerate(tokens)
        ]
    )


def _append(tokens: TokenBatch, ids: list[int], rows: Tensor, last: Tensor) -> TokenBatch:
    """Return content with tokens at the end of some rows, as if their texts had them.

    Args:
        tokens: Content of R rows, on the CPU.
        ids: The tokens.
        rows: ``[R]`` bool, which rows.
        last: ``[R]`` index of each row's last token.
    """
    count = len(ids)
    times = torch.ones_like(tokens.ids)
    times[last[rows]] += count  # copies of the last token, which then become the new ones
    places = torch.arange(len(times)).repeat_interleave(times)
    longer = tokens.take_tokens(places, tokens.lengths + rows * count)
    new = longer.offsets[1:][rows].unsqueeze(1) + torch.arange(-count, 0)  # [rows, ids]
    changed = {name: getattr(longer, name).clone() for name in ("ids", "source", "word")}
    changed["ids"][new] = torch.tensor(ids)
    changed["source"][new] += torch.arange(1, count + 1)
    changed["word"][new] += 1
    return replace(longer, **changed)
