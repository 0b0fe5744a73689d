"""What is compared with what, and what is aimed at: the table of docs/performance.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from tests.benchmarks.measure import spread

FORMS = {"times": (".2f", ""), "%": (".2f", " %"), "s": (".3f", " s")}
"""Units of a row: how many digits its numbers have, and what stands behind them."""


class Row(NamedTuple):
    """A comparison.

    Attributes:
        key: Its name in results, ``section.what``.
        what: What is measured.
        against: With what it is compared.
        aim: ``>=`` or ``<=`` and the bound of the median, in the unit; empty where nothing is.
        unit: ``times``, ``%`` or ``s``.
    """

    key: str
    what: str
    against: str
    aim: str = ""
    unit: str = "times"

    @property
    def section(self) -> str:
        """Return which benchmark measures it."""
        return self.key.partition(".")[0]

    def say(self, values: Sequence[float]) -> str:
        """Return median and range with the unit."""
        form, mark = FORMS[self.unit]
        return f"{spread(values, form)}{mark}"

    def say_aim(self) -> str:
        """Return the aim in words."""
        word, _, bound = self.aim.partition(" ")
        return f"at {'least' if word == '>=' else 'most'} {bound}{FORMS[self.unit][1]}"

    def say_met(self, values: Sequence[float]) -> str:
        """Return whether the aim is met; a line where there is none."""
        if not self.aim:
            return "-"
        middle, bound = statistics.median(values), float(self.aim[3:])
        return "yes" if (middle >= bound if self.aim[0] == ">" else middle <= bound) else "no"

    def cells(self, values: Sequence[float] | None, missing: str, note: str = "") -> list[str]:
        """Return its cells in the table of all comparisons; ``missing`` stands for no values."""
        what = f"{self.what} ({note})" if note else self.what
        printed, met = (self.say(values), self.say_met(values)) if values else (missing, "-")
        return [what, self.against, printed, self.say_aim() if self.aim else "none", met]


PEER = "sentence-transformers"
HEAD = ("what", "against", "median [range]", "aim", "met")
_TRAIN = "sentences/s in training"
_FP32, _BF16 = (f"{PEER}' trainer, {precision}" for precision in ("fp32", "bf16"))
_PROMISE = "over what its fewer operations promise"
_NOT_PADDED = "simcse, which is not padded either"
_STEPS = "the steps of the same run"
_MIXED = "rows of mixed lengths"
ROWS = tuple(
    Row(*each)
    for each in (
        ("training.fp32", f"{_TRAIN}, fp32, sentences as they are", _FP32, ">= 1.75"),
        ("training.bf16", f"{_TRAIN}, bf16, sentences as they are", _FP32, ">= 5"),
        ("training.bf16-bf16", f"{_TRAIN}, bf16, sentences as they are", _BF16, ">= 2.2"),
        ("training.mixed-fp32", f"{_TRAIN}, fp32, {_MIXED}", _FP32, ">= 1.75"),
        ("training.mixed-bf16", f"{_TRAIN}, bf16, {_MIXED}", _FP32, ">= 5"),
        ("training.mixed-bf16-bf16", f"{_TRAIN}, bf16, {_MIXED}", _BF16, ">= 2.2"),
        ("encoding.fp32", "sentences/s encoding, fp32, default batches of each",
         f"{PEER}' `encode`, fp32", ">= 1.1"),
        ("encoding.bf16", "sentences/s encoding, bf16, default batches of each",
         f"{PEER}' `encode`, bf16", ">= 1.1"),
        ("hicl.articles", f"speed of hicl, articles cut at 512 tokens, {_PROMISE}", _NOT_PADDED,
         ">= 0.95"),
        ("hicl.full", f"speed of hicl, every text of 512 tokens, {_PROMISE}", _NOT_PADDED,
         ">= 0.95"),
        ("hicl.sentences", "sentences/s of hicl, max_length 512",
         f"{PEER}' trainer, which pads; simcse's loss", ">= 2.33"),
        ("hicl.memory", "peak memory of hicl's steps, sentences, max_length 512",
         f"{PEER}' trainer"),
        ("hicl.memory-full", "peak memory of hicl's steps, every text of 512 tokens", "simcse"),
        ("parts.stores", "time inside the most expensive store",
         _STEPS, "<= 3", "%"),
        ("parts.miners", "time inside the most expensive miner",
         _STEPS, "<= 3", "%"),
        ("parts.fgsm", "seconds of a step of simcse with fgsm, fresh gradients",
         "a step of plain simcse", "<= 2.1"),
        ("memory.chunked", "peak memory, largest batch, in chunks of 64",
         "batch 64, the same chunk size", "<= 1.5"),
        ("mining.clustering", "clustering documents (idc), all but the encoder",
         "encoding them", "<= 10", "%"),
        ("mining.whole", "the same, all documents of the file", "the same", "<= 10", "%"),
        ("mining.memory", "peak memory of a process that mines all documents",
         "a quarter of the documents", "<= 1.1"),
        ("startup.help", "`cse --help`", "nothing", "<= 0.5", "s"),
        ("startup.list", "`cse list-plugins`", "nothing", "<= 0.5", "s"),
        ("startup.import", "`cse list-plugins`",
         "python with `import sentence_transformers`"),
    )
)  # fmt: skip
BY_KEY = {row.key: row for row in ROWS}
