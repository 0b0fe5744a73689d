"""Late interaction beside one vector: ``python -m tests.benchmarks.late FOLDER MODEL...``.

FOLDER is a test collection, ``retrieval/cranfield`` for example. Models have vectors of tokens, as
recipe ``colbert`` trains them, or their last states are taken. The vector of the text finds 50
documents, which MaxSim orders: nDCG@10 of both, with 95 % intervals over queries. Seconds are those
of the processor on one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from cse_evaluation.collections import read_collection
from cse_search.late import Late
from cse_search.reranking import DEPTH
from numpy.typing import NDArray

import cse
from cse import TextEncoder, unit
from cse_cli.api import Installed
from cse_cli.models.saved_model import SentenceModel
from cse_engine.compose.composition import PlannedPart
from cse_engine.compose.models import Models
from cse_engine.step.part_factory import Making, make_part

TOP, DRAWS = 10, 10_000


def ndcg(order: list[str], grades: Mapping[str, int]) -> float:
    """Return nDCG@10 of a list of documents, with the grades as gains."""
    gains = [grades.get(name, 0) for name in order[:TOP]]
    best = sorted(grades.values(), reverse=True)[:TOP]
    discounts = 1 / np.log2(np.arange(2, TOP + 2))
    ideal = float(np.dot(best, discounts[: len(best)]))
    return 100 * float(np.dot(gains, discounts[: len(gains)])) / ideal if ideal else 0.0


def interval(values: NDArray[Any]) -> str:
    """Describe a mean with its bootstrap interval."""
    drawn = np.random.default_rng(0).integers(len(values), size=(DRAWS, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    return f"{values.mean():.2f} [{low:.2f}, {high:.2f}]"


def with_tokens(loaded: SentenceModel) -> SentenceModel:
    """Add vectors of tokens to a model that was not trained for them."""
    encoder = loaded.sentence_encoder
    if "token" in encoder.several:
        return loaded
    registry = Installed().registry
    making = Making(
        encoder.encoder, encoder.tokenizer, Models(registry), loaded.device, loaded.name
    )
    planned = PlannedPart.of(registry.find("pool", "token-vectors"))
    pooler = make_part(planned, encoder.encoder.hidden_size, making)
    return replace(loaded, sentence_encoder=replace(encoder, several={"token": pooler}))


def main(folder: str, *models: str) -> None:
    """Print a line for each model."""
    torch.set_num_threads(1)
    collection = read_collection(folder)
    names, texts = [*collection.documents], [*collection.documents.values()]
    judged = {key: collection.judgements[key] for key in collection.queries}
    for name in models:
        encode = TextEncoder(with_tokens(cse.load(name, device="cpu").loaded))
        late = Late(encode, "token")
        vectors, tokens = unit(encode(texts, role="document")), late.of_texts(texts)
        plain, by_tokens, seconds = [], [], []
        for key, grades in judged.items():
            query = collection.queries[key]
            first = np.argsort(-(unit(encode([query], role="query")) @ vectors.T)[0])[:DEPTH]
            began = time.process_time()
            scores = late.scores(query, [tokens[place] for place in first])
            seconds.append(time.process_time() - began)
            plain.append(ndcg([names[place] for place in first], grades))
            order = np.argsort([-score for score, _ in scores], kind="stable")
            by_tokens.append(ndcg([names[first[place]] for place in order], grades))
        one, other = np.array(plain), np.array(by_tokens)
        sizes = vectors.shape[1] * 4 * len(texts), sum(part.nbytes for part in tokens) // 2
        kept = " and ".join(f"{size / 1e6:.1f} MB" for size in sizes)  # tokens in float16
        print(
            f"{name}: {len(judged)} queries; vector {interval(one)}, MaxSim {interval(other)}, "
            f"difference {interval(other - one)}; index {kept} more; "
            f"{np.median(seconds):.3f} s more a query",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
