"""A folder that transformers loads as it is, and sentence-transformers where it can."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from typing import Any, cast

from safetensors.torch import save_file

from cse_core.backend import TrainedModel
from cse_core.parts import Head

_POOLING = {
    "cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "lasttoken": "lasttoken",
}  # fmt: skip
"""Modes of sentence-transformers' pooling, by the flags of its configuration."""


def save(trained: TrainedModel, folder: Path) -> str | None:
    """Write a model; return why sentence-transformers computes other vectors, if it does."""
    model: Any = trained.model
    pooler = trained.encoder.own_pooler or {}  # without it others draw the layer
    state = model.state_dict() | {f"pooler.dense.{key}": value for key, value in pooler.items()}
    model.save_pretrained(folder, state_dict=state)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for key in ("_attn_implementation", "attn_implementation", "_attn_implementation_autoset"):
        config.pop(key, None)  # how it was run does not belong to it
    _write_json(folder / "config.json", config)
    tokenizer = trained.tokenizer.hf
    tokenizer.backend_tokenizer.no_truncation()  # the last texts' cut
    tokenizer.save_pretrained(folder)
    if trained.other is None:
        _write_sentence_transformers(trained, folder)
    return trained.other


def _write_sentence_transformers(trained: TrainedModel, folder: Path) -> None:
    encoder, card = trained.encoder, trained.card
    dense = [cast(Head, head).sentence_transformers() for head in trained.heads.values()]
    options = card["row"]["options"]
    pooling = {
        "word_embedding_dimension": encoder.hidden_size,
        **{f"pooling_mode_{flag}": trained.pooling == mode for mode, flag in _POOLING.items()},
        "pooling_mode_mean_sqrt_len_tokens": False,
        "include_prompt": options.get("include_prompt", card["include_prompt"]),
    }
    _write_json(folder / "1_Pooling" / "config.json", pooling)
    for place, equal in enumerate(dense, start=2):
        assert equal is not None, "else sentence-transformers cannot express the model"
        _write_json(folder / f"{place}_Dense" / "config.json", equal[0])
        values = {name: value.detach().cpu().contiguous() for name, value in equal[1].items()}
        save_file(values, folder / f"{place}_Dense" / "model.safetensors")
    kinds = ["Transformer", "Pooling", *["Dense"] * len(dense)]
    kinds += ["Normalize"] if card["normalize"] else []
    modules = [
        {
            "idx": place,
            "name": str(place),
            "path": f"{place}_{kind}" if place else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for place, kind in enumerate(kinds)
    ]
    if card["normalize"]:
        (folder / f"{len(kinds) - 1}_Normalize").mkdir()
    _write_json(folder / "modules.json", modules)
    limits = {"max_seq_length": card["max_length"], "do_lower_case": card["do_lower_case"]}
    takes = signature(type(encoder.model).__init__).parameters
    if encoder.own_pooler is None and "add_pooling_layer" in takes:
        limits["model_args"] = {"add_pooling_layer": False}  # it would be drawn, with a warning
    _write_json(folder / "sentence_bert_config.json", limits)
    settings = {name: card[name] for name in ("prompts", "default_prompt_name", "truncate_dim")}
    settings["similarity_fn_name"] = card["similarity_fn_name"] or "cosine"
    _write_json(folder / "config_sentence_transformers.json", settings)


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
