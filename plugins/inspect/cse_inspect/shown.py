"""What a watched step is shown as: plain values, bounded in number and length."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from cse_core.engine.negatives import same_texts
from cse_core.functional import similarity
from cse_core.options import LossOptions
from cse_inspect.watched import Given, WatchedStep, text_of

LONGEST = 300
"""Characters of a text."""


def shown(watched: WatchedStep, *, rows: int, columns: int) -> dict[str, Any]:
    """Return a step as JSON values.

    Args:
        watched: The step.
        rows: Anchors of each loss at most.
        columns: Negatives, and masked ones, of each anchor at most.
    """
    composition, loop = watched.prepared.composition, watched.loop
    of_loss = {
        choice.name: _loss(watched, choice.name, cast(LossOptions, choice.options), rows, columns)
        for choice in loop.engine.objectives.losses
    }
    return {
        "recipe": composition.recipe or "default",
        "model": composition.model.name,
        "data": list(composition.data.path),
        "round": loop.current.number,
        "step": watched.step,
        "steps": loop.total,
        "rows": len(torch.unique(next(iter(watched.views.values())).tokens.owner)),
        "views": _views(watched, rows),
        "losses": of_loss,
        "metrics": {name: round(value, 6) for name, value in watched.parts.items()},
    }


def _views(watched: WatchedStep, rows: int) -> list[dict[str, Any]]:
    found, columns = [], watched.loop.engine.builder.columns()
    for name, view in watched.views.items():
        tokens = view.tokens
        inside = (tokens.owner < rows).nonzero().squeeze(1)[: 2 * rows]
        offsets = tokens.offsets.tolist()
        read = [
            {
                "row": int(tokens.owner[i]),
                "slot": int(tokens.slot[i]),
                "tokens": offsets[i + 1] - offsets[i],
                "read": _read(watched, name, i),
            }
            for i in inside.tolist()
        ]
        about = {"name": name, "role": view.view.role, "branch": view.view.branch}
        found.append({**about, "column": columns.get(name), "count": tokens.rows, "rows": read})
    return found


def _read(watched: WatchedStep, view: str, row: int) -> str | None:
    """Return what the encoder reads in a row of a view."""
    tokens = watched.views[view].tokens
    branch = watched.views[view].view.branch
    start, stop = tokens.offsets[row : row + 2].tolist()
    tokenizer = watched.prepared.assembly.encoders[branch].tokenizer.hf
    return _cut(tokenizer.decode(tokens.ids[start:stop].tolist()))


def _loss(
    watched: WatchedStep, name: str, options: LossOptions, rows: int, columns: int
) -> dict[str, Any]:
    weight = options.weight.at(watched.step, watched.loop.total)
    about = {"weight": weight, "level": options.level, "target": options.target}
    calls = watched.given[name]
    if not calls:
        return {**about, "value": None, "directions": []}
    return {
        **about,
        "value": round(sum(given.value for given in calls) / len(calls), 6),
        "directions": [
            _direction(watched, given, options, place == 1, rows, columns)
            for place, given in enumerate(calls)
        ],
    }


def _direction(
    watched: WatchedStep,
    given: Given,
    options: LossOptions,
    turned: bool,
    rows: int,
    columns: int,
) -> dict[str, Any]:
    batch, negatives = given.batch, given.negatives
    scores = similarity(batch.anchors.detach(), negatives.vectors.detach(), options.similarity)
    how = "fold" if options.same_text == "fold" else "any"
    once_more = same_texts(batch, negatives, options, how, turned)
    sources = [(name, place) for name, count in negatives.blocks for place in range(count)]
    columns_of = watched.loop.engine.builder.columns()
    seen = ~negatives.mask & (negatives.log_weights > -torch.inf)
    blocks = []
    for name, block in negatives.spans():
        there = seen[:, block]
        about = {"source": name, "columns": block.stop - block.start}
        about["seen_by_an_anchor"] = round(float(there.sum(dim=1).float().mean()), 4)
        if name in batch.stored and bool(there.any()):
            ages = there * negatives.age[block]
            about["age"] = round(float(ages.sum() / there.sum()), 4)
        blocks.append(about)

    def column(anchor: int, place: int) -> dict[str, Any]:
        row, (source, number) = int(negatives.row[place]), sources[place]
        made = watched.views.get(source) if source not in columns_of else None
        if made is None:
            text = _cut(text_of(watched, _column(watched, source, options.target, turned), row))
        else:  # texts that a part found or made: what the encoder reads of them
            whole = made.tokens.rows == dict(negatives.blocks)[source]
            text = _read(watched, source, number) if whole else None
        value: dict[str, Any] = {
            "source": source,
            "row": row,
            "text": text,
            options.similarity: round(float(scores[anchor, place]), 4),
        }
        if source in batch.stored:
            value["age"] = int(negatives.age[place])
        if (log_weight := float(negatives.log_weights[anchor, place])) != 0:
            value["log_weight"] = round(log_weight, 4) if log_weight > -torch.inf else "-inf"
        return value

    anchors = []
    for anchor in range(min(rows, len(batch.anchors))):
        # The hardest first: what weighs most in the loss.
        order = scores[anchor].masked_fill(~seen[anchor], -torch.inf).argsort(descending=True)
        masked = (~seen[anchor]).nonzero().squeeze(1).tolist()
        own = int(batch.row[anchor])
        anchors.append(
            {
                "row": own,
                "batch_row": int(batch.owner[anchor]),
                "slot": int(batch.slot[anchor]),
                "text": _cut(text_of(watched, _column(watched, "", options.target, turned), own)),
                "positives": _positives(given, options, anchor),
                "negatives": [
                    column(anchor, p) for p in order[:columns].tolist() if seen[anchor, p]
                ],
                "negatives_seen": int(seen[anchor].sum()),
                "masked": [
                    {**column(anchor, p), "why": _why(given, options, once_more, anchor, p)}
                    for p in masked[:columns]
                ],
                "masked_in_all": len(masked),
            }
        )
    return {"anchors": len(batch.anchors), "blocks": blocks, "shown": anchors}


def _column(watched: WatchedStep, source: str, target: str, turned: bool) -> str:
    """Return the column whose text a block's vectors are of; of no source, the anchors'."""
    view = {"": "anchor", "anchors": "anchor", "in-batch": target}.get(source, source)
    if turned and source in ("", "anchors", "in-batch"):
        view = "anchor" if source == "in-batch" else target
    return watched.loop.engine.builder.columns().get(view, "text")


def _positives(given: Given, options: LossOptions, anchor: int) -> list[dict[str, Any]]:
    targets = given.targets
    own = given.batch.anchors[anchor : anchor + 1].detach()
    scores = similarity(own, targets.vectors[anchor].detach(), options.similarity)[0]
    weights: Tensor | None = targets.weights
    return [
        {
            options.similarity: round(float(score), 4),
            "weight": 1.0 if weights is None else round(float(weights[anchor, place]), 6),
        }
        for place, score in enumerate(scores[:20])
    ]


def _why(given: Given, options: LossOptions, once_more: Tensor, anchor: int, place: int) -> str:
    """Return why an anchor does not see a negative, as far as the core knows."""
    batch, negatives = given.batch, given.negatives
    row, own = negatives.row[place : place + 1], batch.row[anchor : anchor + 1]
    source = next(n for n, block in negatives.spans() if block.start <= place < block.stop)
    if int(row) == int(own) and source not in batch.stored:
        return "its own sentence"
    if bool(once_more[anchor, place]) and options.same_text != "keep":
        return "the same text"
    same = batch.corpus.same(batch.corpus.documents, own, row)
    if options.same_document == "mask" and bool(same):
        return "the same document"
    return "masked or weighed to nothing by a part, or absent"


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST else text[: LONGEST - 1] + "…"
