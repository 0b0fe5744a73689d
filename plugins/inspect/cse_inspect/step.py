"""A step of a composition or of a run, and what its losses were given, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cse import PreparedView, Session
from cse_core.functional import similarity
from cse_core.options import LossOptions
from cse_core.parts import Loss, Part
from cse_core.types import SLOTS_PER_TEXT, Batch, LossOutput, Negatives, Positives

MAX_CHARACTERS = 300
"""Of a text that is shown."""
MAX_POSITIVES = 20
"""Of an anchor."""


@dataclass(frozen=True)
class Given:
    """What a loss was given in one direction, and its value."""

    batch: Batch
    targets: Positives
    negatives: Negatives
    value: float


class WatchedStep:
    """A step, and what was seen in it.

    Args:
        session: A session.
        after: Steps before the one that is watched.
    """

    def __init__(self, session: Session, after: int) -> None:
        self.session, self.rows = session, session.rows
        for _ in range(after):
            session.step()
        self.step = session.done
        self.index = session.batch(self.step)
        calls: dict[str, list[Given]] = {}

        def look(part: Part, method: str, given: tuple[Any, ...], came: Any) -> None:
            if isinstance(part, Loss) and isinstance(came, LossOutput):
                batch, targets, negatives, _ = given
                seen = Given(batch, targets, negatives, float(came.value.detach()))
                calls.setdefault(part.name, []).append(seen)

        session.watch(look)
        result = session.step(count_negatives=True)
        self.views = result.views
        self.columns = self._columns()
        self.metrics = {name: round(float(value), 6) for name, value in result.parts.items()}
        made_of = session.composition.losses()
        self.losses = {loss.name: opts for loss, opts in made_of if loss.name in session.losses}
        self.given: dict[str, list[Given]] = {}
        for name, options in self.losses.items():
            sizes = max(1, len(options.dimensions))  # of one direction, the first is shown
            count = sizes * (1 + (getattr(options, "directions", "one") == "both"))
            # A trial for the gradient of the inputs asks the losses too, before the step itself.
            self.given[name] = calls.get(name, [])[-count::sizes]

    def _columns(self) -> dict[str, str]:
        """Return the column of each view's texts, and of what each store keeps, where it is known.

        A view that a part makes is of the ``column`` among that part's options. Negatives that an
        augmenter makes of a text are other texts.
        """
        composition, rows, named = self.session.composition, self.rows, {}
        for view in composition.views:
            maker = next((part for part in composition.parts if part.path == view.made_by), None)
            column = view.name if view.name in (rows.pairs or ()) else view.column or "text"
            if maker is not None:
                column = getattr(maker.options, "column", "")
            elif column not in rows.columns:
                column = "text"
            if column in rows.columns and not (view.augmenters and view.role == "negative"):
                named[view.name] = column
        for store, options in composition.stores():
            if options.view in named:
                named[store.name] = named[options.view]
        return named

    def to_json(self, *, rows: int, columns: int) -> dict[str, Any]:
        """Return plain values, bounded in number and length.

        Args:
            rows: Anchors of each loss at most.
            columns: Negatives, and masked ones, of each anchor at most.
        """
        composition, total = self.session.composition, self.session.total
        losses = {}
        for name, options in self.losses.items():
            calls = self.given[name]
            losses[name] = {
                "weight": options.weight.at(self.step, total),
                "level": options.level,
                "target": options.target,
                "value": self.metrics[f"{name}.loss"] if calls else None,
                **({} if calls else {"why": self._why_not(options)}),
                "directions": [
                    _Direction(self, given, options, turned).to_json(rows, columns)
                    for given, turned in zip(calls, (False, True), strict=False)
                ],
            }
        return {
            "recipe": composition.recipe or "default",
            "model": composition.model.name,
            "data": list(composition.data.path),
            "round": self.session.round,
            "step": self.step + 1,  # as metrics.jsonl counts
            "steps": total,
            "rows": len(torch.unique(next(iter(self.views.values())).tokens.owner)),
            "views": [self._view(name, view, rows) for name, view in self.views.items()],
            "losses": losses,
            "metrics": self.metrics,
        }

    def _why_not(self, options: LossOptions) -> str:
        """Explain why a loss was not called in this step."""
        if options.weight.at(self.step, self.session.total) == 0:
            return "its weight is 0"
        if options.target in self.views:
            return "no text of this batch takes part in it"
        return f"positive {options.target!r} does not exist yet in this step"

    def _view(self, name: str, view: PreparedView, rows: int) -> dict[str, Any]:
        tokens = view.tokens
        lengths = tokens.offsets.diff().tolist()
        inside = (tokens.owner < rows).nonzero().squeeze(1)[: 2 * rows].tolist()
        return {
            "name": name,
            "role": view.view.role,
            "branch": view.view.branch,
            "column": self.columns.get(name),
            "count": tokens.rows,
            "rows": [
                {
                    "row": int(tokens.owner[i]),
                    "slot": int(tokens.slot[i]),
                    "tokens": lengths[i],
                    "read": self.read(view, i),
                }
                for i in inside
            ],
        }

    def read(self, view: PreparedView, row: int, *, whole: bool = True) -> str:
        """Decode the text that the encoder reads in a row of a view; not whole, its content."""
        start, stop = view.tokens.offsets[row : row + 2].tolist()
        tokenizer = self.session.tokenizer(view.view.branch).hf
        ids = view.tokens.ids[start:stop].tolist()
        return _cut(tokenizer.decode(ids, skip_special_tokens=not whole))

    def place(self, view: PreparedView, owner: int, slot: int) -> int | None:
        """Find the row of a view with a text of the batch, or a segment of it."""
        same = (view.tokens.owner == owner) & (view.tokens.slot == slot)
        places = same.nonzero().squeeze(1).tolist()
        return places[0] if places else None

    def of_batch(self, name: str, owner: int, slot: int, level: str) -> str | None:
        """Return the text of this batch that a view's vector is of, or its segment."""
        view, column = self.views[name], self.columns.get(name)
        if column is not None and level == "sentence" and self.rows.offsets(column) is None:
            return _cut(self.rows.texts(column, self.index[owner : owner + 1])[0])
        place = self.place(view, owner, slot)
        return None if place is None else self.read(view, place, whole=column is None)

    def text(self, column: str, row: int) -> str | None:
        """Return the text of a corpus row in a column; None of a row that is not of this round.

        A positive that a miner chose is not a column of the corpus: its row does not tell it.
        """
        rows, corpus = self.rows, self.session.corpus
        mined = rows.pairs is not None and isinstance(rows.pairs["text"], np.ndarray)
        if mined and column != "text" and column not in corpus.names:
            return None
        if rows.pairs is not None and not isinstance(rows.pairs["text"], np.ndarray):
            place, texts = row - rows.keys.first, rows.pairs.get(column, rows.pairs["text"])
            return _cut(str(texts[place])) if 0 <= place < len(texts) else None
        named = column if column in corpus.names else "text"
        return _cut(corpus.column(named)[row]) if 0 <= row < len(corpus) else None


