"""How many weights adapters and losses train, for a plan: none are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse_cli.plugins.installed import Installed
    from cse_engine.compose.composition import Composition, PlannedPart


def planned_weights(
    composition: Composition, plugins: Installed
) -> tuple[tuple[int, int] | None, dict[str, int]]:
    """Count the trained weights of an adapted encoder, and of losses on token states by path.

    Of the encoder that is how many weights train and how many it has with those of its adapter;
    None without one. Where nothing is known of the model, that and no losses.
    """
    from cse_core.model_card import Declared
    from cse_core.records import TokenLossSpec

    adapters = composition.of("adapter")
    losses = [loss for loss in composition.of("loss") if isinstance(loss.spec, TokenLossSpec)]
    if not (adapters or losses) or composition.facts.hidden is None:
        return None, {}
    import torch

    from cse_engine.compose.models import Models
    from cse_engine.step.optimizer import count_own, count_trained
    from cse_engine.step.part_calls import PartCalls
    from cse_engine.step.part_factory import Making, make_part, make_sentence_encoder

    models = Models(plugins.registry)

    def folder_of(name: str) -> Path:
        """Return a folder with a model's configuration; where the hub gives none, the run's."""
        folders = (models.folder(name) for name in (name, composition.model.name))
        return next(filter(None, folders), Path())

    def draw_headed(load: Any, name: str, seed: int) -> Any:
        folder = folder_of(name)
        with meta:
            loaded = models.backend(folder).load_masked_lm(folder, Declared(), from_scratch=True)
        loaded[1].pretrained = True  # as far as is known
        return loaded

    meta, folder = torch.device("meta"), folder_of(composition.model.name)
    drawn = composition.model.model_copy(update={"from_scratch": True})
    with meta:
        encoder, tokenizer = models.backend(folder).load(folder, drawn, composition.says)
    of_run = composition.model.name, composition.train.seed, None, composition.facts.steps
    making = Making(encoder, tokenizer, models, meta, *of_run, read=draw_headed)
    for choice in adapters:
        PartCalls()(make_part(choice, encoder.hidden_size, making), "wrap", encoder.model)
    counts = {}
    if losses:
        stages = [_drawn(stage) for stage in composition.of("pool")]
        size = make_sentence_encoder(stages, 2, composition.inference, making).dimension
        counts = {part.path: count_own(make_part(part, size, making), encoder) for part in losses}
    return count_trained(encoder) if adapters else None, counts


def _drawn(stage: PlannedPart) -> PlannedPart:
    """Return a pooler or head without the weights that a folder has for it."""
    from dataclasses import replace

    changed = {"weights": "new"} if hasattr(stage.options, "weights") else {}
    return replace(stage, options=stage.options.model_copy(update=changed))
