"""Sentences per second of simcse beside sentence-transformers' trainer on the same work.

Same model (a random BERT of MiniLM-L6's size), same sentences, batch, length and loss, in one
process, alternating, so that a noisy machine is as noisy for both. Prints medians of the ratios.

    python benchmarks/training.py [--rounds 5] [--steps 6] [--texts FILE] [--mixed]
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

BATCH, LENGTH, TEMPERATURE, LR = 64, 32, 0.05, 3e-5


def read_texts(path: str | None, count: int) -> list[str]:
    """Return distinct sentences: of a file, or of the starter's grammar."""
    if path is None:
        from cse_starter.corpus import StarterCorpus

        texts = [row["text"] for row in StarterCorpus().rows()]
    else:
        opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)  # noqa: SIM115
        with opened as lines:
            texts = [line.strip() for line in lines if line.strip()]
    texts = list(dict.fromkeys(texts))
    random.Random(0).shuffle(texts)
    return texts[:count]


def mix_lengths(texts: Sequence[str], count: int) -> list[str]:
    """Return rows of the texts' running words: log-normal lengths, median 17, mean 20 words.

    A third of a padded batch is padding then, as with sentences of mixed sources.
    """
    words = [word for text in texts for word in text.split()]
    draws, rows, start = random.Random(0), [], 0
    while len(rows) < count and start < len(words):
        length = max(1, min(150, round(draws.lognormvariate(math.log(17), 0.57))))
        rows.append(" ".join(words[start : start + length]))
        start += length
    return list(dict.fromkeys(rows))


def make_model(folder: Path, texts: Sequence[str]) -> None:
    """Save a random BERT of 6 layers by 384 and a vocabulary made of the texts."""
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    pieces = BertWordPieceTokenizer(lowercase=True)
    pieces.train_from_iterator(texts, vocab_size=30522, min_frequency=1, show_progress=False)
    tokenizer = BertTokenizerFast(tokenizer_object=pieces._tokenizer, model_max_length=512)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30522,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def peer_round(folder: Path, texts: Sequence[str], steps: int, bf16: bool) -> float:
    """Return sentences per second of sentence-transformers' trainer over ``steps`` steps."""
    import torch
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        losses,
        models,
    )
    from transformers import TrainerCallback

    class Clock(TrainerCallback):
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, *_: object, **__: object) -> None:
            self.ends.append(time.perf_counter())

    word = models.Transformer(str(folder), max_seq_length=LENGTH)
    pooling = models.Pooling(word.get_word_embedding_dimension(), pooling_mode="cls")
    head = models.Dense(384, 384, activation_function=torch.nn.Tanh())
    model = SentenceTransformer(modules=[word, pooling, head], device="cpu")
    clock = Clock()
    with tempfile.TemporaryDirectory() as out:
        trainer = SentenceTransformerTrainer(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=out,
                max_steps=steps + 1,
                per_device_train_batch_size=BATCH,
                learning_rate=LR,
                bf16=bf16,
                use_cpu=True,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                seed=1,
            ),
            train_dataset=Dataset.from_dict({"anchor": list(texts), "positive": list(texts)}),
            loss=losses.MultipleNegativesRankingLoss(model, scale=1 / TEMPERATURE),
            callbacks=[clock],
        )
        trainer.train()
    return BATCH * steps / (clock.ends[-1] - clock.ends[0])


def own_round(folder: Path, data: Path, steps: int, precision: str) -> float:
    """Return sentences per second of `cse train --recipe simcse` over ``steps`` steps."""
    from cse_core.composer import resolve
    from cse_core.manager import load_plugins
    from cse_core.registry import Registry
    from cse_core.reporting import Reporter
    from cse_core.training import train

    class Clock(Reporter):
        def __init__(self) -> None:
            self.ends: list[float] = []

        def step(self, step: int) -> None:
            self.ends.append(time.perf_counter())

    registry = Registry.from_plugins(load_plugins().infos)
    composition = resolve(
        registry,
        recipe="simcse",
        model=str(folder),
        data=[str(data)],
        dev=["none"],
        sets=[
            f"train.max_steps={steps + 1}",
            f"train.batch_size={BATCH}",
            f"train.lr={LR}",
            f"model.max_length={LENGTH}",
            f"train.precision={precision}",
            "train.eval_steps=0",
            "train.save_steps=0",
            "train.log_steps=1000",
        ],
    )
    clock = Clock()
    with tempfile.TemporaryDirectory() as out:
        train(composition, registry, out=Path(out) / "run", reporter=clock)
    return BATCH * steps / (clock.ends[-1] - clock.ends[0])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--texts", help="a text file instead of the starter's grammar")
    parser.add_argument("--mixed", action="store_true", help="rows of very different lengths")
    options = parser.parse_args()
    texts = read_texts(options.texts, 20_000)
    if options.mixed:
        texts = mix_lengths(texts, 20_000)
    with tempfile.TemporaryDirectory() as temporary:
        folder, data = Path(temporary) / "model", Path(temporary) / "texts.txt"
        make_model(folder, texts)
        data.write_text("\n".join(texts) + "\n", encoding="utf-8")
        variants = {
            "sentence-transformers fp32": lambda: peer_round(folder, texts, options.steps, False),
            "sentence-transformers bf16": lambda: peer_round(folder, texts, options.steps, True),
            "cse fp32": lambda: own_round(folder, data, options.steps, "fp32"),
            "cse bf16": lambda: own_round(folder, data, options.steps, "bf16"),
        }
        speeds: dict[str, list[float]] = {name: [] for name in variants}
        for turn in range(options.rounds + 1):
            for name, run in variants.items():
                speed = run()
                if turn:  # the first round warms the machine up
                    speeds[name].append(speed)
    peer = speeds["sentence-transformers fp32"]
    print(f"{'variant':30} {'sentences/s':>12} {'of the peer in fp32':>22}")
    for name, values in speeds.items():
        ratios = [own / theirs for own, theirs in zip(values, peer, strict=True)]
        spread = f"{statistics.median(ratios):.2f} [{min(ratios):.2f}-{max(ratios):.2f}]"
        print(f"{name:30} {statistics.median(values):12.1f} {spread:>22}")
    print(json.dumps({name: [round(v, 1) for v in values] for name, values in speeds.items()}))


if __name__ == "__main__":
    main()
