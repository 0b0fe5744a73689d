"""The losses of TNCSE: contrast among two encoders' vectors, and agreement of their norms."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cse_core.functional import (
    candidate_texts,
    infonce_terms,
    mean_over_positives,
    of_texts,
    paired_similarity,
    positive_texts,
    reduce_terms,
    text_keys,
)
from cse_core.parts import Loss
from cse_core.types import SENTENCE, Batch, LossOutput, Negatives, Positives, StepContext
from cse_tncse.options import NormConstraintOptions, OfTwoEncoders, TwoEncodersOptions


class _OfTwoEncoders(Loss):
    """Looks up the second encoder's vectors of the texts that the first has encoded."""

    options: OfTwoEncoders

    def _second(self, view: str) -> str:
        """Return the view in which the second encoder reads the texts of one of the first's."""
        return self.options.anchor_view if view == "anchor" else self.options.target_view


class TwoEncoders(_OfTwoEncoders):
    """InfoNCE among the second encoder's vectors, and from the first encoder's to the second's.

    ``L_NCE`` of the second encoder and ``L_ICNCE`` (Zong et al., 2025); that of the first is
    ``infonce``. As in the authors' ``icnce``, a text is never compared with itself.
    """

    options: TwoEncodersOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the weighted sum of both, each a mean (or sum) over ``batch.anchors``."""
        options = self.options
        target, wanted = positive_texts(batch, targets, options.target)
        keys = text_keys(batch.owner, batch.slot)
        anchors = of_texts(batch.views[self._second(batch.view)][SENTENCE], keys)
        positives = of_texts(batch.views[self._second(target)][SENTENCE], wanted)
        others = [
            of_texts(batch.views[self._second(of)][SENTENCE], texts)
            for of, texts in candidate_texts(batch, negatives, target)
        ]
        seen = replace(negatives, vectors=torch.cat([anchors[:0], *others]))
        pulled = Positives(positives, targets.weights)

        def contrast(anchors: Tensor) -> Tensor:
            terms = infonce_terms(
                anchors, pulled, seen, temperature=options.temperature, kind=options.similarity
            )
            return reduce_terms(terms, targets, options.reduction)

        parts = {"second": contrast(anchors), "across": contrast(batch.anchors)}
        return LossOutput(
            options.second * parts["second"] + options.across * parts["across"], parts
        )


class NormConstraint(_OfTwoEncoders):
    """``L_ICTN``: the logarithm of a similarity, weighed by how far two norms are apart.

    ``- log cos(f1(x), f2(x+)) * |p1 - p2| / (|p1| + |p2|)``, where p1 and p2 are vectors of another
    level, the encoders' pooler outputs (Zong et al., 2025); the authors' ``LTN_loss`` halves the
    ratio (``published``) and adds both directions, of which ``directions = both`` is the mean.
    """

    options: NormConstraintOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over ``batch.anchors``."""
        options = self.options
        target, wanted = positive_texts(batch, targets, options.target)
        keys = text_keys(batch.owner, batch.slot)
        positives = of_texts(batch.views[self._second(target)][SENTENCE], wanted)
        near = paired_similarity(batch.anchors, positives, options.similarity)
        near = torch.where(near <= 0, options.floor, near)
        one = of_texts(batch.views[batch.view][options.norms], keys.unsqueeze(1))
        other = of_texts(batch.views[self._second(target)][options.norms], wanted)
        norms = one.norm(dim=-1) + other.norm(dim=-1)
        ratio = (one - other).norm(dim=-1) / norms.clamp_min(1e-12)
        if options.ratio == "published":
            ratio = ratio / 2
        terms = mean_over_positives(-near.log() * ratio, targets)
        parts = {"ratio": ratio.detach().mean()}
        return LossOutput(reduce_terms(terms, targets, options.reduction), parts)
