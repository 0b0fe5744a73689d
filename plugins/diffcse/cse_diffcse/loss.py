"""Which tokens of a sentence were replaced, asked of a discriminator that knows its vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cse_core.errors import CseError
from cse_core.parts import Setup, TokenLoss
from cse_core.protocols import Tokenizer
from cse_core.types import StepContext, TokenBatch, TokenStates, TokenSums
from cse_diffcse.options import ReplacedTokensOptions

Frozen = TypeVar("Frozen", bound=nn.Module)


class ReplacedTokens(nn.Module, TokenLoss):
    """Conditional replaced-token detection (Chuang et al., 2022, section 3).

    A generator that is not trained fills masked tokens of a view's rows. A copy of the encoder,
    trained, reads the result with the vector of the sentence in place of its first token's input,
    and says of each token whether it was replaced: cross entropy, the mean over all tokens of the
    batch. Of the vectors those behind the heads are read, before any transform.
    """

    def __init__(self, options: ReplacedTokensOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        self._mask = int(setup.tokenizer.hf.mask_token_id)
        self._words = len(setup.tokenizer.hf)
        if setup.dimension != setup.hidden_size:
            what = f"vectors of {setup.dimension} numbers cannot stand for a token's input"
            hint = f"let the last head make {setup.hidden_size}, or leave its dimension out"
            raise CseError(what, where=f"loss.{setup.name}", hint=hint)
        name = None if options.generator == "self" else options.generator
        generator, head, tokenizer = setup.load_masked_lm(name, option="generator")
        _same_words(tokenizer, setup, options.generator)
        # Frozen and loaded by its name, so it is not among what is trained or kept.
        self._generator = (_frozen(generator, setup), _frozen(head, setup))
        self.discriminator = setup.online_encoder().copy()
        with setup.seeded("judge"):
            self.judge = nn.Linear(setup.hidden_size, 2)

    def sums(self, views: Mapping[str, TokenStates], ctx: StepContext) -> TokenSums:
        """Return the cross entropies of the tokens of these rows, and their number."""
        logits, wanted, asked = [], [], []
        for name, view in views.items():
            ids, judged = self._filled(name, view.tokens, ctx)
            states = self._read(ids, view.tokens, view.vectors)
            logits.append(self.judge(states).to(view.vectors.dtype))
            wanted.append((ids != view.tokens.ids).long())
            asked.append(judged)
        every, labels = torch.cat(logits), torch.cat(wanted)
        counts = torch.cat(asked).to(every.dtype)  # which of them is known to the device alone
        right = every.detach().argmax(dim=1) == labels
        return TokenSums(
            total=(cross_entropy(every, labels, reduction="none") * counts).sum(),
            count=counts.sum(),
            parts={"accuracy": (right * counts).sum(), "replaced": (labels * counts).sum()},
        )

    @torch.no_grad()
    def _filled(self, name: str, tokens: TokenBatch, ctx: StepContext) -> tuple[Tensor, Tensor]:
        """Return ``[T]`` ids with some replaced, and which tokens are judged."""
        options, (encoder, head) = self.options, self._generator
        first = tokens.offsets[:-1][tokens.lengths > 0].to(tokens.ids.device, non_blocking=True)
        judged = torch.ones_like(tokens.special) if options.places == "all" else ~tokens.special
        open_to = judged.index_fill(0, first, False)
        if options.places == "content":
            judged = open_to
        chosen, seen = self._masked(name, tokens, ctx)
        if options.replaced == "masked":
            open_to = open_to & chosen
        words = encoder.word_embeddings(seen)
        scores: Tensor = head(encoder(words, tokens.positions, tokens.offsets).last)
        if options.fill == "argmax":
            fills = scores.argmax(dim=1)
        else:
            upto = scores.float().softmax(dim=1).cumsum(dim=1)
            drawn = ctx.uniform(f"sample {name}", tokens).to(upto.device)
            drawn = (drawn * upto[:, -1])[:, None]
            fills = torch.searchsorted(upto, drawn, right=True).squeeze(1)
            fills = fills.clamp_max(scores.shape[1] - 1)
        return torch.where(open_to, fills, tokens.ids), judged

    def _masked(self, name: str, tokens: TokenBatch, ctx: StepContext) -> tuple[Tensor, Tensor]:
        """Return ``[T]`` which tokens are chosen, and the ids that the generator sees."""
        options, device = self.options, tokens.ids.device
        which, how, what = (
            ctx.uniform(f"{word} {name}", tokens).to(device) for word in ("which", "how", "what")
        )
        chosen = (which < options.probability) & ~tokens.special
        other = (what * self._words).long().clamp_max(self._words - 1)
        seen = torch.where(chosen & (how < options.masked), self._mask, tokens.ids)
        swapped = chosen & (how >= options.masked) & (how < options.masked + options.random)
        return chosen, torch.where(swapped, other, seen)

    def _read(self, ids: Tensor, tokens: TokenBatch, vectors: Tensor) -> Tensor:
        """Return ``[T, H]`` the discriminator's states, each row begun by its sentence's vector."""
        filled = tokens.lengths > 0
        first = tokens.offsets[:-1][filled].to(ids.device, non_blocking=True)
        rows = vectors if bool(filled.all()) else vectors[filled.to(ids.device)]

        def begun(inputs: Tensor) -> Tensor:
            return inputs.index_copy(0, first, rows.to(inputs.dtype))

        words = self.discriminator.word_embeddings(ids)
        hidden = self.discriminator(words, tokens.positions, tokens.offsets, on_input=begun)
        last: Tensor = hidden.last
        return last


def _frozen(module: Frozen, setup: Setup) -> Frozen:
    return module.requires_grad_(False).eval().to(setup.device)


def _same_words(tokenizer: Tokenizer, setup: Setup, name: str) -> None:
    if tokenizer.hf.get_vocab() != setup.tokenizer.hf.get_vocab():
        what = "has another vocabulary than the run's model, so their ids differ"
        hint = "name a masked language model of the same family, such as a smaller one, or self"
        raise CseError(what, where=f"loss.{setup.name}.generator", value=name, hint=hint)
