"""Template denoising: what a template makes of no text is subtracted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from cse_core.functional import places_of
from cse_core.parts import Setup, Transform
from cse_core.types import Embeddings, StepContext
from cse_promptbert.options import TemplateDenoisingOptions
from cse_promptbert.plugin import SUFFIX

MAX_SLOTS = 2**20


class TemplateDenoising(nn.Module, Transform):
    """``tanh(W (h - d) + b)``: h of a text in its template, d of the template alone.

    PromptBERT (Jiang et al., 2022), section 3.3, and CoT-BERT (Zhang et al., 2023), section 3.4.
    The dense layer starts as in BERT: normal with standard deviation 0.02, bias zero. It is part of
    the training alone: texts are scored by h, as in both papers' evaluations of unsupervised
    models. Views of which no template is subtracted go through the layer as they are.
    """

    options: TemplateDenoisingOptions

    def __init__(self, options: TemplateDenoisingOptions, setup: Setup) -> None:
        super().__init__()
        self.options, self.name = options, setup.name
        self.dense: nn.Linear | None = None
        if options.projection == "mlp":
            self.dense = nn.Linear(setup.dimension, setup.dimension)
            nn.init.normal_(self.dense.weight, std=0.02, generator=setup.generator("weights"))
            nn.init.zeros_(self.dense.bias)

    def __call__(
        self, views: Mapping[str, Embeddings], ctx: StepContext
    ) -> Mapping[str, Embeddings]:
        """Return all views but those of templates."""
        templates = {view: views[view + SUFFIX] for view in self.options.views if view in views}
        changed = {}
        for name, view in views.items():
            if name.removesuffix(SUFFIX) in templates and name.endswith(SUFFIX):
                continue
            vectors = view.vectors
            if name in templates:
                template = _rows_of(templates[name], view)
                vectors = vectors - (template.detach() if self.options.frozen else template)
            if self.dense is not None:
                vectors = self.dense(vectors).tanh()
            changed[name] = replace(view, vectors=vectors)
        return changed


def _rows_of(template: Embeddings, view: Embeddings) -> Tensor:
    """Return the template's vectors ``[N, D]`` with the keys of a view's rows; NaN for a missing.

    NaN ends the run, with the name of the part.
    """
    keys, wanted = (rows.owner * MAX_SLOTS + rows.slot for rows in (template, view))
    place = places_of(wanted, keys)
    missing = (place < 0).unsqueeze(1)
    return template.vectors[place.clamp_min(0)].masked_fill(missing, torch.nan)
