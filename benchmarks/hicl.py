"""Seconds and memory of a step of hicl beside simcse and sentence-transformers, on long texts.

Three measurements, all with random BERT weights and the same texts for everybody:

- `articles`: hicl and simcse on articles of up to 512 tokens, alternating in one process; beside
  the ratio of seconds the ratio of operations, counted from the lengths.
- `sentences`: hicl, simcse and sentence-transformers' trainer, which pads, on sentences with
  max_length 512; beside the ratios the share of padding of the padded batches.
- `memory`: each of these by itself in a process of its own, peak resident memory; and hicl and
  simcse at texts of 128, 256 and 512 tokens, with a plot.

    python benchmarks/hicl.py [articles] [sentences] [memory] [--rounds 5] [--steps 4]
        [--articles FILE] [--sentences FILE] [--plot docs/methods/hicl.svg]

Without files the starter's texts stand in: its documents are short, so the first says little then.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

SEGMENT, TEMPERATURE, LR = 32, 0.05, 3e-5
LENGTHS = (128, 256, 512)
WHAT = ("articles", "sentences", "memory")


@dataclass(frozen=True)
class Work:
    """One training run that is measured.

    Attributes:
        who: `hicl`, `simcse` or `peer` (sentence-transformers).
        model: Folder of the encoder.
        texts: File with a text a line, in the order of training.
        length: Tokens of a text at most, two special tokens counted.
        steps: Measured steps, after one that is not.
        wrap: What hicl wraps in special tokens: `segment` or `sentence` (`pool.segments.wrap`).
    """

    who: str
    model: str
    texts: str
    length: int
    batch: int
    steps: int
    precision: str
    wrap: str = "segment"


def own_steps(work: Work) -> list[float]:
    """Return the seconds of each measured step of `cse train`."""
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
    length, sets = work.length, []
    if work.who == "hicl":
        sets = [f"pool.segments.wrap={work.wrap}"]
        length -= 2 if work.wrap == "segment" else 0  # there content alone is counted
    composition = resolve(
        registry,
        recipe=work.who,
        model=work.model,
        data=[work.texts],
        dev=["none"],
        sets=[
            f"train.max_steps={work.steps + 1}",
            f"train.batch_size={work.batch}",
            f"train.lr={LR}",
            f"model.max_length={length}",
            f"train.precision={work.precision}",
            "train.eval_steps=0",
            "train.save_steps=0",
            "train.log_steps=1000",
            "data.shuffle=false",
            *sets,
        ],
    )
    clock = Clock()
    with tempfile.TemporaryDirectory() as out:
        train(composition, registry, out=Path(out) / "run", reporter=clock)
    return _differences(clock.ends)


def peer_steps(work: Work) -> list[float]:
    """Return the seconds of each measured step of sentence-transformers' trainer."""
    import torch
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        losses,
        models,
    )
    from torch.utils.data import SequentialSampler
    from transformers import TrainerCallback

    class Clock(TrainerCallback):
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, *_: object, **__: object) -> None:
            self.ends.append(time.perf_counter())

    class InOrder(SentenceTransformerTrainer):
        def get_batch_sampler(self, dataset: Dataset, **_: object) -> object:
            return torch.utils.data.BatchSampler(
                SequentialSampler(dataset), batch_size=work.batch, drop_last=False
            )

    word = models.Transformer(work.model, max_seq_length=work.length)
    size = word.get_word_embedding_dimension()
    pooling = models.Pooling(size, pooling_mode="cls")
    head = models.Dense(size, size, activation_function=torch.nn.Tanh())
    model = SentenceTransformer(modules=[word, pooling, head], device="cpu")
    texts = Path(work.texts).read_text(encoding="utf-8").splitlines()
    clock = Clock()
    with tempfile.TemporaryDirectory() as out:
        trainer = InOrder(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=out,
                max_steps=work.steps + 1,
                per_device_train_batch_size=work.batch,
                learning_rate=LR,
                bf16=work.precision == "bf16",
                use_cpu=True,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                seed=1,
            ),
            train_dataset=Dataset.from_dict({"anchor": texts, "positive": texts}),
            loss=losses.MultipleNegativesRankingLoss(model, scale=1 / TEMPERATURE),
            callbacks=[clock],
        )
        trainer.train()
    return _differences(clock.ends)


def _differences(ends: Sequence[float]) -> list[float]:
    return [after - before for before, after in zip(ends, ends[1:], strict=False)]


def measure(work: Work) -> list[float]:
    """Return the seconds of each measured step, whoever does it."""
    return peer_steps(work) if work.who == "peer" else own_steps(work)


