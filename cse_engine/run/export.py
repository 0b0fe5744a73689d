"""The saved model: a folder that sentence-transformers and transformers load as it is."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from cse_core.errors import visible
from cse_core.files import MANIFEST, atomic_folder
from cse_core.parts import Adapter, Head
from cse_core.suites import Role
from cse_defaults.transformers.model_files import HEADS
from cse_engine.compose.composition import Composition, PlannedPart
from cse_engine.run.checkpoint import Checkpoint, weights, write_tensors
from cse_engine.runtime.distributed import rank_and_size
from cse_engine.step.assembly import Assembly
from cse_engine.step.sentence_encoder import SentenceEncoder

MAX_TOKENS = 8192
"""Tokens of a row after training where an encoder without positions takes any number."""


def inference_encoder(assembly: Assembly, role: Role | None = None) -> SentenceEncoder:
    """Return what encodes a text after training, for dev scores and for mining.

    Queries and documents get the prompts that the saved model has for them.
    """
    composition = assembly.composition
    _, heads, slicer = composition.inference_parts
    prompts = composition.says.model_copy(update=_prompts(composition)).role_prompts()
    online = assembly.online
    longest = composition.inference.max_length
    if longest is None:
        longest = online.max_length
        if slicer is None:
            longest = min(online.encoder.max_positions, MAX_TOKENS)
    return replace(
        online,
        pooler=assembly.inference_pool or online.pooler,
        heads={planned.name: online.heads[planned.name] for planned in heads},
        slicer=online.slicer if slicer is not None else None,
        tokenizer=online.tokenizer.with_prompt(None if role is None else prompts.get(role)),
        max_length=longest,
    )


def save_model(assembly: Assembly, folder: Path, *, about: dict[str, Any]) -> None:
    """Write the model folder, whole or not at all; every process calls it, the first one writes.

    ``about`` holds facts for its card: what was trained on what, and what chose it. What cannot be
    seen in them is written as an escape.
    """
    own: dict[str, Tensor] | None = Checkpoint(weights(assembly)).part("encoder.model")
    if rank_and_size()[0]:
        return
    about = {key: None if fact is None else visible(str(fact)) for key, fact in about.items()}
    composition = assembly.composition
    row, heads, slicer = composition.inference_parts
    sentence_encoder = inference_encoder(assembly)
    says = {
        **composition.says.model_dump(),
        **composition.inference.model_dump(include={"normalize", "truncate_dim"}),
        **_prompts(composition),
        "max_length": sentence_encoder.max_length,
        "row": _part_record(row),
        "heads": [_part_record(head) for head in heads],
        "slice": None if slicer is None else _part_record(slicer),
    }
    manifest: dict[str, Any] = {**says, "origin": composition.facts.origin, "about": about}
    with atomic_folder(folder) as beside:
        model = sentence_encoder.encoder.model
        for adapter in (part for part in assembly.parts.values() if isinstance(part, Adapter)):
            adapter.save(model, beside / "adapter", public_name(str(model.name_or_path)))
            model, own = adapter.merged(model), None
        pooler = sentence_encoder.encoder.own_pooler or {}  # without it others draw the layer
        own = (own or model.state_dict()) | {f"pooler.dense.{k}": v for k, v in pooler.items()}
        model.save_pretrained(beside, state_dict=own)
        config = json.loads((beside / "config.json").read_text(encoding="utf-8"))
        for key in ("_attn_implementation", "attn_implementation", "_attn_implementation_autoset"):
            config.pop(key, None)  # how it was run does not belong to it
        _write_json(beside / "config.json", config)
        tokenizer = sentence_encoder.tokenizer.hf
        tokenizer.backend_tokenizer.no_truncation()  # the last texts' cut
        tokenizer.save_pretrained(beside)
        used = {planned.path: planned.name for planned in (row, *heads, slicer) if planned}
        modules = {used[path]: part for path, part in assembly.modules() if path in used}
        if modules:
            tensors = {
                f"{name}.{key}": value
                for name, module in modules.items()
                for key, value in module.state_dict().items()
            }
            write_tensors(beside / HEADS, tensors)
        why_not = _write_sentence_transformers(sentence_encoder, beside, row, slicer, says)
        manifest["why_not"] = why_not
        _write_json(beside / MANIFEST, manifest)
        (beside / "README.md").write_text(_readme(why_not), encoding="utf-8")


def public_name(name: str) -> str:
    """Return the name of a file or folder without where it lies; a name of the hub as it is."""
    path = Path(name).expanduser()
    return path.resolve().name if path.is_absolute() or os.path.exists(path) else name


def _part_record(planned: PlannedPart) -> dict[str, Any]:
    return {
        "use": planned.use,
        "name": planned.name,
        "distribution": planned.distribution,
        "options": planned.options.model_dump(mode="json"),
    }


def _prompts(composition: Composition) -> dict[str, Any]:
    """Return the prompts of the saved model, and the name of that of all texts of the run."""
    prompts, own = dict(composition.says.prompts), composition.model.prompt
    roles = {"anchor": "query", "positive": "document", "negative": "document"}
    for view in reversed(composition.views):
        if view.prompt is not None and view.role in roles:
            prompts[roles[view.role]] = view.prompt
    names = [name for name, text in prompts.items() if text == own]
    if own and not names:
        names, prompts["default"] = ["default"], own
    first = composition.says.default_prompt_name
    name = first if first in names else next(iter(names), None)
    return {"prompts": prompts, "default_prompt_name": name if own else None}


def _write_sentence_transformers(
    sentence_encoder: SentenceEncoder,
    folder: Path,
    row: PlannedPart,
    slicer: PlannedPart | None,
    says: dict[str, Any],
) -> str | None:
    """Write sentence-transformers' files; return why not, where it cannot express the model."""
    mode = row.spec.declared("sentence_transformers", row.options)
    before, after = sentence_encoder.prompt("anchor")
    if before or after:
        return (
            f"texts are put into the prompt {f'{before.rstrip()} X{after}'!r}, pooled by {row.use}"
        )
    if slicer is not None:
        return f"texts are sliced by {slicer.use}"
    if mode is None:
        return f"rows are pooled by {row.use}"
    dense = []
    for name, head in sentence_encoder.heads.items():
        equal = cast(Head, head).sentence_transformers()
        if equal is None:
            return f"head {name} is not a single Dense layer"
        dense.append(equal)
    flags = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
    flags["lasttoken"] = "lasttoken"
    pooling = {
        "word_embedding_dimension": sentence_encoder.encoder.hidden_size,
        **{f"pooling_mode_{flag}": mode == name for name, flag in flags.items()},
        "pooling_mode_mean_sqrt_len_tokens": False,
        "include_prompt": getattr(row.options, "include_prompt", says["include_prompt"]),
    }
    _write_json(folder / "1_Pooling" / "config.json", pooling)
    for place, (config, values) in enumerate(dense, start=2):
        _write_json(folder / f"{place}_Dense" / "config.json", config)
        write_tensors(folder / f"{place}_Dense" / "model.safetensors", values)
    kinds = ["Transformer", "Pooling", *["Dense"] * len(dense)]
    kinds += ["Normalize"] if sentence_encoder.normalize else []
    modules = [
        {
            "idx": place,
            "name": str(place),
            "path": f"{place}_{kind}" if place else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for place, kind in enumerate(kinds)
    ]
    if sentence_encoder.normalize:
        (folder / f"{len(kinds) - 1}_Normalize").mkdir()
    _write_json(folder / "modules.json", modules)
    limits: dict[str, Any] = {"max_seq_length": sentence_encoder.max_length}
    limits["do_lower_case"] = says["do_lower_case"]
    encoder = sentence_encoder.encoder
    takes = signature(type(encoder.model).__init__).parameters
    if encoder.own_pooler is None and "add_pooling_layer" in takes:
        limits["model_args"] = {"add_pooling_layer": False}  # it would be drawn, with a warning
    _write_json(folder / "sentence_bert_config.json", limits)
    names = ("prompts", "default_prompt_name", "truncate_dim")
    settings = {name: says[name] for name in names}
    settings["similarity_fn_name"] = says["similarity_fn_name"] or "cosine"
    _write_json(folder / "config_sentence_transformers.json", settings)
    return None


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _readme(why_not: str | None) -> str:
    """Return a few lines; the command line writes the model's card in their place."""
    text = "# A sentence encoder trained with cse\n"
    if why_not is not None:
        text += f"\nsentence-transformers cannot express this model ({why_not}): it computes\n"
        text += "different vectors from this folder. Use `cse encode MODEL`.\n"
    return text
