"""Vectors of texts as a view of training has them: changed by an augmenter, with dropout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cse_core.parts import RoundContext
from cse_core.types import SENTENCE, StepContext, View
from cse_defaults.texts import Corpus
from cse_engine.runtime.seeds import StepPosition, draws, uniform_draws
from cse_engine.step.dropout import DropoutSource
from cse_engine.step.part_factory import PartFactory
from cse_engine.step.training_rows import TrainingRows

if TYPE_CHECKING:
    from cse_cli.models.saved_model import SentenceModel
    from cse_engine.compose.composition import PlannedPart

ROWS = 64
"""Texts of a batch."""
VIEW = View("positive", "positive", "online")


def encode_view(
    model: SentenceModel,
    columns: Mapping[str, Sequence[str]],
    planned: PlannedPart | None,
    *,
    dropout: bool,
    seed: int,
) -> Tensor:
    """Return the vectors ``[N, D]`` of column ``text``, as ``cse.Model.encode_view`` does."""
    sentences = model.sentence_encoder
    corpus = Corpus.from_columns(columns)
    source = DropoutSource()
    source.seed(seed)
    part: Any = None
    if planned is not None:
        made = PartFactory(
            sentences.encoder, sentences.tokenizer, model.device, seed, corpus, dropout=source
        )
        part = made(planned, sentences.encoder.hidden_size)
        part.prepare(corpus)
        rows = TrainingRows(corpus, sentences.max_length)
        part.begin_round(rows, _before_the_round(model, corpus, seed))
    sentences.encoder.use_dropout(source)
    sentences.encoder.train(dropout)
    try:
        with torch.no_grad():
            batches = torch.split(torch.arange(len(corpus)), ROWS)
            return torch.cat([_batch(model, corpus, planned, part, rows, seed) for rows in batches])
    finally:
        sentences.encoder.eval()


def _batch(
    model: SentenceModel,
    corpus: Corpus,
    planned: PlannedPart | None,
    part: Any,
    rows: Tensor,
    seed: int,
) -> Tensor:
    sentences, device = model.sentence_encoder, model.device
    texts = corpus.column("text").take(rows.numpy())
    point = ""
    hooks: dict[str, Any] = {}
    if planned is not None:
        context = _context(corpus, rows, seed, planned.path, device)
        point = planned.spec.declared("point", planned.options)
    if point == "text":
        texts = part(texts, None, VIEW, context)
    content = sentences.tokenizer.content(texts, sentences.max_length)
    tokens = sentences.rows(content, "anchor")
    if point == "tokens":
        tokens = part(tokens, tokens, VIEW, context)
    tokens = sentences.clip(tokens)
    if point.endswith("embeddings"):
        there = tokens.to(device)
        hook = "on_words" if point == "word_embeddings" else "on_input"
        hooks = {hook: lambda values: part(values, there, VIEW, context).to(values.dtype)}
    return sentences.embed(tokens, device, len(rows), **hooks)[SENTENCE].vectors.float().cpu()


def _context(
    corpus: Corpus, rows: Tensor, seed: int, path: str, device: torch.device
) -> StepContext:
    """Return what an augmenter may ask for outside training: texts, and draws of the batch."""
    step = int(rows[0]) // ROWS
    place = (seed, StepPosition(step, len(corpus), 0, 0), 0, path, VIEW.name)
    steps = -(-len(corpus) // ROWS)
    plain = StepContext(step=step, total_steps=steps, epoch=0, round=0, rows=rows, device=device)
    return plain.replace(
        generator=draws(*place),
        uniform=uniform_draws(*place),
        gradient=lambda view, tokens: None,
        texts=lambda column: corpus.column(column).take(rows.numpy()),
        log=lambda name, value: None,
    )


def _before_the_round(model: SentenceModel, corpus: Corpus, seed: int) -> RoundContext:
    return RoundContext(
        round=0,
        corpus=corpus,
        encode=lambda texts: torch.from_numpy(model.encode(texts)),
        scores=(),
        generator=draws(seed, StepPosition(0, 0, 0, 0), 0),
        shared=lambda count, make, at_once=1: make(0, count),
        progress=lambda done, total, what: None,
    )
