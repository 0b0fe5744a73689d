"""Sentences per second of ``cse encode`` beside sentence-transformers' ``encode``.

The same model folder, the same sentences in the same, unsorted order, the same number format, in
one process, in turn; each repeat takes its own share of the sentences. Three pairs: the default
batches of each, and in fp32 on an eighth of each share equal batches, large ones and the peer's
default of 32 texts. The vectors are compared, row by row: a lost order or other work ends the
benchmark.

    python -m tests.benchmarks.encoding [--count 100000] [--repeats 5] [--texts FILE] \
        [--model FOLDER]
"""

from __future__ import annotations

import argparse
import inspect
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.inputs import Shape, make_model, read, registry
from tests.benchmarks.machine import no_bf16, precisions
from tests.benchmarks.measure import alternate, ratios, spread
from tests.benchmarks.report import Report, parser
from tests.benchmarks.steps import PEER

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Encode = Callable[[Sequence[str], int], Vectors]

TEXTS = 32
"""What sentence-transformers encodes at once, by default."""
LARGE = 8192
"""Tokens of a large batch."""
FOR_VOCABULARY = 20_000
ALLOWED = {"fp32": 1e-4, "bf16": 0.05}
"""Largest difference of two vectors, as a share of the longest one's length."""
PART = 8
"""Equal batches are timed on one share in so many of the texts."""


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__)
    made.add_argument("--count", type=int, default=100_000, help="sentences of all repeats")
    made.add_argument("--texts", metavar="FILE", help="sentences instead of the starter's")
    made.add_argument("--model", metavar="FOLDER", help="a model instead of a random BERT")
    made.add_argument("--length", type=int, default=128, help="tokens of a text at most")
    made.add_argument("--layers", type=int, default=6)
    made.add_argument("--hidden", type=int, default=384)
    made.add_argument("--precisions", default="auto", help="fp32,bf16; auto is what is fast here")
    return made.parse_args(words)