def alternate(works: Sequence[Work], rounds: int) -> dict[str, list[float]]:
    """Return the median seconds of a step in each round, by who; the first round warms up."""
    seconds: dict[str, list[float]] = {work.who: [] for work in works}
    for turn in range(rounds + 1):
        for work in works:
            found = statistics.median(measure(work))
            if turn:
                seconds[work.who].append(found)
    return seconds


def memory(work: Work) -> dict[str, float]:
    """Return peak resident memory and seconds of a step, measured in a process of its own."""
    told = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(asdict(work))],
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        raise SystemExit(f"{work.who} at {work.length} tokens failed:\n{told.stderr[-2000:]}")
    found: dict[str, float] = json.loads(told.stdout.splitlines()[-1])
    return found


def child(text: str) -> None:
    """Measure one piece of work and print its peak memory in MB as JSON."""
    work = Work(**json.loads(text))
    seconds = statistics.median(measure(work))
    print(json.dumps({"mb": peak_memory(), "seconds": seconds}))


def peak_memory() -> float:
    """Return the peak resident memory of this process in MB.

    Linux counts what the process was before it became this program in ``ru_maxrss``, so there the
    peak is read from its status.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


# -- what is counted ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """Sizes of the encoder."""

    layers: int
    hidden: int
    inner: int

    def operations(self, rows: Sequence[int]) -> float:
        """Return the operations of rows of so many tokens: products of the layers, forward."""
        linear = 2 * (4 * self.hidden**2 + 2 * self.hidden * self.inner) * sum(rows)
        attention = 4 * self.hidden * sum(row**2 for row in rows)
        return self.layers * float(linear + attention)


def rows_of(who: str, lengths: Sequence[int], work: Work) -> list[int]:
    """Return the tokens of each row that an encoder sees of texts with this content."""
    rows: list[int] = []
    for start in range(0, len(lengths), work.batch):
        batch = [min(length, work.length - 2) for length in lengths[start : start + work.batch]]
        if who == "hicl":
            inside, around = (2, 0) if work.wrap == "sentence" else (0, 2)
            for length in batch:
                tokens = length + inside
                cuts = range(0, max(tokens, 1), SEGMENT)
                rows += [min(SEGMENT, tokens - cut) + around for cut in cuts]
        elif who == "simcse":
            rows += [length + 2 for length in batch]
        else:
            rows += [max(batch) + 2] * len(batch)
    return rows


def content_lengths(model: str, texts: Sequence[str]) -> list[int]:
    """Return the tokens of each text, without special tokens."""
    from transformers import AutoTokenizer

    encoded = AutoTokenizer.from_pretrained(model)(
        list(texts), add_special_tokens=False, verbose=False
    )
    return [len(ids) for ids in encoded["input_ids"]]


# -- texts and encoder --------------------------------------------------------------------------


def read(path: str | None, unit: str, count: int) -> list[str]:
    """Return distinct texts of a file, or the starter's, in a drawn order."""
    import random

    from cse_core.composer import resolve
    from cse_core.data import load_corpus
    from cse_core.manager import load_plugins
    from cse_core.registry import Registry

    registry = Registry.from_plugins(load_plugins().infos)
    sets = [f"data.unit={unit}"]
    options = resolve(registry, data=[path or "starter"], sets=sets).data
    datasets = {each.name: each.spec for each in registry.datasets()}
    corpus = load_corpus(options, datasets=datasets)
    texts = [" ".join(text.split()) for text in dict.fromkeys(corpus.column("text"))]
    random.Random(0).shuffle(texts)
    return texts[:count]


def make_model(folder: Path, texts: Sequence[str], shape: Shape) -> str:
    """Save a random BERT and a vocabulary made of the texts."""
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    pieces = BertWordPieceTokenizer(lowercase=True)
    pieces.train_from_iterator(texts, vocab_size=30522, min_frequency=1, show_progress=False)
    tokenizer = BertTokenizerFast(tokenizer_object=pieces._tokenizer, model_max_length=512)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30522,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.hidden // 64,
        intermediate_size=shape.inner,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def write(path: Path, texts: Sequence[str]) -> str:
    """Write texts, one a line."""
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return str(path)


# -- the three measurements ---------------------------------------------------------------------


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """Return median and range."""
    return f"{statistics.median(values):{form}} [{min(values):{form}}-{max(values):{form}}]"


