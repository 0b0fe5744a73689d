"""Questions that name a section, and whether they find its first passage: docs/domains.md.

    python -m tests.benchmarks.passages ARTICLES.jsonl.gz MODEL

The articles are those of ``cse data fetch docs``: title and sections. A question is a section's
heading and the title of its article: ``Recognition of Lorenz Bäumer``.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cse
from cse_core.texts import in_context

ARTICLES, QUESTIONS, WORDS, SHARE = 450, 500, 100, 0.3
"""Articles, questions, words of a passage, and the share of BM25."""


def passages(path: Path) -> tuple[list[tuple[str, str, str]], list[tuple[str, int]]]:
    """Cut articles into passages of title, heading and text; a question has a passage's place."""
    articles = [json.loads(line) for line in gzip.open(path, "rt", encoding="utf-8")]
    random.Random(0).shuffle(articles)
    cut: list[tuple[str, str, str]] = []
    asked: list[tuple[str, int]] = []
    for article in articles[:ARTICLES]:
        for heading, sentences in article["sections"]:
            if heading and sentences:
                asked.append((f"{heading} of {article['title']}", len(cut)))
            part: list[str] = []
            for sentence in sentences:
                part.append(sentence)
                if sum(len(one.split()) for one in part) >= WORDS:
                    cut.append((article["title"], heading, " ".join(part)))
                    part = []
            if part:
                cut.append((article["title"], heading, " ".join(part)))
    random.Random(1).shuffle(asked)
    return cut, asked[:QUESTIONS]


def line(name: str, scores: NDArray[Any], places: NDArray[np.int64]) -> str:
    """Describe where the right passages rank, with a 95 % interval of the MRR over questions."""
    right = np.take_along_axis(scores, places[:, None], axis=1)
    ranks = (scores > right).sum(axis=1) + 1
    inverse, draws = 1 / ranks, np.random.default_rng(0)
    means = [inverse[draws.integers(len(ranks), size=len(ranks))].mean() for _ in range(2000)]
    low, high = np.quantile(means, (0.025, 0.975))
    first, three = (100 * (ranks <= most).mean() for most in (1, 3))
    shown = f"R@1 {first:5.1f}  R@3 {three:5.1f}  MRR {inverse.mean():.3f} [{low:.3f}, {high:.3f}]"
    return f"{name:44}{shown}"


def main(articles: str, name: str) -> None:
    """Print a line for vectors, for words and for both, of passages with and without context."""
    model = cse.load(name)
    cut, asked = passages(Path(articles))
    questions, places = [text for text, _ in asked], np.array([place for _, place in asked])
    print(f"{len(cut):,} passages of {ARTICLES} articles, {len(asked)} questions, {name}")
    texts = {
        "text": [text for _, _, text in cut],
        "title, headings and text": [in_context(text, *place) for *place, text in cut],
    }
    encoded = cse.unit(model.encode(questions))
    vectors = {kind: encoded @ cse.unit(model.encode(some)).T for kind, some in texts.items()}
    words = {kind: cse.Bm25.of(some).of_queries(questions) for kind, some in texts.items()}
    for kind, scores in vectors.items():
        print(line(f"vectors of {kind}", scores, places))
    for kind, scores in words.items():
        print(line(f"BM25 of {kind}", scores, places))
    for kind, scores in words.items():
        both = cse.fuse(vectors["title, headings and text"], scores, SHARE)
        print(line(f"both, BM25 of {kind}", both, places))


if __name__ == "__main__":
    main(*sys.argv[1:])
