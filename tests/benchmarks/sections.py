"""The benchmarks: start-up, training, encoding, memory against the batch, HiCL.

Each is given a report and the files and sizes of ``Given``; parts.py has the one of parts.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.inputs import (
    FOR_VOCABULARY,
    Shape,
    content_lengths,
    full_rows,
    make_model,
    mix_lengths,
    read,
    registry,
    write,
)
from tests.benchmarks.report import PEER, Report, alternate, ratios, spread
from tests.benchmarks.work import Work, forked, in_process, mean_seconds, measured, tokenising

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Encode = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True)
class Given:
    """The files of a benchmark, the starter's texts by default, and whether its sizes are tiny."""

    texts: str | None = None
    articles: str | None = None
    quick: bool = False

    @property
    def repeats(self) -> int:
        return 2 if self.quick else 5

    def shape(self, layers: int, hidden: int) -> Shape:
        """Return an encoder of this shape, of a tiny one in a quick run."""
        return Shape(2, 64) if self.quick else Shape(layers, hidden)


def precisions() -> tuple[str, ...]:
    """Return the precisions to measure: those that the processor is fast in."""
    import torch

    from cse_engine.runtime.device import fast_bf16

    return ("fp32", "bf16") if fast_bf16(torch.device("cpu")) else ("fp32",)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


# -- start-up -------------------------------------------------------------------------------------


def startup(report: Report, given: Given) -> None:
    """Seconds of `cse --help`, `cse list-plugins` and `cse COMMAND --help`, and of the peer."""
    from cse_cli.plugins.installed import OWN_COMMANDS, Installed
    from cse_core.registry.manager import load_plugins

    cse, repeats = str(Path(sys.executable).with_name("cse")), 1 if given.quick else 10
    commands = {
        "cse --help": (cse, "--help"),
        "cse list-plugins": (cse, "list-plugins"),
        "import sentence_transformers": (sys.executable, "-c", "import sentence_transformers"),
        "python without anything": (sys.executable, "-c", "pass"),
    }
    own = [name for name in OWN_COMMANDS if " " not in name]
    for name in (*own, *sorted(command.name for command in Installed().commands.all)):
        commands[f"cse {name} --help"] = (cse, *name.split(), "--help")

    def seconds(words: Sequence[str]) -> float:
        began = time.perf_counter()
        subprocess.run(words, check=True, capture_output=True)
        return time.perf_counter() - began

    found = alternate({k: partial(seconds, words) for k, words in commands.items()}, repeats)
    plugins = len({info.distribution for info in load_plugins().infos})
    report.say(f"{repeats} starts of each in turn, {plugins} plugins installed.")
    report.add("help", found["cse --help"])
    report.add("list", found["cse list-plugins"])
    peer = found["import sentence_transformers"]
    report.add("import", ratios(found["cse list-plugins"], peer))
    rest = [name for name in commands if name not in ("cse --help", "cse list-plugins")]
    report.table("Start-up", ["", "s"], [[name, spread(found[name], ".3f")] for name in rest])


# -- training -------------------------------------------------------------------------------------

KINDS = {"sentences": "sentences as they are", "mixed": "rows of mixed lengths"}


def training(report: Report, given: Given) -> None:
    """Sentences per second of simcse beside sentence-transformers' trainer on the same work.

    cse tokenises before the first step, the peer in each: what cse's tokens take is measured and
    counted to its steps. What is gained depends on the padding, so there are two kinds of rows.
    """
    shape, batch, steps = given.shape(6, 384), 16 if given.quick else 64, 1 if given.quick else 6
    report.say(
        f"A random BERT of {shape}, batches of {batch}, at most 32 tokens; {given.repeats} repeats "
        f"of {steps} steps on {'a file' if given.texts else 'the starter'}."
    )
    texts, needed = read(given.texts, FOR_VOCABULARY), batch * (steps + 1)
    with folder() as place:
        model = make_model(place / "model", texts, shape)
        mixed = mix_lengths(texts, needed, partial(content_lengths, model))
        for kind, rows in (("sentences", texts[:needed]), ("mixed", mixed)):
            path = write(place / f"{kind}.txt", rows)
            base = Work(PEER, model, path, length=32, batch=batch, steps=steps)
            seconds = alternate(
                {
                    f"{who} {precision}": mean_seconds(replace(base, who=who, precision=precision))
                    for precision in precisions()
                    for who in (PEER, "simcse")
                },
                given.repeats,
            )
            tokens, padding = tokenising(base)
            report.say(
                f"Of a padded batch of {KINDS[kind]}, {padding:.0%} is padding; cse's tokens, "
                f"{1000 * tokens:.2f} ms a batch, are counted to its steps."
            )
            for name, found in seconds.items():
                seconds[name] = [each + tokens * name.startswith("simcse") for each in found]
            _compare_speeds(report, kind, seconds, batch, f"{padding:.0%} padding")


