"""Training steps that are measured: of cse's trainer here, of sentence-transformers' in peer.py.

python -m tests.benchmarks.steps --child JSON   one run in a process of its own, its memory as JSON
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.resident import in_own_process
from tests.benchmarks.work import LR, SEED, Watch, Work

if TYPE_CHECKING:
    from cse_core.recipes.composition import Composition

PEER = "sentence-transformers"


def run(work: Work) -> Watch:
    """Do a run, whoever does it."""
    if work.who == PEER:
        from tests.benchmarks.peer import train

        return train(work)
    return own(work)


def composed(work: Work) -> Composition:
    """Return what ``cse train`` makes of a run."""
    from cse_core.recipes.compose import resolve
    from tests.benchmarks.inputs import registry

    length, sets = work.length, []
    if work.who == "hicl":
        length -= 2  # there content alone is counted
    if work.chunk is not None:
        sets.append(f"train.chunk_size={work.chunk}")
    if work.again:
        sets.append("model.gradient_checkpointing=true")
    return resolve(
        registry(),
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
            f"train.seed={SEED}",
            f"train.device={work.device}",
            "train.eval_steps=0",
            "train.save_steps=0",
            "train.log_steps=1000",
            "data.shuffle=false",
            *sets,
        ],
    )


class _Made(Exception):
    """All steps are made; what a run writes at its end is not measured."""


def own(work: Work, done: Callable[[int], object] | None = None) -> Watch:
    """Make the steps of ``cse train``, which then writes nothing; ``done`` is called after each."""
    from cse_core.runtime.reporter import Reporter
    from cse_core.training.run import train
    from tests.benchmarks.inputs import registry

    watch = Watch(work.device)

    class Watching(Reporter):
        def begin(self, round_number: int, steps: int, done: int) -> None:
            watch.begin()

        def step(self, step: int) -> None:
            watch.step()
            if done is not None:
                done(step)
            if step > work.steps:
                raise _Made

    with tempfile.TemporaryDirectory() as out, contextlib.suppress(_Made):
        train(composed(work), registry(), out=Path(out) / "run", reporter=Watching())
    return watch


def tokenising(work: Work) -> tuple[float, float]:
    """Return the seconds that cse takes to tokenise a batch, and the padding of padded batches.

    Both are of the texts' first 20 batches; padding is a share of the tokens, in [0, 1).
    """
    from cse_core.encoders.pretrained import load_tokenizer
    from cse_core.tokenization.tokenizer import TextTokenizer

    tokenizer = TextTokenizer(load_tokenizer(work.model))
    texts = Path(work.texts).read_text(encoding="utf-8").splitlines()
    batches = [texts[i : i + work.batch] for i in range(0, len(texts), work.batch)][:20]
    taken, tokens, padded = [], 0, 0
    for batch in batches:
        began = time.perf_counter()
        table = tokenizer.table(batch, work.length)
        taken.append(time.perf_counter() - began)
        lengths = (table.offsets.diff() + tokenizer.special_count).clamp(max=work.length)
        tokens += int(lengths.sum())
        padded += len(batch) * int(lengths.max())
    return statistics.median(taken), 1 - tokens / padded


def in_process(work: Work) -> dict[str, Any]:
    """Return ``before`` and ``most`` (MB) and ``seconds`` of a step, in a process of its own."""
    return in_own_process("tests.benchmarks.steps", asdict(work))


def main() -> None:
    """Do one run and print what was found as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--child", required=True, metavar="JSON", help="a Work")
    watch = run(Work(**json.loads(parser.parse_args().child)))
    seconds = statistics.median(watch.seconds)
    print(json.dumps({"before": watch.before, "most": watch.most, "seconds": seconds}))


if __name__ == "__main__":
    main()
