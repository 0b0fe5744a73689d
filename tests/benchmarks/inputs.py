"""Texts, documents and encoders to measure on: given files, or the starter's texts."""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cse_core.registry.registry import Registry
    from cse_defaults.texts import Corpus

STARTER = "starter"
VOCABULARY = 30522
FOR_VOCABULARY = 20_000
"""Texts of which a vocabulary is made."""


@dataclass(frozen=True)
class Shape:
    layers: int = 6
    hidden: int = 384

    @property
    def inner(self) -> int:
        return 4 * self.hidden

    @property
    def heads(self) -> int:
        """Return the number of attention heads: of 64 dimensions, of 32 in small encoders."""
        return self.hidden // (64 if self.hidden > 384 else 32)

    def __str__(self) -> str:
        return f"{self.layers} layers by {self.hidden}"

    def operations(self, rows: Sequence[int]) -> float:
        """Return the operations of rows of so many tokens: products of the layers, forward."""
        linear = 2 * (4 * self.hidden**2 + 2 * self.hidden * self.inner) * sum(rows)
        attention = 4 * self.hidden * sum(row**2 for row in rows)
        return self.layers * float(linear + attention)


@cache
def registry() -> Registry:
    from cse_core.registry.manager import load_plugins
    from cse_core.registry.registry import Registry

    return Registry.from_plugins(load_plugins().infos)


@cache
def load(path: str | None, unit: str = "sentence") -> Corpus:
    """Return the rows of any file that ``cse train --data`` takes, or the starter's."""
    from cse_defaults.texts import load_corpus
    from cse_engine.compose.compose import resolve

    options = resolve(registry(), data=[path or STARTER], sets=[f"data.unit={unit}"]).data
    return load_corpus(options, registry())


def read(path: str | None, count: int, unit: str = "sentence") -> list[str]:
    """Return at most so many distinct texts of a file, or of the starter, in a drawn order."""
    texts = [" ".join(text.split()) for text in dict.fromkeys(load(path, unit).column("text"))]
    random.Random(0).shuffle(texts)
    return texts[:count]


def mix_lengths(
    texts: Sequence[str], count: int, lengths: Callable[[Sequence[str]], list[int]]
) -> list[str]:
    """Return at most ``count`` rows of running words, with log-normal lengths of median 17 tokens.

    Of batches padded to 32 tokens, special ones counted, a third is padding then, as with sentences
    of mixed sources. ``lengths`` gives the tokens of each word.
    """
    words = [word for text in texts for word in text.split()]
    ends = list(itertools.accumulate(lengths(words)))
    draws, rows, start, done = random.Random(0), [], 0, 0
    while len(rows) < count and start < len(words):
        done += max(1, min(150, round(draws.lognormvariate(math.log(17), 0.57))))
        stop = max(bisect.bisect_right(ends, done), start + 1)
        rows.append(" ".join(words[start:stop]))
        start, done = stop, ends[stop - 1]
    return list(dict.fromkeys(rows))


def content_lengths(model: str, texts: Sequence[str]) -> list[int]:
    from transformers import AutoTokenizer

    encoded = AutoTokenizer.from_pretrained(model)(
        list(texts), add_special_tokens=False, verbose=False
    )
    return [len(ids) for ids in encoded["input_ids"]]


def full_rows(texts: Sequence[str], count: int, words: int = 700) -> list[str]:
    """Return texts of so many running words each, which are more than 512 tokens."""
    running = itertools.cycle(word for text in texts for word in text.split())
    return [" ".join(itertools.islice(running, words)) for _ in range(count)]


def write(path: Path, texts: Sequence[str]) -> str:
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return str(path)


def make_model(folder: Path, texts: Sequence[str], shape: Shape) -> str:
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    silence()
    pieces: Any = BertWordPieceTokenizer(lowercase=True)
    pieces.train_from_iterator(texts, vocab_size=VOCABULARY, min_frequency=1, show_progress=False)
    tokenizer = BertTokenizerFast(
        tokenizer_object=pieces._tokenizer, model_max_length=512, do_lower_case=True
    )
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.inner,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def silence() -> None:
    import datasets
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    datasets.disable_progress_bars()
