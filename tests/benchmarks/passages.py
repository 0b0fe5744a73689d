"""Questions that name a section, and whether they find its first passage: docs/domains.md.

    python -m tests.benchmarks.passages ARTICLES.jsonl.gz MODEL
    python -m tests.benchmarks.passages FOLDER MODEL

The articles are those of ``cse data fetch docs``: title and sections. A folder holds documents,
cut as ``cse index`` does. A question is a section's heading and the title of its document:
``Recognition of Lorenz Bäumer``.
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
from cse_core.errors import CseError
from cse_core.texts import in_context
from cse_defaults.documents.document import read_document
from cse_defaults.documents.walk import Walk

ARTICLES, QUESTIONS, WORDS, SHARE = 450, 500, 100, 0.3
"""Articles, questions, words of an article's passage, and the share of BM25."""
PASSAGES = 2_000
"""Passages of a folder, about."""
Cut = tuple[list[tuple[str, str, str]], list[tuple[str, int]]]
"""Passages of title, headings and text; questions, each with the place of a passage."""


def of_folder(folder: Path) -> Cut:
    """Return passages of documents, and questions for the first one under each heading."""
    files = [*Walk(folder).paths()]
    random.Random(0).shuffle(files)
    cut: list[tuple[str, str, str]] = []
    asked: dict[str, int] = {}
    for file in files:
        try:
            document = read_document(file)
        except CseError:
            continue
        if len(cut) >= PASSAGES:
            break
        for passage in document.passages:
            if passage.headings:
                heading = passage.headings.rpartition(" > ")[2]
                asked.setdefault(f"{heading} of {document.title}", len(cut))
            cut.append((document.title, passage.headings, passage.text))
    questions = [*asked.items()]
    random.Random(1).shuffle(questions)
    return cut, questions[:QUESTIONS]


def passages(path: Path) -> Cut:
    """Return passages of articles, and questions for the first one of each section."""
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
    """Describe where the right passages rank, with 95 % intervals over questions."""
    right = np.take_along_axis(scores, places[:, None], axis=1)
    ranks = (scores > right).sum(axis=1) + 1
    places = np.random.default_rng(0).integers(len(ranks), size=(2000, len(ranks)))
    shown = []
    for kind, values, digits in (
        ("R@1", 100.0 * (ranks <= 1), 1), ("R@3", 100.0 * (ranks <= 3), 1), ("MRR", 1 / ranks, 3),
    ):  # fmt: skip
        low, high = np.quantile(values[places].mean(axis=1), (0.025, 0.975))
        mean = f"{values.mean():.{digits}f}"
        shown.append(f"{kind} {mean} [{low:.{digits}f}, {high:.{digits}f}]")
    return f"{name:40}{'  '.join(shown)}"


def main(articles: str, name: str) -> None:
    """Print a line for vectors, for words and for both, of passages with and without context."""
    model = cse.load(name)
    path = Path(articles)
    cut, asked = of_folder(path) if path.is_dir() else passages(path)
    questions, places = [text for text, _ in asked], np.array([place for _, place in asked])
    print(f"{len(cut):,} passages, {len(asked)} questions, {name}")
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
