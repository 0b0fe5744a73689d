"""A folder that transformers loads as it is, and sentence-transformers where it can."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from cse_core.backend import TrainedModel
from cse_core.parts import heads_of

_POOLING = {
    "cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "lasttoken": "lasttoken",
}  # fmt: skip
"""Modes of sentence-transformers' pooling, by the flags of its configuration."""
_ELSEWHERE = {"MultiVectorMask": "multi_vector_encoder.modules"}
"""Packages of modules that are not among its models."""


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
    heads = [(h.sentence_transformers(), "sentence") for h in heads_of(trained.heads, "row")]
    late = [(h.sentence_transformers(), "token") for h in heads_of(trained.heads, "token")]
    tokens = trained.mask is not None and all(equal for equal, _ in late)
    options = card["row"]["options"]
    pooling = {
        "word_embedding_dimension": encoder.hidden_size,
        **{f"pooling_mode_{flag}": trained.pooling == mode for mode, flag in _POOLING.items()},
        "pooling_mode_mean_sqrt_len_tokens": False,
        "include_prompt": options.get("include_prompt", card["include_prompt"]),
    }
    _write_json(folder / "1_Pooling" / "config.json", pooling)
    kinds = ["Transformer", "Pooling", *["Dense"] * len(heads)]
    kinds += ["Normalize"] if card["normalize"] else []
    written = [*enumerate(heads, start=2)]
    if tokens:
        # Both kinds of models read one folder: these change vectors of tokens only.
        written += enumerate(late, start=len(kinds))
        kinds += [*["Dense"] * len(late), "MultiVectorMask"]
        _write_json(folder / f"{len(kinds) - 1}_MultiVectorMask" / "config.json", trained.mask)
    for place, (equal, level) in written:
        assert equal is not None, "else sentence-transformers cannot express the model"
        named = {"module_input_name": "token_embeddings"} if level == "token" else {}
        _write_json(folder / f"{place}_Dense" / "config.json", equal[0] | named)
        values = {name: value.detach().cpu().contiguous() for name, value in equal[1].items()}
        save_file(values, folder / f"{place}_Dense" / "model.safetensors")
    modules = [
        {
            "idx": place,
            "name": str(place),
            "path": f"{place}_{kind}" if place else "",
            "type": f"sentence_transformers.{_ELSEWHERE.get(kind, 'models')}.{kind}",
        }
        for place, kind in enumerate(kinds)
    ]
    if card["normalize"]:
        (folder / f"{kinds.index('Normalize')}_Normalize").mkdir()
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
