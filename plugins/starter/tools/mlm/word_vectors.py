"""Word vectors counted from the texts, and the sentence vectors that an encoder learns to match.

A word's vector has two parts: a quarter of its places says in what company it stands (positive
pointwise mutual information, reduced by a singular value decomposition), the others are a random
direction of its own, twice as long, which keeps words of one topic apart. A sentence's vector is
the sum of its words' vectors, each weighted by a / (a + p(word)) (Arora et al. 2017, "A simple but
tough-to-beat baseline for sentence embeddings").
"""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from mlm.text import TokenStore

WINDOW = 8
COMPANY = 0.25
"""The share of a vector's places that say in what company a word stands."""
OWN = 2.0
"""How much longer the random part is."""
SMOOTHING = 1e-3
"""The constant a of a word's weight."""
_BLOCK = 4_000_000


def training_tokens(store: TokenStore) -> NDArray[np.int64]:
    """Return the tokens of all texts that are not held out, end to end."""
    starts, ends = store.sentences[store.texts[:-1]], store.sentences[store.texts[1:]]
    kept = np.repeat(~store.held_out, ends - starts)
    return np.asarray(store.tokens)[kept].astype(np.int64)


def cooccurrences(tokens: NDArray[np.int64], size: int) -> NDArray[np.float32]:
    """Return how often words stand near each other `[size, size]`, symmetric.

    A pair `d` places apart counts 1 - (d - 1) / WINDOW. Windows cross the ends of texts.
    """
    counts = np.zeros(size * size, dtype=np.float32)
    for start in range(0, max(1, len(tokens) - 1), _BLOCK):
        block = tokens[start : start + _BLOCK + WINDOW]
        for distance in range(1, WINDOW + 1):
            first, second = block[:_BLOCK][: len(block) - distance], block[distance:]
            pairs = first * size + second[: len(first)]
            weight = 1 - (distance - 1) / WINDOW
            counts += np.bincount(pairs, minlength=size * size).astype(np.float32) * weight
    square = counts.reshape(size, size)
    return square + square.T


def company_vectors(counts: Tensor, dimensions: int) -> Tensor:
    """Return centred unit vectors `[V, dimensions]` of the company that words keep.

    They are left singular vectors of the positive pointwise mutual information, contexts smoothed
    by the power 0.75 (Levy and Goldberg 2014); the first, which every word shares, is left out.
    """
    rows = counts.sum(1).clamp(min=1)
    contexts = counts.sum(0).clamp(min=1) ** 0.75
    information = torch.log((counts / rows[:, None]).clamp(min=1e-12))
    information -= torch.log(contexts / contexts.sum())
    left, _, _ = torch.svd_lowrank(information.clamp_(min=0), q=dimensions + 32, niter=3)
    left = left[:, 1 : dimensions + 1]
    return F.normalize(left - left.mean(0), dim=1)


def word_vectors(store: TokenStore, size: int, hidden: int, seed: int) -> Tensor:
    """Return a unit vector for each word of the vocabulary `[size, hidden]`."""
    company = round(COMPANY * hidden)
    counts = torch.from_numpy(cooccurrences(training_tokens(store), size))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        own = F.normalize(torch.randn(size, hidden - company), dim=1)
        parts = [company_vectors(counts, company), OWN * own]
    return F.normalize(torch.cat(parts, dim=1), dim=1)


def open_vectors(path: Path, store: TokenStore, size: int, hidden: int, seed: int) -> Tensor:
    """Return the word vectors of a run, made once and kept in `path`."""
    if not path.is_file():
        beside = path.with_suffix(".new")
        save_file({"vectors": word_vectors(store, size, hidden, seed)}, beside)
        beside.rename(path)
    vectors: Tensor = load_file(path)["vectors"]
    return vectors


def word_weights(store: TokenStore, size: int) -> Tensor:
    """Return the weight a / (a + p) of each word `[size]`."""
    counts = np.bincount(training_tokens(store), minlength=size)
    share = torch.from_numpy(counts / max(1, counts.sum()))
    return (SMOOTHING / (SMOOTHING + share)).float()
