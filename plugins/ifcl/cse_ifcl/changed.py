"""A tuned encoder on pairs whose second sentences are changed: study ``ifcl/figure-4a``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from cse_cli.models.saved_model import SentenceModel
    from cse_core.data import Corpus
    from cse_core.parts import Augmenter
    from cse_core.recipes.composition import PlannedPart
    from cse_core.types import StepContext

SEED = 1111
ROWS = 64
"""Texts that are changed and encoded together."""
_SENTENCE, _TRANSLATION = "sentence2", "fraternal"


def scores(point: Mapping[str, Any]) -> dict[str, float]:
    """Return Spearman's correlation on pairs with changed second sentences.

    Args:
        point: ``model``; ``pairs``, a file of graded pairs or an installed data set, whose test
            pairs are taken; ``aug``, an augmenter of this distribution, empty for none; its
            ``lexicon``; ``dropout``, whether it is on for the second sentences.

    Returns:
        ``spearman``, and how many ``pairs`` there are.

    Raises:
        CseError: If the model or the pairs cannot be read, or the augmenter does not fit.
    """
    from scipy.stats import spearmanr

    from cse_cli.api import Installed
    from cse_cli.models.geometry import unit
    from cse_cli.models.loading import load_model
    from cse_cli.texts.tables import read_table
    from cse_core.errors import CseError
    from cse_core.recipes.composition import PlannedPart

    name = str(point["pairs"])
    if Path(name).is_file():
        columns, placed = read_table(name)
        if missing := {"sentence1", _SENTENCE, "score", _TRANSLATION}.difference(columns):
            raise CseError(f"no column {', '.join(sorted(missing))}", where=name)
        rows = [row for _, row in placed]
    else:  # of a data set without translations each sentence is its own
        rows = [{_TRANSLATION: row[_SENTENCE], **row} for row in _installed(name)]
    translations: dict[str, str] = {}
    for row in rows:
        translations.setdefault(row[_SENTENCE], row[_TRANSLATION])
    registry = Installed([]).registry
    model = load_model(str(point["model"]), registry)
    planned = None
    if point.get("aug"):
        part = registry.find("aug", point["aug"])
        given = {"lexicon": point["lexicon"]} if point.get("lexicon") else {}
        planned = PlannedPart.of(part, part.spec.options(**given))
    vectors = changed(model, planned, translations, dropout=bool(point.get("dropout")))
    places = {text: place for place, text in enumerate(translations)}
    first = unit(model.encode([row["sentence1"] for row in rows]))
    second = unit(vectors[[places[row[_SENTENCE]] for row in rows]].numpy())
    gold = [float(row["score"]) for row in rows]
    correlation = float(spearmanr(gold, (first * second).sum(axis=1)).statistic)
    if math.isnan(correlation):
        raise CseError("all grades or all cosines are equal", where=name)
    return {"spearman": round(100 * correlation, 4), "pairs": len(rows)}


def _installed(name: str) -> Sequence[Mapping[str, Any]]:
    """Return the test pairs of an installed data set."""
    from cse_cli.api import Installed
    from cse_core.runtime.loading import load_factory

    dataset = Installed([]).registry.dataset(name)
    return list(load_factory(dataset.spec.factory)().pairs("test"))


def changed(
    model: SentenceModel,
    planned: PlannedPart | None,
    translations: Mapping[str, str],
    *,
    dropout: bool,
) -> Tensor:
    """Return the vectors ``[N, D]`` of N texts, each changed before the model reads it.

    Args:
        model: The model; in evaluation mode but for ``dropout``.
        planned: The augmenter, which changes texts or embeddings.
        translations: Each text with its translation.
        dropout: Whether the encoder's dropout is on: an identical twin.
    """
    import torch

    from cse_core.data import Corpus
    from cse_core.encoders.dropout import DropoutSource
    from cse_core.models.part_factory import PartFactory

    sentences = model.sentence_encoder
    columns = {"text": list(translations), _TRANSLATION: list(translations.values())}
    corpus = Corpus.from_columns(columns)
    source = DropoutSource()
    source.seed(SEED)
    part, point = None, ""
    if planned is not None:
        factory = PartFactory(
            sentences.encoder, sentences.tokenizer, model.device, SEED, corpus, dropout=source
        )
        part = factory(planned, sentences.encoder.hidden_size)
        part.prepare(corpus)
        point = planned.spec.declared("point", planned.options)
    sentences.encoder.use_dropout(source)
    sentences.encoder.train(dropout)
    try:
        with torch.no_grad():
            blocks = [
                _block(model, corpus, part, point, rows)
                for rows in torch.arange(len(corpus)).split(ROWS)
            ]
    finally:
        sentences.encoder.eval()
    return torch.cat(blocks)


def _block(
    model: SentenceModel, corpus: Corpus, part: Augmenter | None, point: str, rows: Tensor
) -> Tensor:
    from cse_core.types import SENTENCE, View

    sentences, device = model.sentence_encoder, model.device
    view = View("positive", "positive", "online")
    texts = [corpus.column("text")[row] for row in rows.tolist()]
    calls: dict[str, Callable[[Tensor], Tensor]] = {}
    if part is not None:
        context = _context(model, corpus, rows, f"aug.{part.name}")
        if point == "text":
            texts = part(texts, None, view, context)
    tokens = sentences.rows(sentences.tokenizer.content(texts, sentences.max_length), "anchor")
    tokens = sentences.clip(tokens)
    if part is not None and point != "text":
        there = tokens.to(device)
        calls = {"on_input": lambda values: part(values, there, view, context).to(values.dtype)}
    return sentences.embed(tokens, device, len(rows), **calls)[SENTENCE].vectors.float().cpu()


def _context(model: SentenceModel, corpus: Corpus, rows: Tensor, path: str) -> StepContext:
    """Return what an augmenter may ask for outside training: texts, and draws of the block."""
    from cse_core.runtime.seeds import StepPosition, draws
    from cse_core.types import StepContext

    block = int(rows[0]) // ROWS
    return StepContext(
        step=block,
        total_steps=-(-len(corpus) // ROWS),
        epoch=0,
        round=0,
        rows=rows,
        device=model.device,
        generator=draws(SEED, StepPosition(block, len(corpus), 0, 0), 0, path, "positive"),
        vectors=lambda view, branch: {},
        gradient=lambda view, tokens: None,
        texts=lambda column: [corpus.column(column)[row] for row in rows.tolist()],
        values=_not_here,
        negatives=_not_here,
        log=lambda name, value: None,
    )


def _not_here(*_: object) -> Any:
    raise RuntimeError("an augmenter of these texts has neither numbers nor negatives")
