"""A training run that is measured, by cse or by sentence-transformers: its seconds and memory.

python -m tests.benchmarks.work JSON   one run in a process of its own, its memory as JSON
"""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.inputs import registry, silence
from tests.benchmarks.report import PEER, ROOT

if TYPE_CHECKING:
    from cse_engine.compose.composition import Composition

TEMPERATURE, LR, SEED = 0.05, 3e-5, 1


@dataclass(frozen=True)
class Work:
    """One training run that is measured: SimCSE, or a recipe over it, on the texts in their order.

    Attributes:
        who: Name of a recipe of cse, or ``sentence-transformers``.
        model: Folder of the encoder.
        texts: File with a text a line; none comes twice, steps times batch of them at least.
        length: Tokens of a text at most, two special tokens counted.
        steps: Measured steps, after one that is not.
        chunk: Sentences encoded at once, by gradient caching; None encodes the batch at once.
        device: ``cpu``, or a GPU as torch names it.
        pool: The token whose state is the sentence's vector, as cse names it.
        tiles: Whether cse computes the loss of a large batch in tiles, as it does.
    """

    who: str
    model: str
    texts: str
    length: int
    batch: int
    steps: int
    precision: str = "fp32"
    chunk: int | None = None
    device: str = "cpu"
    pool: str = "cls"
    tiles: bool = True


@dataclass
class Watch:
    """What a run is watched for: when each step ended, and the memory of the steps.

    On a GPU a step has ended when the GPU gets there; nothing waits for it meanwhile.

    Attributes:
        device: Where it runs.
        ends: When each step ended; on a GPU torch's events.
        before: Memory in MB before the first step, all loaded: of the process, or on a GPU of
            torch's tensors there.
        most: Peak of that memory from then to the end of the last step; of the whole process where
            the system cannot forget a peak.
    """

    device: str = "cpu"
    ends: list[Any] = field(default_factory=list)
    before: float = 0.0
    most: float = 0.0

    def begin(self) -> None:
        """Note that everything is loaded."""
        if self.device == "cpu":
            self.before = resident()
            forget_peak()
        else:
            import torch

            gc.collect()  # what an earlier run left in cycles would count here too
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            self.before = torch.cuda.memory_allocated() / 2**20

    def step(self) -> None:
        """Note that a step ended."""
        if self.device == "cpu":
            self.ends.append(time.perf_counter())
            self.most = peak()
        else:
            import torch

            self.ends.append(torch.cuda.Event(enable_timing=True))
            self.ends[-1].record()
            self.most = torch.cuda.max_memory_allocated() / 2**20

    @property
    def seconds(self) -> list[float]:
        """Return the seconds of each step but the first."""
        if self.device == "cpu":
            return [after - before for before, after in pairwise(self.ends)]
        self.ends[-1].synchronize()
        return [one.elapsed_time(other) / 1000 for one, other in pairwise(self.ends)]


def run(work: Work) -> Watch:
    return _peer(work) if work.who == PEER else _own(work)


def composed(work: Work) -> Composition:
    from cse_engine.compose.compose import resolve

    sets = {
        "train.max_steps": work.steps + 1,
        "train.batch_size": work.batch,
        "train.chunk_size": "none" if work.chunk is None else work.chunk,
        "train.lr": LR,
        "model.max_length": work.length - 2 * (work.who == "hicl"),  # there content alone counts
        "train.precision": work.precision,
        "train.seed": SEED,
        "train.device": work.device,
        "train.eval_steps": 0,
        "train.save_steps": 0,
        "train.log_steps": 1000,
        "data.shuffle": "false",
    }
    return resolve(
        registry(),
        recipe=work.who,
        model=work.model,
        data=[work.texts],
        dev=["none"],
        kinds={} if work.pool == "cls" else {"pool": ["~cls", f"+{work.pool}"]},
        sets=[f"{path}={value}" for path, value in sets.items()],
    )


class _Made(Exception):
    """All steps are made; what a run writes at its end is not measured."""


def _own(work: Work) -> Watch:
    from cse_engine.step import tiles

    if not work.tiles:
        tiles.PAIRS = 2**60
    return watched(composed(work), work.steps, work.device)


def watched(run: Composition, steps: int, device: str = "cpu") -> Watch:
    """Train as a recipe says for so many measured steps, after one that is not."""
    from cse_core.reporter import Reporter
    from cse_defaults.texts import read_data
    from cse_engine.run.prepare import prepare
    from cse_engine.run.run import train

    watch = Watch(device)

    class Watching(Reporter):
        def begin(self, round_number: int, steps: int, done: int) -> None:
            watch.begin()

        def step(self, step: int) -> None:
            watch.step()
            if step > steps:
                raise _Made

    with tempfile.TemporaryDirectory() as out, contextlib.suppress(_Made):
        made = prepare(run, registry(), reporter=Watching(), read_texts=read_data)
        train(made, Path(out) / "run")
    return watch


