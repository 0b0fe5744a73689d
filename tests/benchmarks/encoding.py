"""Sentences per second of ``cse encode`` beside sentence-transformers' ``encode``.

The same model folder, the same sentences in the same, unsorted order, the same precision, in
one process, in turn, each in its default batches; each repeat takes its own share of the sentences.
The vectors are compared, row by row: a lost order or other work ends the benchmark.

    python -m tests.benchmarks.encoding [--count 100000] [--repeats 5] [--texts FILE]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.inputs import FOR_VOCABULARY, Shape, make_model, read, registry
from tests.benchmarks.machine import no_bf16, precisions
from tests.benchmarks.measure import alternate, ratios, spread
from tests.benchmarks.report import Report, parser
from tests.benchmarks.steps import PEER

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Encode = Callable[[Sequence[str]], Vectors]

ALLOWED = {"fp32": 1e-4, "bf16": 0.05}
"""Largest difference of two vectors, as a share of the longest one's length."""


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("--count", type=int, default=100_000, help="sentences of all repeats")
    made.add_argument("--texts", metavar="FILE", help="sentences instead of the starter's")
    made.add_argument("--length", type=int, default=128, help="tokens of a text at most")
    made.add_argument("--layers", type=int, default=6)
    made.add_argument("--hidden", type=int, default=384)
    return made.parse_args(words)


def main() -> None:
    """Measure and print."""
    from tests.benchmarks.peer import save_model

    options = arguments()
    report = Report("encoding")
    shape = Shape(options.layers, options.hidden)
    texts = read(options.texts, max(options.count, FOR_VOCABULARY))
    with tempfile.TemporaryDirectory() as temporary:
        encoder = make_model(Path(temporary) / "encoder", texts[:FOR_VOCABULARY], shape)
        folder = save_model(encoder, Path(temporary) / "model", options.length)
        texts = texts[: options.count]
        size = max(len(texts) // options.repeats, 1)
        shares = [texts[i * size : (i + 1) * size] for i in range(options.repeats)]
        report.say(
            f"A random BERT of {shape}, mean pooling, at most {options.length} tokens; "
            f"{len(texts):,} sentences of {'a file' if options.texts else 'the starter'}, "
            f"{size:,} a repeat."
        )
        for precision in precisions():
            measure(report, folder, shares, precision)
    if "encoding.bf16" in report.values:
        report.say(f"In bf16 {PEER} holds its weights in bf16; cse keeps them and casts.")
    else:
        report.skip("bf16", no_bf16() or "")
    report.finish(options.json)


def measure(report: Report, folder: str, shares: list[list[str]], precision: str) -> None:
    """Time both on all shares and compare the vectors."""
    import numpy as np

    from cse_cli.models.loading import TextEncoder, encode_blocks, load_model
    from cse_core.models.sentence_encoder import tokens_at_once
    from tests.benchmarks.peer import Encoder

    loaded = load_model(folder, registry(), device="cpu", precision=precision)
    peer = Encoder(folder, precision)
    with loaded.precision.autocast():
        at_once = tokens_at_once(loaded.device)

    def own(texts: Sequence[str]) -> Vectors:
        blocks = encode_blocks(TextEncoder(loaded, at_once), texts)
        return np.concatenate([vectors for _, vectors in blocks])

    works = {"own": own, "peer": peer.encode}
    speeds, most = time_all(works, shares, ALLOWED[precision])
    report.add(precision, ratios(speeds["own"], speeds["peer"]))
    lines = [
        ["cse", f"{at_once} tokens", spread(speeds["own"], ".0f")],
        [PEER, f"{peer.batch} texts", spread(speeds["peer"], ".0f")],
    ]
    report.table(f"Encoding, {precision}", ["", "at once", "sentences/s"], lines)
    report.say(f"Largest difference of two vectors in {precision}: {most:.1e} of the longest.")


def time_all(
    works: dict[str, Encode], shares: list[list[str]], allowed: float
) -> tuple[dict[str, list[float]], float]:
    """Return sentences per second of each share, and the largest difference of two vectors.

    All warm up on the first share's beginning. The difference is a share of the longest vector.

    Raises:
        SystemExit: If vectors differ so much that both do not do the same work.
    """
    import numpy as np

    first: dict[int, Vectors] = {}
    most = 0.0

    def one(encode: Encode) -> Callable[[], float]:
        order = iter(enumerate([shares[0][:64], *shares]))

        def speed() -> float:
            nonlocal most
            place, texts = next(order)
            began = time.perf_counter()
            vectors = encode(texts)
            taken = time.perf_counter() - began
            other = first.setdefault(place, vectors)
            lengths = np.linalg.norm(other, axis=1)
            difference = np.linalg.norm(other - vectors, axis=1).max() / lengths.max()
            if not difference <= allowed:
                raise SystemExit(f"the vectors of cse and {PEER} differ by {difference:.2e}")
            most = max(most, float(difference))
            return len(texts) / taken

        return speed

    found = alternate({name: one(work) for name, work in works.items()}, len(shares))
    return found, most


if __name__ == "__main__":
    main()
