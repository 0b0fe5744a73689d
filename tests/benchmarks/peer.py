"""sentence-transformers on the same work: its trainer, and its encoding."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.inputs import silence
from tests.benchmarks.work import LR, SEED, TEMPERATURE, Watch, Work

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def train(work: Work) -> Watch:
    """Run its trainer with the loss of SimCSE: the first token, a dense layer, in-batch negatives.

    It is given the texts in their order, as cse is. Batches are padded, tokens made in each step.
    With chunks its loss is the one with gradient caching.
    """
    import torch
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        losses,
        models,
    )
    from torch.utils.data import BatchSampler, SequentialSampler
    from transformers import TrainerCallback

    watch = Watch(work.device)

    class Watching(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            watch.begin()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            watch.step()

    class InOrder(SentenceTransformerTrainer):
        def get_batch_sampler(self, dataset: Dataset, **_: Any) -> Any:
            return BatchSampler(SequentialSampler(dataset), batch_size=work.batch, drop_last=False)

    how = {"model_kwargs": {"attn_implementation": "flash_attention_2"}} if work.unpad else {}
    word = models.Transformer(work.model, max_seq_length=work.length, **how)
    size = _hidden(work.model)
    pooling = models.Pooling(size, pooling_mode="cls")
    head = models.Dense(size, size, activation_function=torch.nn.Tanh())
    model = SentenceTransformer(modules=[word, pooling, head], device=work.device)
    scale = 1 / TEMPERATURE
    loss: Any = losses.MultipleNegativesRankingLoss(model, scale=scale)
    if work.chunk is not None:
        loss = losses.CachedMultipleNegativesRankingLoss(
            model, scale=scale, mini_batch_size=work.chunk
        )
    texts = Path(work.texts).read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as out:
        trainer = InOrder(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=out,
                max_steps=work.steps + 1,
                per_device_train_batch_size=work.batch,
                learning_rate=LR,
                bf16=work.precision == "bf16",
                use_cpu=work.device == "cpu",
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                seed=SEED,
            ),
            train_dataset=Dataset.from_dict({"anchor": texts, "positive": texts}),
            loss=loss,
            callbacks=[Watching()],
        )
        trainer.train()
    return watch


def save_model(encoder: str, folder: Path, length: int) -> str:
    """Save an encoder as a sentence-transformers model with mean pooling, which cse loads too."""
    from sentence_transformers import SentenceTransformer, models

    word = models.Transformer(encoder, max_seq_length=length)
    pooling = models.Pooling(_hidden(encoder), pooling_mode="mean")
    SentenceTransformer(modules=[word, pooling], device="cpu").save(str(folder))
    return str(folder)


class Encoder:
    """Its encoding on the processor, in its default batches.

    Args:
        folder: The model.
        precision: ``fp32``, or ``bf16`` for weights in bf16.

    Attributes:
        batch: Texts that it encodes at once.
    """

    def __init__(self, folder: str, precision: str) -> None:
        from sentence_transformers import SentenceTransformer

        silence()
        self.model = SentenceTransformer(folder, device="cpu")
        if precision == "bf16":
            self.model.bfloat16()
        self.batch = signature(SentenceTransformer.encode).parameters["batch_size"].default

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return ``[N, D]`` vectors of texts; sorted by length on the way."""
        vectors: NDArray[np.float32] = self.model.encode(
            list(texts), show_progress_bar=False, convert_to_numpy=True
        )
        return vectors


def _hidden(model: str) -> int:
    from transformers import AutoConfig

    silence()
    return int(AutoConfig.from_pretrained(model).hidden_size)
