"""Seconds and memory of mining positives from documents (idc of cse-infocse).

The miner is asked for a round as a training asks it, shard by shard, with the encoder as it is. All
seconds that are not the encoder's are clustering: finding the documents, the graph, its components,
the pairs. Memory is that of a process of its own, for all documents and for a quarter of them. With
--whole, one more pass takes all documents that the file has.

    python -m tests.benchmarks.mining [--documents 1000] [--shard 5000] [--repeats 5] \
        [--articles FILE]
        [--model starter] [--whole]
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
from typing import TYPE_CHECKING, Any

from tests.benchmarks.inputs import documents, registry
from tests.benchmarks.measure import alternate, ratios, spread
from tests.benchmarks.report import Report, parser
from tests.benchmarks.resident import forget_peak, in_own_process, peak, resident

if TYPE_CHECKING:
    from torch import Tensor

    from cse_core.parts import PositiveMiner, RoundContext

QUARTER = 4


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("--documents", type=int, default=1000)
    made.add_argument("--articles", metavar="FILE", help="documents instead of the starter's")
    made.add_argument("--shard", type=int, default=5000, help="sentences mined at once")
    made.add_argument("--model", default="starter")
    made.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    made.add_argument("--whole", action="store_true", help="one pass over the whole file too")
    made.add_argument("--child", metavar="JSON", help=argparse.SUPPRESS)
    return made.parse_args(words)


def main() -> None:
    """Measure and print."""
    options = arguments()
    if options.child:
        print(json.dumps(remember(**json.loads(options.child))))
        return
    report = Report("mining")
    mining = Mining(**_task(options, options.documents))
    found = mining.repeated(options.repeats)
    encoding, clustering = ([each[place] for each in found] for place in (0, 1))
    sentences = len(mining.corpus)
    report.say(
        f"{mining.documents:,} documents of {sentences:,} sentences, "
        f"{'of a file' if options.articles else 'made of the starter'}; model {options.model}, "
        f"{options.precision}, shards of {options.shard:,} sentences; {mining.pairs:,} pairs."
    )
    report.add("clustering", [100 * each for each in ratios(clustering, encoding)])
    total = [sum(each) for each in found]
    lines = [
        ["encoding", spread(encoding), spread([sentences / each for each in encoding], ",.0f")],
        ["clustering", spread(clustering), spread([sentences / x for x in clustering], ",.0f")],
        ["both", spread(total), spread([sentences / each for each in total], ",.0f")],
    ]
    report.table("Mining", ["", "s", "sentences/s"], lines)
    del mining
    of_size = memory(report, options)
    whole, part = of_size.values()
    report.add("memory", ratios(_of(whole, "most"), _of(part, "most")))
    if options.whole and options.articles:
        all_of_it(report, options)
    else:
        report.skip("whole", "needs --whole and a file of documents")
    report.finish(options.json)


def memory(report: Report, options: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """Return what processes with all documents, and with a quarter of them, find of memory."""
    counts = (options.documents, max(options.documents // QUARTER, 1))
    tasks = {
        str(count): partial(in_own_process, "tests.benchmarks.mining", _task(options, count))
        for count in counts
    }
    found = alternate(tasks, options.repeats, warm=0)
    lines = []
    for count, each in found.items():
        added = [one["most"] - one["before"] for one in each]
        said = spread(_of(each, "before"), ".0f"), spread(_of(each, "most"), ".0f")
        of_pairs = f"{int(statistics.median(_of(each, 'sentences'))):,}"
        lines.append([f"{int(count):,}", of_pairs, *said, spread(added, ".0f")])
    head = ["documents", "sentences", "MB before", "peak MB", "added MB"]
    report.table("Memory of mining", head, lines)
    return found


def all_of_it(report: Report, options: argparse.Namespace) -> None:
    """Mine every document of the file once, in a process of its own."""
    found = in_own_process("tests.benchmarks.mining", _task(options, sys.maxsize))
    share = found["clustering"] / found["encoding"]
    said = f"{found['documents']:,.0f} documents of {found['sentences']:,.0f} sentences, one pass"
    report.add("whole", [100 * share], said)
    line = [f"{found[name]:,.0f}" for name in ("pairs", "encoding", "clustering", "before", "most")]
    head = ["pairs", "s of encoding", "s of clustering", "MB before", "peak MB"]
    report.table(f"The whole file: {said}", head, [line])


def _task(options: argparse.Namespace, count: int) -> dict[str, Any]:
    articles = str(Path(options.articles).resolve()) if options.articles else None
    return {
        "articles": articles,
        "count": count,
        "shard": options.shard,
        "model": options.model,
        "precision": options.precision,
    }


def _of(found: list[dict[str, float]], what: str) -> list[float]:
    return [each[what] for each in found]


class Mining:
    """Everything that a round of mining needs.

    Attributes:
        corpus: The sentences of the documents.
        documents: How many documents.
        pairs: Pairs of the last round.
    """

    def __init__(
        self, articles: str | None, count: int, shard: int, model: str, precision: str
    ) -> None:
        from cse_cli.models.saved_model import load
        from cse_core.data import Corpus

        texts, names = documents(articles, count)
        self.corpus = Corpus.from_columns({"text": texts, "document": names}, name="documents")
        self.documents = len(set(names))
        self.shard = shard
        self.model = load(model, registry(), device="cpu", precision=precision)
        self.pairs = 0
        self.encoding = 0.0

    def repeated(self, repeats: int) -> list[tuple[float, float]]:
        """Return seconds of encoding and of the rest in each repeat, after one more."""
        return alternate({"mining": self.once}, repeats)["mining"]

    def once(self) -> tuple[float, float]:
        """Mine a round, and return the seconds of encoding and of the rest."""
        miner = self._miner()
        self.encoding = 0.0
        began = time.perf_counter()
        found = miner.next_round(self._context())
        taken = time.perf_counter() - began
        if found is None or found.pairs is None:
            raise SystemExit("the miner asked for no round")
        self.pairs = len(found.pairs["text"])
        return self.encoding, taken - self.encoding

    def _miner(self) -> PositiveMiner:
        from cse_testkit import make_setup

        from cse_core.runtime.loading import load_factory

        spec = registry().find("positives", "idc").spec
        options = spec.options.model_validate({"shard": self.shard})
        made: PositiveMiner = load_factory(spec.factory)(options, make_setup("idc"))
        return made

    def _context(self) -> RoundContext:
        import torch

        from cse_core.parts import RoundContext
        from cse_core.runtime.seeds import generator

        def refuse(name: str) -> Any:
            raise RuntimeError(f"idc asked for the encoder {name}")

        return RoundContext(
            round=1,
            corpus=self.corpus,
            encode=self._encode,
            scores=(),
            generator=lambda name, **_: generator(torch.device("cpu"), 0, name),
            progress=lambda *_: None,
            load_encoder=refuse,
        )

    def _encode(self, texts: Sequence[str]) -> Tensor:
        import torch

        began = time.perf_counter()
        vectors = torch.from_numpy(self.model.encode(texts))
        self.encoding += time.perf_counter() - began
        return vectors


def remember(**task: Any) -> dict[str, float]:
    """Return the memory of mining in this process, in MB, what was mined, and the seconds."""
    mining = Mining(**task)
    before = resident()
    forget_peak()
    encoding, clustering = mining.once()
    return {
        "before": before,
        "most": peak(),
        "documents": mining.documents,
        "sentences": len(mining.corpus),
        "pairs": mining.pairs,
        "encoding": encoding,
        "clustering": clustering,
    }


if __name__ == "__main__":
    main()
