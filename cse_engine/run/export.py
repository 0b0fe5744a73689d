"""The saved model: what the backend writes, the weights of heads, and how cse encodes with it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from torch import nn

from cse_core.backend import TrainedModel
from cse_core.files import HEADS, MANIFEST, MEMBERS, atomic_folder
from cse_core.model_card import WHOLE
from cse_core.parts import Adapter, Head, heads_of
from cse_core.suites import Role
from cse_engine.compose.composition import Composition, PlannedPart
from cse_engine.run.checkpoint import write_tensors
from cse_engine.runtime.distributed import rank_and_size
from cse_engine.step.assembly import Assembly
from cse_engine.step.sentence_encoder import SentenceEncoder

MAX_TOKENS = 8192
"""Tokens of a row after training where an encoder without positions takes any number."""


def inference_encoder(assembly: Assembly, role: Role | None = None) -> SentenceEncoder:
    """Return the encoder used after training, for dev scores and for mining.

    Queries and documents get the prompts that the saved model has for them.
    """
    composition = assembly.composition
    _, _, heads, slicer = composition.inference_parts
    prompts = composition.says.model_copy(update=_prompts(composition)).role_prompts()
    online = assembly.online
    longest = composition.inference.max_length
    if longest is None:
        longest = online.max_length
        if slicer is None:
            longest = min(online.encoder.max_positions, MAX_TOKENS)
    encoding = replace(
        online,
        pooler=assembly.inference_pool or online.pooler,
        heads={planned.name: online.heads[planned.name] for planned in heads},
        slicer=online.slicer if slicer is not None else None,
        tokenizer=online.tokenizer.with_prompt(None if role is None else prompts.get(role)),
        max_length=longest,
        role=role,
    )
    members = []
    for name in composition.inference.ensemble:
        other = assembly.encoders[name]
        kept = {head: other.heads.get(head, online.heads[head]) for head in encoding.heads}
        members.append(replace(encoding, encoder=other.encoder, heads=kept))
    return replace(encoding, members=tuple(members), join=composition.inference.join)


def save_model(assembly: Assembly, folder: Path, *, chosen: str) -> str | None:
    """Write the model folder, whole or not at all; every process calls it, the first one writes.

    ``chosen`` says for its card what chose its weights. The result says in one clause why
    sentence-transformers has no modules for it; None where it has.
    """
    if rank_and_size()[0]:
        return None
    composition = assembly.composition
    encoding, parts = inference_encoder(assembly), composition.inference_parts
    ensemble = composition.inference.model_dump(include={"ensemble", "join"})
    card = {
        **composition.says.model_dump(),
        **composition.inference.model_dump(include={"normalize", "truncate_dim"}),
        **_prompts(composition),
        "max_length": encoding.max_length,
        "row": _part_record(parts.row),
        "several": [_part_record(part) for part in parts.several],
        "heads": [_part_record(head) for head in parts.heads],
        "slice": None if parts.slicer is None else _part_record(parts.slicer),
    }
    card |= {"ensemble": (), "join": "mean"}
    other = _only_here(encoding, parts.row, parts.slicer)
    joined = f"vectors of {1 + len(encoding.members)} encoders are joined"
    whole = joined if encoding.members else other
    about = {"origin": composition.facts.origin, "chosen": chosen}
    with atomic_folder(folder) as beside:
        model = encoding.encoder.model
        for adapter in (part for part in assembly.parts.values() if isinstance(part, Adapter)):
            adapter.save(model, beside / "adapter", public_name(composition.model.name))
            model = adapter.merged(model)
        for name, member in zip(ensemble["ensemble"], encoding.members, strict=True):
            inside = beside / MEMBERS / name
            inside.mkdir(parents=True)
            why = _write(assembly, inside, member, member.encoder.model, card, other)
            _write_card(inside, {**card, **about, "why_not": why})
        why_not = _write(assembly, beside, encoding, model, card, whole)
        _write_card(beside, {**card, **ensemble, **about, "why_not": why_not})
        readme = "# A sentence encoder trained with cse\n"  # the command line writes a card instead
        if why_not is not None:
            readme += f"\nsentence-transformers has no modules for it ({why_not}):\nuse "
            readme += "`cse encode MODEL`, or, where cse is installed too,\n"
            readme += "SentenceTransformer(MODEL, trust_remote_code=True).\n"
        (beside / "README.md").write_text(readme, encoding="utf-8")
    return why_not


def _write(
    assembly: Assembly,
    folder: Path,
    encoding: SentenceEncoder,
    model: nn.Module,
    card: dict[str, Any],
    other: str | None,
) -> str | None:
    """Write the weights of an encoder with its poolers and heads; return why only cse reads it."""
    composition = assembly.composition
    row, several, _, slicer = composition.inference_parts
    parts = [part for part in (row, *several, slicer) if part is not None]
    modules = {
        part.name: assembly.parts[part.path] for part in parts if part.path in assembly.parts
    }
    tensors = {
        f"{name}.{key}": value
        for name, module in (modules | dict(encoding.heads)).items()
        if isinstance(module, nn.Module)
        for key, value in module.state_dict().items()
    }
    why_not = assembly.models.backend(assembly.models.weights(composition.model.name)).save(
        TrainedModel(
            encoder=encoding.encoder,
            model=model,
            tokenizer=encoding.tokenizer,
            card=card,
            pooling=row.spec.declared("sentence_transformers", row.options),
            heads=cast(dict[str, Head], encoding.heads),
            mask=_mask(several),
            other=other,
        ),
        folder,
    )
    if tensors:
        write_tensors(folder / HEADS, tensors)
    return why_not


def _write_card(folder: Path, about: dict[str, Any]) -> None:
    (folder / MANIFEST).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    if about["why_not"] is not None:
        module = {"idx": 0, "name": "0", "path": "", "type": WHOLE}
        (folder / "modules.json").write_text(json.dumps([module], indent=2), encoding="utf-8")


def _mask(several: Sequence[PlannedPart]) -> dict[str, Any] | None:
    """Return how sentence-transformers can say which tokens have a vector; None if it cannot."""
    masks = (part.spec.declared("sentence_transformers", part.options) for part in several)
    return next((mask for mask in masks if mask is not None), None)


def _only_here(
    encoding: SentenceEncoder, row: PlannedPart, slicer: PlannedPart | None
) -> str | None:
    """Explain in one clause why sentence-transformers cannot express a model; None if it can."""
    before, after = encoding.prompt("anchor")
    if before or after:
        text = f"{before.rstrip()} X{after}"
        return f"texts are put into the prompt {text!r}, pooled by {row.use}"
    if slicer is not None:
        return f"texts are sliced by {slicer.use}"
    if row.spec.declared("sentence_transformers", row.options) is None:
        return f"rows are pooled by {row.use}"
    for head in heads_of(encoding.heads, "row"):
        if head.sentence_transformers() is None:
            return f"head {head.name} is not a single Dense layer"
    return None


def public_name(name: str) -> str:
    """Return the name of a file or folder without where it lies; a name of the hub as it is."""
    path = Path(name).expanduser()
    return path.resolve().name if path.is_absolute() or os.path.exists(path) else name


def _part_record(planned: PlannedPart) -> dict[str, Any]:
    names = {name: getattr(planned, name) for name in ("use", "name", "distribution")}
    return {**names, "options": planned.options.model_dump(mode="json")}


def _prompts(composition: Composition) -> dict[str, Any]:
    """Return the prompts of the saved model, and the name of that of all texts of the run."""
    prompts, prompt = dict(composition.says.prompts), composition.model.prompt
    roles = {"anchor": "query", "positive": "document", "negative": "document"}
    for view in reversed(composition.views):
        if view.prompt is not None and view.role in roles:
            prompts[roles[view.role]] = view.prompt
    names = [name for name, text in prompts.items() if text == prompt]
    if prompt and not names:
        names, prompts["default"] = ["default"], prompt
    first = composition.says.default_prompt_name
    name = first if first in names else next(iter(names), None)
    return {"prompts": prompts, "default_prompt_name": name if prompt else None}