class _Direction:
    """A loss from the anchors to its target, or ``turned``."""

    def __init__(self, step: WatchedStep, given: Given, options: LossOptions, turned: bool) -> None:
        self.step, self.given, self.options, self.turned = step, given, options, turned
        batch, negatives = given.batch, given.negatives
        self.scores = similarity(
            batch.anchors.detach(), negatives.vectors.detach(), options.similarity
        )
        self.once_more = batch.corpus.same(batch.corpus.text_ids, batch.row, negatives.row)
        self.sources = [(name, place) for name, n in negatives.blocks for place in range(n)]
        self.seen = ~negatives.mask & (negatives.log_weights > -torch.inf)

    def to_json(self, rows: int, columns: int) -> dict[str, Any]:
        batch, negatives, blocks = self.given.batch, self.given.negatives, []
        for name, block in negatives.spans():
            mask = self.seen[:, block]
            seen = round(float(mask.sum(dim=1).float().mean()), 4)
            about = {"source": name, "columns": mask.shape[1], "seen_by_an_anchor": seen}
            if name in batch.stored and bool(mask.any()):
                about["age"] = round(float((mask * negatives.age[block]).sum() / mask.sum()), 4)
            blocks.append(about)
        count = len(batch.anchors)
        shown = [self._anchor(anchor, columns) for anchor in range(min(rows, count))]
        return {"anchors": count, "blocks": blocks, "shown": shown}

    def _anchor(self, anchor: int, columns: int) -> dict[str, Any]:
        batch, targets, seen = self.given.batch, self.given.targets, self.seen[anchor]
        row, kind = int(batch.row[anchor]), self.options.similarity
        # The hardest first: what weighs most in the loss.
        order = self.scores[anchor].masked_fill(~seen, -torch.inf).argsort(descending=True)
        masked = (~seen).nonzero().squeeze(1).tolist()
        anchors = batch.anchors[anchor : anchor + 1].detach()
        positives = similarity(anchors, targets.vectors[anchor].detach(), kind)[0][:MAX_POSITIVES]
        weights = [1.0] * len(positives)
        if targets.weights is not None:
            weights = [round(float(weight), 6) for weight in targets.weights[anchor]]
        owner, slot = int(batch.owner[anchor]), int(batch.slot[anchor])
        sides = ("anchor", self.options.target)
        asks, answers = sides[::-1] if self.turned else sides
        known = answers in self.step.views
        return {
            "row": row,
            "batch_row": owner,
            "slot": slot,
            "text": self._of_batch(asks, owner, slot),
            "positives": [
                {kind: round(float(score), 4), "weight": weight}
                | (
                    {"text": self._of_batch(answers, owner, slot + p * SLOTS_PER_TEXT)}
                    if known
                    else {}
                )
                for p, (score, weight) in enumerate(zip(positives, weights, strict=False))
            ],
            "negatives": [
                self._negative(anchor, p) for p in order[: min(columns, int(seen.sum()))].tolist()
            ],
            "negatives_seen": int(seen.sum()),
            "masked": [
                {**self._negative(anchor, p), "why": self._why(anchor, p)} for p in masked[:columns]
            ],
            "masked_in_all": len(masked),
        }

    def _negative(self, anchor: int, place: int) -> dict[str, Any]:
        step, negatives = self.step, self.given.negatives
        row, (source, number) = int(negatives.row[place]), self.sources[place]
        view = step.views.get(negatives.views.get(source, source))
        if view is None or source in self.given.batch.stored:
            text = step.text(step.columns.get(source, "text"), row)
        else:
            tokens, size = view.tokens, dict(negatives.blocks)[source]
            if size == tokens.rows:
                owner, slot = int(tokens.owner[number]), int(tokens.slot[number])
            elif size > tokens.rows:  # lists, laid out at the length of the longest
                many = size // len(self.given.batch.rows)
                owner, slot = number // many, number % many * SLOTS_PER_TEXT
            else:
                owner, slot = int(torch.unique(tokens.owner)[number]), 0
            text = self._of_batch(view.view.name, owner, slot)
        score = round(float(self.scores[anchor, place]), 4)
        value = {"source": source, "row": row, "text": text, self.options.similarity: score}
        if source in self.given.batch.stored:
            value["age"] = int(negatives.age[place])
        if (log_weight := float(negatives.log_weights[anchor, place])) != 0:
            value["log_weight"] = round(log_weight, 4) if log_weight > -torch.inf else "-inf"
        return value

    def _of_batch(self, view: str, owner: int, slot: int) -> str | None:
        return self.step.of_batch(view, owner, slot, self.options.level)

    def _why(self, anchor: int, place: int) -> str:
        """Explain why an anchor does not see a negative, as far as the core knows."""
        batch, negatives = self.given.batch, self.given.negatives
        row, other = negatives.row[place : place + 1], batch.row[anchor : anchor + 1]
        source = self.sources[place][0]
        fresh = source not in batch.stored
        if int(row) == int(other) and fresh:
            return "its own sentence"
        given = fresh and batch.roles.get(source) == "negative"  # it has a text of its own
        if bool(self.once_more[anchor, place]) and not given and self.options.same_text != "keep":
            return "the same text"
        same = batch.corpus.same(batch.corpus.documents, other, row)
        if self.options.same_document == "mask" and bool(same):
            return "the same document"
        return "masked or weighed to nothing by a part, or absent"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"