def compare(work: Work, others: Sequence[str], rounds: int, shape: Shape) -> None:
    """Time hicl and others on the same batches, and print each beside what it has to do."""
    texts = Path(work.texts).read_text(encoding="utf-8").splitlines()
    lengths = content_lengths(work.model, texts)[work.batch :]  # the first step is not measured
    print(f"{len(lengths)} texts in batches of {work.batch}, content of {spread(lengths, '.0f')}")
    seconds = alternate([work, *(replace(work, who=who) for who in others)], rounds)
    rows = {who: rows_of(who, lengths, work) for who in seconds}
    print(f"{'':8} {'s a step':>22} {'of hicl':>20} {'operations of hicl':>20} {'padding':>8}")
    own = shape.operations(rows["hicl"])
    for who, found in seconds.items():
        ratios = [one / other for one, other in zip(found, seconds["hicl"], strict=True)]
        told = shape.operations(rows[who]) / own
        padding = 1 - sum(rows_of("simcse", lengths, work)) / sum(rows[who]) if who == "peer" else 0
        print(
            f"{who:8} {spread(found, '.3f'):>22} {spread(ratios):>20} {told:20.3f} {padding:8.1%}"
        )
    print(json.dumps({who: [round(value, 4) for value in found] for who, found in seconds.items()}))


def peaks(works: Sequence[Work], rounds: int) -> list[tuple[Work, float, float]]:
    """Print and return each piece of work with the medians of memory (MB) and seconds."""
    found = []
    print(f"{'':8} {'tokens':>7} {'peak MB':>24} {'s a step':>22}")
    for work in works:
        each = [memory(work) for _ in range(rounds)]
        mb, seconds = [e["mb"] for e in each], [e["seconds"] for e in each]
        print(f"{work.who:8} {work.length:7} {spread(mb, '.0f'):>24} {spread(seconds, '.3f'):>22}")
        found.append((work, statistics.median(mb), statistics.median(seconds)))
    return found


def plot(path: Path, found: Sequence[tuple[Work, float, float]]) -> None:
    """Draw memory and seconds against the length of texts."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "cse"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for axis, place, label in zip(axes, (1, 2), ("peak memory, MB", "seconds a step"), strict=True):
        for who, style in (("simcse", "o--"), ("hicl", "s-")):
            points = [(each[0].length, each[place]) for each in found if each[0].who == who]
            axis.plot(*zip(*points, strict=True), style, label=who)
        axis.set(xlabel="tokens of a text", ylabel=label, xticks=LENGTHS)
        axis.set_ylim(bottom=0)
        axis.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def full_rows(texts: Sequence[str], count: int, words: int = 700) -> list[str]:
    """Return texts of so many running words each, which are more than 512 tokens."""
    running = itertools.cycle(word for text in texts for word in text.split())
    return [" ".join(itertools.islice(running, words)) for _ in range(count)]


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", help=f"{', '.join(WHAT)}; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--articles", help="a file with documents")
    parser.add_argument("--sentences", help="a file with a sentence a line")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--batch", type=int, default=16, help="articles of a batch")
    parser.add_argument("--sentence-batch", type=int, default=128)
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--wrap", default="segment", choices=["segment", "sentence"])
    parser.add_argument("--plot", type=Path, help="where the plot goes: docs/methods/hicl.svg")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = [name for name in options.what if name not in WHAT]
    if unknown:
        parser.error(f"{unknown[0]}: measure {', '.join(WHAT)}")
    options.what = options.what or list(WHAT)
    return options


def main() -> None:
    """Measure and print."""
    options = arguments()
    if options.child:
        child(options.child)
        return
    shape = Shape(options.layers, options.hidden, 4 * options.hidden)
    steps = options.steps + 1
    articles = read(options.articles, "document", options.batch * steps)
    sentences = read(options.sentences, "sentence", options.sentence_batch * steps)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        work = Work(
            who="hicl",
            model=make_model(folder / "model", [*articles, *sentences], shape),
            texts=write(folder / "articles.txt", articles),
            length=512,
            batch=options.batch,
            steps=options.steps,
            precision=options.precision,
            wrap=options.wrap,
        )
        rows = full_rows(articles, options.batch * steps)
        full = replace(work, texts=write(folder / "full.txt", rows))
        short = replace(
            work,
            texts=write(folder / "sentences.txt", sentences),
            batch=options.sentence_batch,
        )
        if "articles" in options.what:
            print("articles, cut at 512 tokens")
            compare(work, ["simcse"], options.rounds, shape)
            print("full rows of 512 tokens")
            compare(full, ["simcse"], options.rounds, shape)
        if "sentences" in options.what:
            print("sentences, max_length 512; the peer pads to the longest of a batch")
            compare(short, ["simcse", "peer"], options.rounds, shape)
        if "memory" in options.what:
            print("memory of a process, sentences")
            peaks([replace(short, who=who) for who in ("hicl", "simcse", "peer")], options.rounds)
            print("memory of a process, full rows")
            pairs = itertools.product(LENGTHS, ("hicl", "simcse"))
            lengths = [replace(full, who=who, length=length) for length, who in pairs]
            found = peaks(lengths, options.rounds)
            if options.plot is not None:
                plot(options.plot, found)


if __name__ == "__main__":
    main()
