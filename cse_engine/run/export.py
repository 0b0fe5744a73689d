"""The saved model: what the backend writes, the weights of heads, and how cse encodes with it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from cse_core.backend import TrainedModel
from cse_core.files import HEADS, MANIFEST, atomic_folder
from cse_core.model_card import WHOLE
from cse_core.parts import Adapter, Head
from cse_core.suites import Role
from cse_engine.compose.composition import Composition, PlannedPart
from cse_engine.run.checkpoint import write_tensors
from cse_engine.runtime.distributed import rank_and_size
from cse_engine.step.assembly import Assembly
from cse_engine.step.sentence_encoder import SentenceEncoder, heads_of

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
    return replace(
        online,
        pooler=assembly.inference_pool or online.pooler,
        heads={planned.name: online.heads[planned.name] for planned in heads},
        slicer=online.slicer if slicer is not None else None,
        tokenizer=online.tokenizer.with_prompt(None if role is None else prompts.get(role)),
        max_length=longest,
        role=role,
    )


def save_model(assembly: Assembly, folder: Path, *, chosen: str) -> None:
    """Write the model folder, whole or not at all; every process calls it, the first one writes.

    ``chosen`` says for its card what chose its weights.
    """
    if rank_and_size()[0]:
        return
    composition = assembly.composition
    row, several, heads, slicer = composition.inference_parts
    encoding = inference_encoder(assembly)
    card = {
        **composition.says.model_dump(),
        **composition.inference.model_dump(include={"normalize", "truncate_dim"}),
        **_prompts(composition),
        "max_length": encoding.max_length,
        "row": _part_record(row),
        "several": [_part_record(part) for part in several],
        "heads": [_part_record(head) for head in heads],
        "slice": None if slicer is None else _part_record(slicer),
    }
    with atomic_folder(folder) as beside:
        model = encoding.encoder.model
        for adapter in (part for part in assembly.parts.values() if isinstance(part, Adapter)):
            adapter.save(model, beside / "adapter", public_name(composition.model.name))
            model = adapter.merged(model)
        parts = filter(None, (row, *several, *heads, slicer))
        used = {planned.path: planned.name for planned in parts}
        tensors = {
            f"{used[path]}.{key}": value
            for path, module in assembly.modules()
            if path in used
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
                other=_only_here(encoding, row, slicer),
            ),
            beside,
        )
        if tensors:
            write_tensors(beside / HEADS, tensors)
        about = {"origin": composition.facts.origin, "chosen": chosen, "why_not": why_not}
        text = json.dumps({**card, **about}, indent=2) + "\n"
        (beside / MANIFEST).write_text(text, encoding="utf-8")
        readme = "# A sentence encoder trained with cse\n"  # the command line writes a card instead
        if why_not is not None:
            module = {"idx": 0, "name": "0", "path": "", "type": WHOLE}
            (beside / "modules.json").write_text(json.dumps([module], indent=2), encoding="utf-8")
            readme += f"\nsentence-transformers has no modules for it ({why_not}):\nuse "
            readme += "`cse encode MODEL`, or, where cse is installed too,\n"
            readme += "SentenceTransformer(MODEL, trust_remote_code=True).\n"
        (beside / "README.md").write_text(readme, encoding="utf-8")


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
    for name, head in heads_of(encoding.heads, "row").items():
        if cast(Head, head).sentence_transformers() is None:
            return f"head {name} is not a single Dense layer"
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