def _compare_speeds(
    report: Report, kind: str, seconds: dict[str, list[float]], batch: int, note: str
) -> None:
    plain, key = seconds[f"{PEER} fp32"], "mixed-" if kind == "mixed" else ""
    report.add(f"{key}fp32", ratios(plain, seconds["simcse fp32"]), note)
    if own := seconds.get("simcse bf16"):
        report.add(f"{key}bf16", ratios(plain, own), note)
        report.add(f"{key}bf16-bf16", ratios(seconds[f"{PEER} bf16"], own), note)
    lines = [
        [name.replace("simcse", "cse"), spread([batch / each for each in found], ".1f")]
        for name, found in seconds.items()
    ]
    report.table(KINDS[kind].capitalize(), ["", "sentences/s"], lines)


# -- encoding -------------------------------------------------------------------------------------

ALLOWED = {"fp32": 1e-4, "bf16": 0.05}
"""Largest difference of two vectors, as a share of the longest one's length."""


def encoding(report: Report, given: Given) -> None:
    """Sentences per second of ``cse encode`` beside sentence-transformers' ``encode``.

    The same model folder, the same sentences in the same, unsorted order, the same precision, each
    in its default batches; each repeat takes its own share of the sentences. The vectors are
    compared, row by row: a lost order or other work ends the benchmark.
    """
    from sentence_transformers import SentenceTransformer, models

    from cse_cli.models.encoding import TextEncoder
    from cse_cli.models.loading import Loading
    from cse_engine.step.sentence_encoder import tokens_at_once

    shape, count = given.shape(6, 384), 400 if given.quick else 100_000
    texts = read(given.texts, max(count, FOR_VOCABULARY))
    with folder() as place:
        word = models.Transformer(
            make_model(place / "encoder", texts[:FOR_VOCABULARY], shape), max_seq_length=128
        )
        pooling = models.Pooling(shape.hidden, pooling_mode="mean")
        SentenceTransformer(modules=[word, pooling], device="cpu").save(str(place / "model"))
        texts = texts[:count]
        size = max(len(texts) // given.repeats, 1)
        shares = [texts[i * size : (i + 1) * size] for i in range(given.repeats)]
        report.say(
            f"A random BERT of {shape}, mean pooling, at most 128 tokens; {len(texts):,} sentences "
            f"of {'a file' if given.texts else 'the starter'}, {size:,} a repeat."
        )
        for precision in precisions():
            loading = Loading(device="cpu", precision=precision)
            loaded = loading.load(str(place / "model"), registry())
            with loaded.precision.autocast():
                at_once = tokens_at_once(loaded.device)
            peer = SentenceTransformer(str(place / "model"), device="cpu")
            if precision == "bf16":
                peer.bfloat16()
            speeds, most = _time_encoders(
                {
                    "own": partial(_encode, TextEncoder(loaded, at_once)),
                    "peer": partial(peer.encode, show_progress_bar=False, convert_to_numpy=True),
                },
                shares,
                ALLOWED[precision],
            )
            report.add(precision, ratios(speeds["own"], speeds["peer"]))
            default = signature(SentenceTransformer.encode).parameters["batch_size"].default
            lines = [
                ["cse", f"{at_once} tokens", spread(speeds["own"], ".0f")],
                [PEER, f"{default} texts", spread(speeds["peer"], ".0f")],
            ]
            report.table(f"Encoding, {precision}", ["", "at once", "sentences/s"], lines)
            report.say(
                f"Largest difference of two vectors in {precision}: {most:.1e} of the longest."
            )
    if "encoding.bf16" in report.values:
        report.say(f"In bf16 {PEER} holds its weights in bf16; cse keeps them and casts.")


def _encode(encoder: Any, texts: Sequence[str]) -> Vectors:
    import numpy as np

    return np.concatenate([vectors for _, vectors in encoder.blocks(texts)])


def _time_encoders(
    works: dict[str, Encode], shares: list[list[str]], allowed: float
) -> tuple[dict[str, list[float]], float]:
    """Return sentences per second of each share, and the largest difference of two vectors.

    All warm up on the first share's beginning. The difference is a share of the longest vector;
    one that is too large ends the benchmark.
    """
    import numpy as np

    first: dict[int, Vectors] = {}
    differences = [0.0]

    def one(encode: Encode) -> Callable[[], float]:
        order = iter(enumerate([shares[0][:64], *shares]))

        def speed() -> float:
            place, texts = next(order)
            began = time.perf_counter()
            vectors = encode(texts)
            taken = time.perf_counter() - began
            other = first.setdefault(place, vectors)
            longest = np.linalg.norm(other, axis=1).max()
            difference = float(np.linalg.norm(other - vectors, axis=1).max() / longest)
            if not difference <= allowed:
                raise SystemExit(f"the vectors of cse and {PEER} differ by {difference:.2e}")
            differences.append(difference)
            return len(texts) / taken

        return speed

    found = alternate({name: one(work) for name, work in works.items()}, len(shares))
    return found, max(differences)


# -- memory against the batch ---------------------------------------------------------------------


def memory(report: Report, given: Given) -> None:
    """Peak resident memory of simcse's steps against the batch, at once and in chunks.

    Each measurement is a process of its own, of two steps: the moments of AdamW are made at the end
    of the first. When all is loaded, the peak so far is forgotten.
    """
    shape, chunk = given.shape(4, 256), 8 if given.quick else 64
    batches, whole = ((8, 64), (64,)) if given.quick else ((64, 1024, 3200), (64, 256))
    texts = read(given.texts, max(2 * batches[-1], FOR_VOCABULARY))
    report.say(
        f"A random BERT of {shape}, simcse in fp32, at most 32 tokens; {given.repeats} processes "
        "of 2 steps each. Compared is the peak of the whole process during the steps."
    )
    with folder() as place:
        base = Work(
            "simcse",
            make_model(place / "model", texts[:FOR_VOCABULARY], shape),
            write(place / "texts.txt", texts[: 2 * batches[-1]]),
            length=32,
            batch=batches[0],
            steps=1,
        )
        works = [replace(base, batch=each, chunk=chunk) for each in batches]
        works += [replace(base, batch=each) for each in whole]
        names = [f"{work.batch} {work.chunk}" for work in works]
        tasks = {name: partial(in_process, work) for name, work in zip(names, works, strict=True)}
        found = alternate(tasks, given.repeats, warm=0)
    lines = []
    for name, work in zip(names, works, strict=True):
        columns = _memory_columns(found[name])
        lines.append([f"{work.batch:,}", str(work.chunk or "at once"), *columns])
    first, last = (_of(found[names[place]], "most") for place in (0, len(batches) - 1))
    report.add("chunked", ratios(last, first), f"{batches[-1]:,} against {batches[0]}")
    head = ["batch", "chunk", "MB before the steps", "peak MB of the steps", "added MB"]
    report.table("Memory of a process", head, lines)


def large(report: Report, given: Given) -> None:
    """Peak memory and seconds of a step of simcse in large batches, in chunks.

    The loss in tiles, the loss at once, as it was before, and sentence-transformers' loss with
    gradient caching; each measurement is a process of its own, of two steps.
    """
    import sentence_transformers  # noqa: F401  for all of them
    import torch

    torch.set_num_threads(1)  # neither threads nor what has some survive a fork
    shape, chunk = given.shape(1, 64), 8 if given.quick else 256
    batches = (16, 32) if given.quick else (1024, 2048, 4096, 8192, 16384)
    texts = forked(read, given.texts, max(2 * batches[-1], FOR_VOCABULARY))
    report.say(
        f"A random BERT of {shape}, simcse in fp32, at most 8 tokens, chunks of {chunk}, one "
        "thread; a process of 2 steps each. Memory is the peak of the steps above the loaded "
        "model; the seconds are those of the second step."
    )
    lines = []
    with folder() as place:
        base = Work(
            "simcse",
            forked(make_model, place / "model", texts[:FOR_VOCABULARY], shape),
            write(place / "texts.txt", texts[: 2 * batches[-1]]),
            length=8,
            batch=0,
            steps=1,
            chunk=chunk,
        )
        for batch in batches:
            own = replace(base, batch=batch)
            works = {
                "tiles": own,
                "at once": replace(own, tiles=False),
                PEER: replace(own, who=PEER),
            }
            tasks = {name: partial(forked, measured, work) for name, work in works.items()}
            for name, found in alternate(tasks, repeats=1, warm=0).items():
                added = [each["most"] - each["before"] for each in found]
                seconds = spread(_of(found, "seconds"), ".2f")
                lines.append([f"{batch:,}", name, spread(added, ".0f"), seconds])
                print(" | ".join(lines[-1]), flush=True)
    head = ["batch", "loss", "MB of the steps", "s a step"]
    report.table("Loss in tiles, at once, and that of the peer with gradient caching", head, lines)


def _of(found: Sequence[dict[str, float]], what: str) -> list[float]:
    return [each[what] for each in found]


def _memory_columns(found: Sequence[dict[str, float]]) -> list[str]:
    """Return memory before, at the peak, and what was added, in words."""
    added = [each["most"] - each["before"] for each in found]
    return [spread(each, ".0f") for each in (_of(found, "before"), _of(found, "most"), added)]


# -- HiCL at 512 tokens ---------------------------------------------------------------------------

SEGMENT, LENGTH = 32, 512


def hicl(report: Report, given: Given) -> None:
    """Seconds and memory of a step of hicl beside simcse and sentence-transformers, on long texts.

    Beside the ratio of seconds stands that of operations, counted from the lengths, and the share
    of padding of padded batches. Memory is that of processes of their own.
    """
    shape, steps = given.shape(4, 512), 1
    batch, of_sentences = (2, 8) if given.quick else (16, 128)
    articles = read(given.articles, batch * (steps + 1), "document")
    sentences = read(given.texts, of_sentences * (steps + 1))
    report.say(
        f"A random BERT of {shape}, fp32, segments of {SEGMENT} tokens; {given.repeats} repeats of "
        f"{steps} steps; {batch} articles or {of_sentences} sentences a batch, articles of "
        f"{'a file' if given.articles else 'the starter, which are short'}."
    )
    with folder() as place:
        work = Work(
            "hicl",
            make_model(place / "model", [*articles, *sentences], shape),
            write(place / "articles.txt", articles),
            length=LENGTH,
            batch=batch,
            steps=steps,
        )
        rows = full_rows(articles, batch * (steps + 1))
        full = replace(work, texts=write(place / "full.txt", rows))
        path = write(place / "sentences.txt", sentences)
        short = replace(work, texts=path, batch=of_sentences)
        for what, each, title in (
            ("articles", work, "Articles"),
            ("full", full, "Full rows of 512"),
        ):
            found, operations = _step_seconds(report, each, ["simcse"], given, shape, title)
            saved = operations["simcse"] / operations["hicl"]
            gained = ratios(found["simcse"], found["hicl"])
            report.add(what, [gain / saved for gain in gained], f"{saved:.3f} times")
        found, _ = _step_seconds(report, short, ["simcse", PEER], given, shape, "Sentences")
        report.add("sentences", ratios(found[PEER], found["hicl"]))
        peaks = _step_memory(report, short, ("hicl", "simcse", PEER), given, "sentences")
        report.add("memory", ratios(peaks["hicl"], peaks[PEER]))
        peaks = _step_memory(report, full, ("hicl", "simcse"), given, "full rows")
        report.add("memory-full", ratios(peaks["hicl"], peaks["simcse"]))


def _step_seconds(
    report: Report, work: Work, others: Sequence[str], given: Given, shape: Shape, title: str
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return the seconds of a step of hicl and others in each repeat, and their operations."""
    texts = Path(work.texts).read_text(encoding="utf-8").splitlines()
    lengths = content_lengths(work.model, texts)[work.batch :]  # the first step is not measured
    works = [work, *(replace(work, who=who) for who in others)]
    seconds = alternate({each.who: mean_seconds(each) for each in works}, given.repeats)
    rows = {who: rows_of(who, lengths, work) for who in seconds}
    operations = {who: shape.operations(each) for who, each in rows.items()}
    lines = []
    for who, found in seconds.items():
        padding = 1 - sum(rows_of("simcse", lengths, work)) / sum(rows[who]) if who == PEER else 0
        relative = f"{operations[who] / operations['hicl']:.3f}"
        own = spread(ratios(found, seconds["hicl"]))
        lines.append([who, spread(found, ".3f"), own, relative, f"{padding:.1%}"])
    head = ["", "s a step", "of hicl", "operations of hicl's", "padding"]
    printed = f"{len(lengths)} texts of {spread(lengths, '.0f')} tokens"
    report.table(f"{title}: {printed}, batches of {work.batch}", head, lines)
    return seconds, operations


def _step_memory(
    report: Report, work: Work, who: Sequence[str], given: Given, rows: str
) -> dict[str, list[float]]:
    """Return the peak memory in MB of the steps of each, in processes of their own."""
    tasks = {name: partial(in_process, replace(work, who=name, steps=2)) for name in who}
    found = alternate(tasks, given.repeats, warm=0)
    lines = [[name, *_memory_columns(each)[1:]] for name, each in found.items()]
    head = ["", "peak MB", "MB above the loaded model"]
    report.table(f"Memory of the steps, {rows}", head, lines)
    return {name: _of(each, "most") for name, each in found.items()}


def rows_of(who: str, lengths: Sequence[int], work: Work) -> list[int]:
    """Return the tokens of each row that an encoder sees of texts with this content.

    ``hicl`` cuts them, ``simcse`` does not, any other pads to the longest of a batch.
    """
    rows: list[int] = []
    for start in range(0, len(lengths), work.batch):
        batch = [min(length, work.length - 2) for length in lengths[start : start + work.batch]]
        if who == "hicl":
            for length in batch:
                cuts = range(0, max(length, 1), SEGMENT)
                rows += [min(SEGMENT, length - cut) + 2 for cut in cuts]
        elif who == "simcse":
            rows += [length + 2 for length in batch]
        else:
            rows += [max(batch) + 2] * len(batch)
    return rows
