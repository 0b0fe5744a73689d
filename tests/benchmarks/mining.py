"""Seconds and memory of mining positives from documents (idc of cse-infocse).

The miner is asked for a round as a training asks it, shard by shard, with the encoder as it is. All
seconds that are not the encoder's are clustering: finding the documents, the graph, its components,
the pairs. Memory is that of a process of its own, for all documents and for a quarter of them. Of
a file of documents one more pass takes them all.

    python -m tests.benchmarks.mining [--documents 1000] [--shard 5000] [--repeats 5] \
        [--articles FILE] [--model starter]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks.inputs import documents, registry
from tests.benchmarks.measure import alternate, ratios, spread
from tests.benchmarks.report import Report, parser
from tests.benchmarks.resident import forget_peak, in_own_process, peak, resident

MODULE = "tests.benchmarks.mining"


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("--documents", type=int, default=1000)
    made.add_argument("--articles", metavar="FILE", help="documents instead of the starter's")
    made.add_argument("--shard", type=int, default=5000, help="sentences mined at once")
    made.add_argument("--model", default="starter")
    made.add_argument("--child", metavar="JSON", help=argparse.SUPPRESS)
    return made.parse_args(words)


def main() -> None:
    """Measure and print."""
    options = arguments()
    if options.child:
        print(json.dumps(mine(**json.loads(options.child))[-1]))
        return
    report = Report("mining")

    def task(count: int, rounds: int = 1) -> dict[str, Any]:
        articles = str(Path(options.articles).resolve()) if options.articles else None
        given = {"articles": articles, "shard": options.shard, "model": options.model}
        return {**given, "count": count, "rounds": rounds}

    found = mine(**task(options.documents, options.repeats + 1))[1:]
    one = found[0]
    report.say(
        f"{one['documents']:,} documents of {one['sentences']:,} sentences, "
        f"{'of a file' if options.articles else 'made of the starter'}; model {options.model}, "
        f"fp32, shards of {options.shard:,} sentences; {one['pairs']:,} pairs."
    )
    seconds = {name: _of(found, name) for name in ("encoding", "clustering")}
    shares = ratios(seconds["clustering"], seconds["encoding"])
    report.add("clustering", [100 * share for share in shares])
    seconds["both"] = [sum(each) for each in zip(*seconds.values(), strict=True)]
    lines = [
        [name, spread(values), spread([one["sentences"] / each for each in values], ",.0f")]
        for name, values in seconds.items()
    ]
    report.table("Mining", ["", "s", "sentences/s"], lines)
    counts = (options.documents, max(options.documents // 4, 1))
    tasks = {str(count): partial(in_own_process, MODULE, task(count)) for count in counts}
    of_size = alternate(tasks, options.repeats, warm=0)
    lines = []
    for count, each in of_size.items():
        added = [one["most"] - one["before"] for one in each]
        sentences = f"{int(statistics.median(_of(each, 'sentences'))):,}"
        columns = (_of(each, "before"), _of(each, "most"), added)
        lines.append([f"{int(count):,}", sentences, *(spread(one, ".0f") for one in columns)])
    head = ["documents", "sentences", "MB before", "peak MB", "added MB"]
    report.table("Memory of mining", head, lines)
    whole, part = of_size.values()
    report.add("memory", ratios(_of(whole, "most"), _of(part, "most")))
    if options.articles:
        one = in_own_process(MODULE, task(sys.maxsize))
        said = f"{one['documents']:,} documents of {one['sentences']:,} sentences, one pass"
        report.add("whole", [100 * one["clustering"] / one["encoding"]], said)
        line = [f"{one[n]:,.0f}" for n in ("pairs", "encoding", "clustering", "before", "most")]
        head = ["pairs", "s of encoding", "s of clustering", "MB before", "peak MB"]
        report.table(f"The whole file: {said}", head, [line])
    else:
        report.skip("whole", "needs a file of documents")
    report.finish(options.json)


def _of(found: Sequence[dict[str, float]], what: str) -> list[float]:
    return [each[what] for each in found]


def mine(
    articles: str | None, count: int, shard: int, model: str, rounds: int
) -> list[dict[str, Any]]:
    """Mine rounds; return what was mined, the seconds, and the memory of this process in MB."""
    import torch
    from cse_testkit import make_setup

    from cse_cli.models.saved_model import load
    from cse_core.data import Corpus
    from cse_core.parts import RoundContext
    from cse_core.runtime.loading import load_factory
    from cse_core.runtime.seeds import generator

    texts, names = documents(articles, count)
    corpus = Corpus.from_columns({"text": texts, "document": names}, name="documents")
    encoder = load(model, registry(), device="cpu", precision="fp32")
    spec = registry().find("positives", "idc").spec
    options = spec.options.model_validate({"shard": shard})
    encoding = 0.0

    def encode(texts: Sequence[str]) -> torch.Tensor:
        nonlocal encoding
        began = time.perf_counter()
        vectors = torch.from_numpy(encoder.encode(texts))
        encoding += time.perf_counter() - began
        return vectors

    def refuse(name: str) -> Any:
        raise RuntimeError(f"idc asked for the encoder {name}")

    context = RoundContext(
        round=1,
        corpus=corpus,
        encode=encode,
        scores=(),
        generator=lambda name, **_: generator(torch.device("cpu"), 0, name),
        progress=lambda *_: None,
        load_encoder=refuse,
    )
    found: list[dict[str, Any]] = []
    before = resident()
    forget_peak()
    for _ in range(rounds):
        miner = load_factory(spec.factory)(options, make_setup("idc"))
        encoding, began = 0.0, time.perf_counter()
        mined = miner.next_round(context)
        taken = time.perf_counter() - began
        about = {"documents": len(set(names)), "sentences": len(corpus), "before": before}
        about |= {"pairs": len(mined.pairs["text"]), "most": peak()}
        found.append({**about, "encoding": encoding, "clustering": taken - encoding})
    return found


if __name__ == "__main__":
    main()
