"""A tuned encoder on pairs whose second sentences are changed: study ``ifcl/figure-4a``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import cse

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SENTENCE, _TRANSLATION = "sentence2", "fraternal"
_ROWS, _SEED = 64, 1111
"""Texts of an encoder call, and the seed of what is drawn."""


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

    from cse import unit

    name = str(point["pairs"])
    if Path(name).is_file():
        columns, placed = cse.read_table(name)
        if missing := {"sentence1", _SENTENCE, "score", _TRANSLATION}.difference(columns):
            raise cse.CseError(f"no column {', '.join(sorted(missing))}", where=name)
        rows = [row for _, row in placed]
    else:  # of a data set without translations each sentence is its own
        rows = [{_TRANSLATION: row[_SENTENCE], **row} for row in _installed(name)]
    translations: dict[str, str] = {}
    for row in rows:
        translations.setdefault(row[_SENTENCE], row[_TRANSLATION])
    model = cse.load(str(point["model"]))
    vectors = _encode_changed(model, translations, point)
    places = {text: place for place, text in enumerate(translations)}
    first = unit(model.encode([row["sentence1"] for row in rows]))
    second = unit(vectors[[places[row[_SENTENCE]] for row in rows]])
    gold = [float(row["score"]) for row in rows]
    correlation = float(spearmanr(gold, (first * second).sum(axis=1)).statistic)
    if math.isnan(correlation):
        raise cse.CseError("all grades or all cosines are equal", where=name)
    return {"spearman": round(100 * correlation, 4), "pairs": len(rows)}


def _encode_changed(
    model: cse.Model, translations: Mapping[str, str], point: Mapping[str, Any]
) -> NDArray[np.float32]:
    """Encode texts ``[N, D]`` with an augmenter and dropout, as a view of training is.

    A session makes the augmenter, which sees the texts as the rows of its round.
    """
    import torch

    from cse_core.functional import derive_seed
    from cse_core.types import SENTENCE, View
    from cse_ifcl.words import WordAugmenter

    texts, aug, view = list(translations), point.get("aug"), View("positive", "positive", "online")
    options = {f"aug.{aug}.lexicon": point["lexicon"]} if point.get("lexicon") else {}
    data = {"text": texts, _TRANSLATION: list(translations.values())}
    sentences, device = model.loaded.sentence_encoder, model.loaded.device
    with cse.Session(
        "simcse", model=model.name, pool="model", data=data, dev="none", aug=aug or None,
        options={"train.seed": _SEED, **options},
    ) as session:  # fmt: skip
        part: Any = session.parts[f"aug.{aug}"] if aug else None
        online: Any = session.encoder()
    online.dropout_source.seed(_SEED)
    online.dropout_source.serve(sentences.encoder)

    def encode(rows: torch.Tensor, step: int) -> torch.Tensor:
        seed = derive_seed(_SEED, 0, step, "part", "words", "rank 0", f"aug.{aug}", view.name)
        ctx: Any = SimpleNamespace(
            round=0, rows=rows, device=device,
            generator=lambda *_, **__: torch.Generator().manual_seed(seed),
        )  # fmt: skip
        batch = [texts[row] for row in rows.tolist()]
        hooks: dict[str, Any] = {}
        if isinstance(part, WordAugmenter):
            batch = part(batch, None, view, ctx)
        content = sentences.tokenizer.content(batch, sentences.max_length)
        tokens = sentences.clip(sentences.rows(content, "anchor"))
        if part is not None and not isinstance(part, WordAugmenter):
            name = "on_words" if part.options.at == "word_embeddings" else "on_input"
            placed = tokens.to(device)
            hooks[name] = lambda values: part(values, placed, view, ctx).to(values.dtype)
        return sentences.embed(tokens, device, len(rows), **hooks)[SENTENCE].vectors.float().cpu()

    sentences.encoder.train(bool(point.get("dropout")))
    with torch.no_grad():
        batches = enumerate(torch.split(torch.arange(len(texts)), _ROWS))
        vectors = torch.cat([encode(rows, step) for step, rows in batches])
    sentences.encoder.eval()
    return vectors.numpy()


def _installed(name: str) -> Sequence[Mapping[str, Any]]:
    """Return the test pairs of an installed data set."""
    from cse_cli.api import Installed
    from cse_core.loading import load_factory
    from cse_core.records import SourceSpec

    dataset = Installed([]).registry.one(SourceSpec, name)
    return list(load_factory(dataset.spec.factory)().pairs("test"))