def main() -> None:
    """Measure and print."""
    options = arguments()
    report = Report("encoding")
    shape = Shape(options.layers, options.hidden)
    texts = read(options.texts, max(options.count, FOR_VOCABULARY))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model or _make(Path(temporary), texts, shape, options.length)
        texts = texts[: options.count]
        size = max(len(texts) // options.repeats, 1)
        shares = [texts[i * size : (i + 1) * size] for i in range(options.repeats)]
        report.say(
            f"{'A given model' if options.model else f'A random BERT of {shape}'}, mean pooling, "
            f"at most {options.length} tokens; {len(texts):,} sentences of "
            f"{'a file' if options.texts else 'the starter'}, {size:,} a repeat."
        )
        for precision in precisions(options.precisions):
            measure(report, folder, shares, precision)
    if "encoding.bf16" in report.values:
        report.say(f"In bf16 {PEER} holds its weights in bf16; cse keeps them and casts.")
    else:
        report.skip("bf16", no_bf16() or "not asked for")
    report.finish(options.json)


def _make(temporary: Path, texts: Sequence[str], shape: Shape, length: int) -> str:
    from tests.benchmarks.peer import save_model

    encoder = make_model(temporary / "encoder", texts[:FOR_VOCABULARY], shape)
    return save_model(encoder, temporary / "model", length)


@dataclass
class Sides:
    """Both ways to vectors, and the share of texts that is next.

    Attributes:
        at_once: Tokens that cse's call takes by default.
        tokens: Tokens of a text, special ones counted, on average.
    """

    own: Encode
    peer: Encode
    at_once: int
    tokens: float


def measure(report: Report, folder: str, shares: list[list[str]], precision: str) -> None:
    """Time both on all shares, in fp32 also in equal batches, and compare the vectors."""
    sides = both(folder, precision, shares[0])
    check = Check(precision)
    own, peer = (sides.own, sides.at_once), (sides.peer, TEXTS)
    speeds = time_all({"own": own, "peer": peer}, shares, check)
    report.add(precision, ratios(speeds["own"], speeds["peer"]))
    batches = [f"{sides.at_once} tokens", f"{TEXTS} texts"]
    if precision == "fp32":
        many = max(round(LARGE / sides.tokens), 1)
        few = max(round(TEXTS * sides.tokens), 1)
        equal = {
            "own large": (sides.own, LARGE),
            "peer large": (sides.peer, many),
            "own small": (sides.own, few),
            "peer small": peer,
        }
        some = [share[: max(len(share) // PART, 1)] for share in shares]
        speeds.update(time_all(equal, some, check))
        report.add("fp32-large", ratios(speeds["own large"], speeds["peer large"]))
        report.add("fp32-small", ratios(speeds["own small"], speeds["peer small"]))
        batches += [f"{LARGE} tokens", f"{many} texts", f"{few} tokens", f"{TEXTS} texts"]
    lines = [
        ["cse" if name.startswith("own") else PEER, batch, spread(values, ".0f")]
        for (name, values), batch in zip(speeds.items(), batches, strict=False)
    ]
    report.table(f"Encoding, {precision}", ["", "at once", "sentences/s"], lines)
    report.say(
        f"Largest difference of two vectors in {precision}: {check.most:.1e} of the longest."
    )


def both(folder: str, precision: str, texts: Sequence[str]) -> Sides:
    """Load both."""
    import numpy as np

    from cse_cli.models.loading import TextEncoder, encode_blocks, load_model
    from cse_core.models.sentence_encoder import tokens_at_once
    from tests.benchmarks.peer import Encoder

    loaded = load_model(folder, registry(), device="cpu", precision=precision)
    table = loaded.sentence_encoder.tokenizer.table(list(texts), loaded.sentence_encoder.max_length)
    special = loaded.sentence_encoder.tokenizer.special_count
    _same_default()

    def own(texts: Sequence[str], batch: int) -> Vectors:
        blocks = encode_blocks(TextEncoder(loaded, batch), texts)
        return np.concatenate([vectors for _, vectors in blocks])

    tokens = int(table.offsets[-1]) / len(texts) + special
    with loaded.precision.autocast():
        at_once = tokens_at_once(loaded.device)
    return Sides(own, Encoder(folder, precision).encode, at_once, tokens)


def _same_default() -> None:
    """Make sure that the peer's batches are still what it takes by default."""
    from sentence_transformers import SentenceTransformer

    peer: Any = inspect.signature(SentenceTransformer.encode).parameters["batch_size"].default
    if peer != TEXTS:
        raise SystemExit(f"the default batch of {PEER} is {peer} texts now")


class Check:
    """Compares the vectors of a text, whoever made them, with those that came first.

    Attributes:
        most: Largest difference of two vectors so far, over the longest vector.
    """

    def __init__(self, precision: str) -> None:
        self.precision = precision
        self.most = 0.0
        self._first: dict[str, Vectors] = {}

    def look(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Compare.

        Raises:
            SystemExit: If they differ so much that both do not do the same work.
        """
        import numpy as np

        for text, vector in zip(texts, vectors, strict=True):
            self._first.setdefault(text, vector)
        first = np.stack([self._first[text] for text in texts])
        longest = np.linalg.norm(first, axis=1).max()
        found = float(np.linalg.norm(first - vectors, axis=1).max() / longest)
        if not found <= ALLOWED[self.precision]:
            raise SystemExit(
                f"the vectors of cse and {PEER} differ by {found:.2e} in {self.precision}"
            )
        self.most = max(self.most, found)


def time_all(
    works: dict[str, tuple[Encode, int]], shares: list[list[str]], check: Check
) -> dict[str, list[float]]:
    """Return sentences per second of each share; all warm up on the first one's beginning."""

    def one(encode: Encode, batch: int) -> Callable[[], float]:
        order = iter([shares[0][: 2 * TEXTS], *shares])

        def speed() -> float:
            texts = next(order)
            began = time.perf_counter()
            vectors = encode(texts, batch)
            taken = time.perf_counter() - began
            check.look(texts, vectors)
            return len(texts) / taken

        return speed

    return alternate({name: one(*work) for name, work in works.items()}, len(shares))


if __name__ == "__main__":
    main()
