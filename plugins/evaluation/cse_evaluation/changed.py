"""Sentences changed by augmenters before a trained model encodes them (IFCL, Figure 4a)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cse_cli.models.saved_model import SentenceModel
from cse_cli.models.spread import unit
from cse_core.data import Corpus
from cse_core.encoders.dropout import DropoutSource
from cse_core.encoders.encoder import PackedEncoder
from cse_core.evaluation.suites import Encode
from cse_core.models.part_factory import PartFactory
from cse_core.parts import Augmenter
from cse_core.recipes.composition import PlannedPart
from cse_core.records import AugmenterSpec
from cse_core.runtime.seeds import StepPosition, draws
from cse_core.tokenization.tokenizer import TextTokenizer
from cse_core.types import SENTENCE, Embeddings, StepContext, TokenBatch, View
from cse_evaluation.pairs import PairSet
from cse_evaluation.vectors import EncodedTexts

ROWS = 64
"""Texts that are changed and encoded together."""
_VIEW = View("positive", "positive", "online")


class ChangedTexts(EncodedTexts):
    """An encoder of pairs whose second sentences are changed.

    Args:
        encode: The encoder of texts as they are.
        sets: The pairs.
        changed: From distinct second sentences to their vectors ``[N, D]`` as they are changed.
    """

    def __init__(self, encode: Encode, sets: Sequence[PairSet], changed: Encode) -> None:
        super().__init__(encode, (text for each in sets for text in each.texts))
        self._changed = EncodedTexts(changed, second_sentences(sets))

    def changed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors ``[N, D]`` of second sentences of the pairs, changed."""
        return self._changed(texts)

    def pair_vectors(self, pairs: PairSet) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return unit vectors of the first sentences, and of the second ones changed."""
        first = self.unit([pair.sentence1 for pair in pairs.pairs])
        return first, unit(self.changed([pair.sentence2 for pair in pairs.pairs]))


def second_sentences(sets: Iterable[PairSet]) -> list[str]:
    """Return the distinct second sentences of sets, in order of appearance."""
    return list(dict.fromkeys(pair.sentence2 for pairs in sets for pair in pairs.pairs))


@dataclass(frozen=True)
class Changer:
    """Encodes texts as a model does, changed by augmenters on the way.

    Attributes:
        model: The model; in evaluation mode but for ``dropout``.
        augmenters: In the order in which they act, each at its own point.
        columns: Other columns, such as translations, by name and text.
        dropout: Whether the encoder's dropout is on: an identical twin.
        seed: Of what is drawn.
        resolve_model: Turns the name of a second encoder into a folder or hub name.
    """

    model: SentenceModel
    augmenters: Sequence[PlannedPart]
    columns: Mapping[str, Mapping[str, str]]
    dropout: bool
    seed: int
    resolve_model: Callable[[str], str]

    @torch.no_grad()
    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors ``[N, D]`` of texts that ``columns`` knows.

        Raises:
            CseError: If a part cannot be made, such as one of a second model that is not there.
        """
        sentences = self.model.sentence_encoder
        known = {name: [values[text] for text in texts] for name, values in self.columns.items()}
        corpus = Corpus.from_columns({**known, "text": list(texts)})
        source = DropoutSource()
        source.seed(self.seed)
        factory = PartFactory(
            sentences.encoder,
            sentences.tokenizer,
            self.model.device,
            self.seed,
            corpus,
            load_encoder=self._load,
            dropout=source,
        )
        parts = []
        for planned in self.augmenters:
            part = cast(Augmenter, factory(planned, sentences.encoder.hidden_size))
            part.prepare(corpus)
            point = cast(AugmenterSpec, planned.spec).point_of(planned.options)
            parts.append((planned.path, point, part))
        sentences.encoder.use_dropout(source)
        sentences.encoder.train(self.dropout)
        try:
            with self.model.precision.autocast():
                blocks = [
                    self._block(corpus, parts, torch.arange(first, min(first + ROWS, len(texts))))
                    for first in range(0, len(texts), ROWS)
                ]
        finally:
            sentences.encoder.eval()
        return torch.cat(blocks).numpy()

    def _block(
        self, corpus: Corpus, parts: Sequence[tuple[str, str, Augmenter]], rows: Tensor
    ) -> Tensor:
        sentences, device = self.model.sentence_encoder, self.model.device
        contexts = {path: self._context(corpus, rows, path) for path, _, _ in parts}

        def at(point: str, x: object, tokens: TokenBatch | None) -> object:
            for path, where, part in parts:
                if where == point:
                    x = part(x, tokens, _VIEW, contexts[path])
            return x

        plain = [corpus.column("text")[row] for row in rows.tolist()]
        content = sentences.tokenizer.content(
            cast(list[str], at("text", plain, None)), sentences.max_length
        )
        tokens = sentences.rows(content, "anchor")
        for path, where, part in parts:
            if where == "tokens":
                tokens = part(tokens, tokens, _VIEW, contexts[path])
        tokens = sentences.clip(tokens)
        there = tokens.to(device)

        def on(point: str) -> Callable[[Tensor], Tensor]:
            return lambda values: cast(Tensor, at(point, values, there)).to(values.dtype)

        levels = sentences.embed(
            tokens,
            device,
            len(rows),
            on_words=on("word_embeddings"),
            on_input=on("input_embeddings"),
        )
        return levels[SENTENCE].vectors.float().cpu()

    def _context(self, corpus: Corpus, rows: Tensor, path: str) -> StepContext:
        block = int(rows[0]) // ROWS
        places = rows.tolist()

        def texts(column: str) -> list[str]:
            values = corpus.column(column)
            return [values[row] for row in places]

        return StepContext(
            step=block,
            total_steps=-(-len(corpus) // ROWS),
            epoch=0,
            round=0,
            rows=rows,
            device=self.model.device,
            generator=draws(self.seed, StepPosition(block, len(corpus), 0, 0), 0, path, _VIEW.name),
            vectors=_nothing,
            gradient=lambda view, tokens: None,
            texts=texts,
            log=lambda name, value: None,
        )

    def _load(self, name: str) -> tuple[PackedEncoder, TextTokenizer]:
        where = self.resolve_model(name)
        encoder, tokenizer = PackedEncoder.load_with_tokenizer(where, seed=self.seed)
        return encoder.to(self.model.device), tokenizer


def _nothing(view: str, branch: str | None) -> Mapping[str, Embeddings]:
    raise RuntimeError(f"an augmenter asked for the vectors of view {view} outside training")
