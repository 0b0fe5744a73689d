"""How much of an encoder an adapter trains, for a plan: no weights are read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse_cli.plugins.installed import Installed
    from cse_core.recipes.composition import Composition


def adapted(composition: Composition, plugins: Installed) -> tuple[int, int] | None:
    """Return how many weights train and how many the encoder has with those of its adapter.

    Returns:
        None without an adapter, or where nothing is known of the model.

    Raises:
        CseError: If the adapter lacks a package, or does not fit the encoder.
    """
    if not composition.of("adapter") or composition.facts.hidden is None:
        return None
    import torch
    from transformers import AutoModel

    from cse_core.encoders.architecture import (
        count_trained,
        embedding_layer,
        freeze_all_but,
        take_pooler,
        word_table,
    )
    from cse_core.encoders.pretrained import (
        load_config,
        load_tokenizer,
        translate_load_errors,
    )
    from cse_core.engine.part_calls import PartCalls
    from cse_core.models.part_factory import make_part
    from cse_core.parts import Setup
    from cse_core.recipes.model_facts import resolve_model
    from cse_core.runtime.seeds import generator
    from cse_core.tokenization.tokenizer import TextTokenizer

    name = resolve_model(composition.model.name, plugins.registry)
    with translate_load_errors(name), torch.device("meta"):
        config = load_config(name)
        model = AutoModel.from_config(config, trust_remote_code=False)
    take_pooler(model)
    if composition.model.train_layers:
        freeze_all_but(model, composition.model.train_layers)
    if composition.model.freeze_embeddings:
        embedding_layer(model).requires_grad_(False)
    seed = composition.train.seed
    for choice in composition.of("adapter"):
        draws = partial(generator, torch.device("cpu"), seed, "setup", choice.path)
        setup = Setup(
            name=choice.name,
            dimension=config.hidden_size,
            hidden_size=config.hidden_size,
            embedding_size=word_table(model).embedding_dim,
            layers=config.num_hidden_layers,
            tokenizer=TextTokenizer(load_tokenizer(name)),
            encoder=None,
            heads={},
            corpus=None,
            total_steps=composition.facts.steps,
            seed=seed,
            device=torch.device("meta"),
            generator=draws,
            load_encoder=_load,
            text_encoder=_load,
            load_texts=_load,
            load_masked_lm=_load,
            branches={},
            parts={},
        )
        PartCalls()(make_part(choice, setup), "wrap", model)
    return count_trained(model)


def _load(name: str | None, *_: Any, **__: Any) -> Any:
    raise RuntimeError(f"an adapter asked for encoder {name!r} in a plan")