def _peer(work: Work) -> Watch:
    """Run sentence-transformers' trainer with SimCSE's loss: one token, dense layer, in-batch.

    It is given the texts in their order, as cse is. Batches are padded, tokens made in each step.
    With chunks its loss is the one with gradient caching.
    """
    import torch
    from sentence_transformers import SentenceTransformer, losses, models
    from transformers import AutoConfig

    silence()
    size = int(AutoConfig.from_pretrained(work.model).hidden_size)
    word = models.Transformer(work.model, max_seq_length=work.length)
    head = models.Dense(size, size, activation_function=torch.nn.Tanh())
    modules = [word, models.Pooling(size, pooling_mode=work.pool.replace("-", "")), head]
    model = SentenceTransformer(modules=modules, device=work.device)
    loss: Any = losses.MultipleNegativesRankingLoss(model, scale=1 / TEMPERATURE)
    if work.chunk is not None:
        loss = losses.CachedMultipleNegativesRankingLoss(
            model, scale=1 / TEMPERATURE, mini_batch_size=work.chunk
        )
    texts = Path(work.texts).read_text(encoding="utf-8").splitlines()
    columns = {"anchor": texts, "positive": texts}
    return watched_peer(
        model, loss, columns, work.batch, work.steps, work.device, bf16=work.precision == "bf16"
    )


def watched_peer(
    model: Any,
    loss: Any,
    columns: Mapping[str, list[Any]],
    batch: int,
    steps: int,
    device: str = "cpu",
    bf16: bool = False,
) -> Watch:
    """Train as :func:`watched`, by sentence-transformers' trainer, on rows in their order."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from torch.utils.data import BatchSampler, SequentialSampler
    from transformers import TrainerCallback

    watch = Watch(device)

    class Watching(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            watch.begin()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            watch.step()

    class InOrder(SentenceTransformerTrainer):
        def get_batch_sampler(self, dataset: Dataset, **_: Any) -> Any:
            return BatchSampler(SequentialSampler(dataset), batch_size=batch, drop_last=False)

    with tempfile.TemporaryDirectory() as out:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=out,
            max_steps=steps + 1,
            per_device_train_batch_size=batch,
            learning_rate=LR,
            bf16=bf16,
            use_cpu=device == "cpu",
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            seed=SEED,
        )
        trainer = InOrder(
            model=model,
            args=arguments,
            train_dataset=Dataset.from_dict(columns),
            loss=loss,
            callbacks=[Watching()],
        )
        trainer.train()
    return watch


def tokenising(work: Work) -> tuple[float, float]:
    """Return the seconds that cse takes to tokenise a batch, and the padding of padded batches.

    Both are of the texts' first 20 batches; padding is a share of the tokens, in [0, 1).
    """
    from cse_defaults.transformers.pretrained import load_tokenizer
    from cse_defaults.transformers.tokenizer import TextTokenizer
    from cse_engine.step.token_table import token_table

    tokenizer = TextTokenizer(load_tokenizer(work.model))
    texts = Path(work.texts).read_text(encoding="utf-8").splitlines()
    batches = [texts[i : i + work.batch] for i in range(0, len(texts), work.batch)][:20]
    taken, tokens, padded = [], 0, 0
    for batch in batches:
        began = time.perf_counter()
        table = token_table(tokenizer, batch, work.length)
        taken.append(time.perf_counter() - began)
        lengths = (table.offsets.diff() + tokenizer.special_count).clamp(max=work.length)
        tokens += int(lengths.sum())
        padded += len(batch) * int(lengths.max())
    return statistics.median(taken), 1 - tokens / padded


# -- memory ---------------------------------------------------------------------------------------


def resident() -> float:
    return _status("VmRSS")


def peak() -> float:
    return _status("VmHWM")


def forget_peak() -> bool:
    """Reset the peak to what is resident now; return whether the system can do so."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def child(*words: str, stdout: int | None = subprocess.PIPE) -> str:
    """Run ``python -m WORDS`` in a process of its own and return what it printed."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, stdout=stdout, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(words)}")
    return done.stdout or ""


def in_process(work: Work) -> dict[str, float]:
    """Return ``before`` and ``most`` (MB) and ``seconds`` of a step, in a process of its own."""
    printed = child("tests.benchmarks.work", json.dumps(asdict(work)))
    found: dict[str, float] = json.loads(printed.splitlines()[-1])
    return found


def forked(function: Callable[..., Any], *given: Any) -> Any:
    """Return what a function returns in a fork of this process, which imports nothing again."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(function, given)


def measured(work: Work) -> dict[str, float]:
    watch = run(work)
    seconds = statistics.median(watch.seconds)
    return {"before": watch.before, "most": watch.most, "seconds": seconds}


def mean_seconds(work: Work) -> Callable[[], float]:
    return lambda: statistics.mean(run(work).seconds)


def main() -> None:
    print(json.dumps(measured(Work(**json.loads(sys.argv[1])))))


if __name__ == "__main__":
    main()
