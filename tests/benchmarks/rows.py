"""What is compared with what, and what is aimed at: the table of docs/performance.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tests.benchmarks.measure import spread

FORMS = {"times": ".2f", "%": ".2f", "s": ".3f"}
"""Units of a row, and how many digits its numbers have."""


@dataclass(frozen=True)
class Aim:
    """What a median has to be.

    Attributes:
        bound: In the unit of its row.
        least: Whether the bound is the least that is wanted, else the most.
    """

    bound: float
    least: bool = False

    def met(self, values: Sequence[float]) -> bool:
        """Tell whether the median is within the bound."""
        middle = statistics.median(values)
        return middle >= self.bound if self.least else middle <= self.bound


@dataclass(frozen=True)
class Row:
    """A comparison.

    Attributes:
        key: Its name in results, ``section.what``.
        what: What is measured.
        against: With what it is compared.
        unit: ``times``, ``%`` or ``s``.
        aim: What is aimed at; None where nothing is.
    """

    key: str
    what: str
    against: str
    unit: str = "times"
    aim: Aim | None = None

    @property
    def section(self) -> str:
        """Return which benchmark measures it."""
        return self.key.partition(".")[0]

    def say(self, values: Sequence[float]) -> str:
        """Return median and range with the unit."""
        return f"{spread(values, FORMS[self.unit])}{self.mark}"

    @property
    def mark(self) -> str:
        """Return the unit as it stands behind a number."""
        return {"times": "", "%": " %", "s": " s"}[self.unit]

    def say_aim(self) -> str:
        """Return the aim in words."""
        if self.aim is None:
            return "none"
        return f"at {'least' if self.aim.least else 'most'} {self.aim.bound:g}{self.mark}"

    def say_met(self, values: Sequence[float]) -> str:
        """Return whether the aim is met; a line where there is none."""
        if self.aim is None:
            return "-"
        return "yes" if self.aim.met(values) else "no"


PEER = "sentence-transformers"
_PLAIN = "a step of plain simcse"
_SHARE = "the steps of the same run"


def _training(key: str, rows: str) -> tuple[Row, ...]:
    """Return the comparisons of training on one kind of rows."""

    def row(name: str, precision: str, peer: str, bound: float) -> Row:
        what = f"sentences per second in training, {precision}, {rows}"
        against = f"{PEER}' trainer, {peer}"
        return Row(f"training.{key}{name}", what, against, aim=Aim(bound, least=True))

    return (
        row("fp32", "fp32", "fp32", 1.75),
        row("bf16", "bf16", "fp32", 5),
        row("bf16-bf16", "bf16", "bf16", 2.2),
    )


ROWS = (
    *_training("", "sentences as they are"),
    *_training("mixed-", "rows of mixed lengths"),
    Row(
        "encoding.fp32",
        "sentences encoded per second, fp32, default batches of each",
        f"{PEER}' `encode`, fp32",
        aim=Aim(1.1, least=True),
    ),
    Row(
        "encoding.fp32-large",
        "the same, equal batches of about 8,192 tokens",
        f"{PEER}' `encode`, fp32",
    ),
    Row(
        "encoding.fp32-small",
        f"the same, equal batches of 32 texts, {PEER}' default",
        f"{PEER}' `encode`, fp32",
    ),
    Row(
        "encoding.bf16",
        "sentences encoded per second, bf16, default batches of each",
        f"{PEER}' `encode`, bf16",
        aim=Aim(1.1, least=True),
    ),
    Row(
        "hicl.articles",
        "speed of hicl, articles cut at 512 tokens, over what its fewer operations promise",
        "simcse, which is not padded either",
        aim=Aim(0.95, least=True),
    ),
    Row(
        "hicl.full",
        "speed of hicl, every text of 512 tokens, over what its fewer operations promise",
        "simcse, which is not padded either",
        aim=Aim(0.95, least=True),
    ),
    Row(
        "hicl.sentences",
        "sentences per second of hicl, max_length 512",
        f"{PEER}' trainer, which pads; simcse's loss",
        aim=Aim(2.33, least=True),
    ),
    Row(
        "hicl.memory",
        "peak memory of hicl's steps, sentences, max_length 512",
        f"{PEER}' trainer",
    ),
    Row(
        "hicl.memory-full",
        "peak memory of hicl's steps, every text of 512 tokens",
        "simcse",
    ),
    Row(
        "parts.stores",
        "time inside the dearest store, with the columns that it adds",
        _SHARE,
        "%",
        Aim(3),
    ),
    Row(
        "parts.miners",
        "time inside the dearest miner, with the columns that it adds",
        _SHARE,
        "%",
        Aim(3),
    ),
    Row(
        "parts.fgsm",
        "seconds of a step of simcse with fgsm, fresh gradients",
        _PLAIN,
        aim=Aim(2.1),
    ),
    Row(
        "memory.chunked",
        "peak memory of a process, largest batch, cached in chunks of 64",
        "batch 64, the same chunk size",
        aim=Aim(1.5),
    ),
    Row(
        "mining.clustering",
        "seconds of clustering documents (idc), everything but the encoder",
        "seconds of encoding them",
        "%",
        Aim(10),
    ),
    Row("mining.whole", "the same, all documents of the file", "the same", "%", Aim(10)),
    Row(
        "mining.memory",
        "peak memory of a process that mines all documents",
        "a quarter of the documents",
        aim=Aim(1.1),
    ),
    Row("startup.help", "`cse --help`, from start to end", "nothing", "s", Aim(0.5)),
    Row("startup.list", "`cse list-plugins`, from start to end", "nothing", "s", Aim(0.5)),
    Row(
        "startup.import",
        "`cse list-plugins`, from start to end",
        "python with `import sentence_transformers`",
    ),
)
BY_KEY = {row.key: row for row in ROWS}
