"""The loss that predicts hidden tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cse_core.errors import CseError
from cse_core.functional import draw_like_bert
from cse_core.parts import Setup, TokenLoss
from cse_core.types import StepContext, TokenStates, TokenSums
from cse_mlm.options import MlmOptions


class Mlm(nn.Module, TokenLoss):
    """Cross entropy of the labels of a view, the mean over all labelled tokens of the batch.

    The head is that of the model's family. SimCSE's code trains its matrix as one of its own
    (``tied = false``); BERT's is the word embeddings. ``shifted`` is the masked next-token
    prediction of LLM2Vec (BehnamGhader et al., 2024), whose head is ``frozen``.

    Raises:
        CseError: If the head is to stay as the folder has it, and the folder has none.
    """

    def __init__(self, options: MlmOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        _, self.head, _ = setup.load_masked_lm()
        if options.head == "new":
            with setup.seeded("head"):
                draw_like_bert(self.head)
        self.head.tie(setup.online_encoder() if options.tied else None)
        if options.frozen:
            if not self.head.pretrained:
                what, hint = "the folder has no prediction head", "leave frozen out"
                where = f"loss.{setup.name}.frozen"
                raise CseError(what, where=where, value=True, hint=hint)
            self.head.requires_grad_(False)

    def sums(self, views: Mapping[str, TokenStates], ctx: StepContext) -> TokenSums:
        """Return the cross entropies of the labelled tokens of these rows, and their number."""
        view = views[self.options.view]
        labels, at = cast(Tensor, view.tokens.labels), view.labelled
        if self.options.shifted:
            begins = view.tokens.offsets[:-1].to(at.device)
            labels, at = labels.roll(-1), at[~torch.isin(at, begins)] - 1
        return predicted(self.head, view.states, labels, at)


def predicted(head: nn.Module, every: Tensor, labels: Tensor, labelled: Tensor) -> TokenSums:
    """Return the cross entropies of the ``labelled`` tokens among ``[T, H]``, and their number."""
    states = every.index_select(0, labelled)
    logits = head(states).float() if states.element_size() < 4 else head(states)
    if not len(states):  # the head takes part, so that every process has its gradients
        return TokenSums(logits.sum() + every.sum() * 0, logits.new_zeros(()), {
            "accuracy": logits.new_zeros(())})  # fmt: skip
    wanted = labels.index_select(0, labelled)
    right = (logits.detach().argmax(dim=1) == wanted).sum()
    return TokenSums(
        total=cross_entropy(logits, wanted, reduction="sum"),
        count=logits.new_full((), float(len(wanted))),
        parts={"accuracy": right.to(logits.dtype)},
    )
