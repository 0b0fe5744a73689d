"""What a benchmark found beside what it is compared with, and on which machine."""

import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from cse_cli.api import processor

Found = TypeVar("Found")
ROOT = Path(__file__).resolve().parents[2]
PEER = "sentence-transformers"
CODE = ("tests/benchmarks", "cse_core", "cse_engine", "cse_defaults", "cse_cli", "plugins")
"""Folders of what is measured."""
FORMS = {"times": (".2f", ""), "s": (".3f", " s")}
"""Units of a row: how many digits its numbers have, and what stands behind them."""


class Row(NamedTuple):
    """A comparison, with the name ``section.what`` in results.

    Attributes:
        aim: ``>=`` or ``<=`` and the bound of the median, in the unit; empty where nothing is.
        unit: ``times`` or ``s``.
    """

    key: str
    what: str
    against: str
    aim: str = ""
    unit: str = "times"

    def say_aim(self) -> str:
        word, _, bound = self.aim.partition(" ")
        mark = FORMS[self.unit][1]
        return f"at {'least' if word == '>=' else 'most'} {bound}{mark}" if self.aim else "none"

    def say_met(self, values: Sequence[float]) -> str:
        """Return whether the aim is met; a line where there is none."""
        if not self.aim or not values:
            return "-"
        middle, bound = statistics.median(values), float(self.aim[3:])
        return "yes" if (middle >= bound if self.aim[0] == ">" else middle <= bound) else "no"

    def cells(self, values: Sequence[float], missing: str, note: str = "") -> list[str]:
        """Return its cells in the table of all comparisons; ``missing`` stands for no values."""
        what = f"{self.what} ({note})" if note else self.what
        form, mark = FORMS[self.unit]
        printed = f"{spread(values, form)}{mark}" if values else missing
        return [what, self.against, printed, self.say_aim(), self.say_met(values)]


HEAD = ("what", "against", "median [range]", "aim", "met")
_TRAIN = "sentences/s in training"
_FP32, _BF16 = (f"{PEER}' trainer, {precision}" for precision in ("fp32", "bf16"))
_PROMISE = "over what its fewer operations promise"
_NOT_PADDED = "simcse, which is not padded either"
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
        *((f"compiled.{name}", f"{_TRAIN}, {name}, compiled layers", f"as they are, {name}",
           ">= 1.15") for name in ("fp32", "bf16")),
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
        ("parts.fgsm", "seconds of a step of simcse with fgsm, fresh gradients",
         "a step of plain simcse", "<= 2.1"),
        *((f"losses.{key}", f"sentences/s in training, {title}", f"{PEER}' trainer, fp32", ">= 1")
          for key, title in (("tsdae", "TSDAE"), ("gist", "GISTEmbed"), ("cosent", "CoSENT"),
                             ("matryoshka", "Matryoshka"), ("margin-mse", "MarginMSE"))),
        ("memory.chunked", "peak memory, largest batch, in chunks of 64",
         "batch 64, the same chunk size", "<= 1.5"),
        ("startup.help", "`cse --help`", "nothing", "<= 0.5", "s"),
        ("startup.list", "`cse list-plugins`", "nothing", "<= 0.3", "s"),
        ("startup.import", "`cse list-plugins`", "python with `import sentence_transformers`"),
        ("search.first", "processor seconds of `cse search`, 100,000 passages", "nothing",
         "<= 1.5", "s"),
        ("search.words", "processor seconds of `cse search --bm25 0.3`", "nothing", "<= 1.5", "s"),
        ("search.ratio", "processor seconds of `cse search`",
         f"{PEER}: load, encode, multiply"),
    )
)  # fmt: skip
BY_KEY = {row.key: row for row in ROWS}


def alternate(
    works: Mapping[str, Callable[[], Found]], repeats: int, warm: int = 1
) -> dict[str, list[Found]]:
    """Do several works in turn, and return what each found in each repeat after the warm ones.

    Every second repeat goes the other way round, so that a machine that gets slower or faster does
    so for all of them.
    """
    found: dict[str, list[Found]] = {name: [] for name in works}
    for turn in range(warm + repeats):
        names = list(works)
        for name in names if turn % 2 == 0 else reversed(names):
            value = works[name]()
            if turn >= warm:
                found[name].append(value)
    return found


def ratios(ones: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return one over the other for each repeat: what was measured side by side."""
    return [one / other for one, other in zip(ones, others, strict=True)]


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """Return the median and the range in words: ``1.95 [1.68-2.05]``."""
    middle = format(statistics.median(values), form)
    return middle if len(values) == 1 else f"{middle} [{min(values):{form}}-{max(values):{form}}]"


@dataclass
class Report:
    """The findings of one benchmark.

    Attributes:
        values: Values of a row in each repeat, by key.
        notes: What a row's number is of, by key: ``queue``.
        tables: Details: ``title``, ``head`` and ``lines`` of cells in words.
        busy: Share of the processor that others used when it began.
    """

    section: str
    values: dict[str, list[float]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.time)
    busy: float = 0.0

    def add(self, what: str, values: Sequence[float], note: str = "") -> None:
        key = BY_KEY[f"{self.section}.{what}"].key
        self.values[key] = [float(f"{value:.5g}") for value in values]
        self.notes[key] = note

    def say(self, sentence: str) -> None:
        print(sentence, flush=True)
        self.said.append(sentence)

    def table(self, title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
        self.tables.append({"title": title, "head": [*head], "lines": [[*line] for line in lines]})
        print(f"\n{title}:\n\n{table(head, lines)}\n", flush=True)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, with the machine and the time."""
        import torch

        return {
            **asdict(self),
            "began": time.strftime("%Y-%m-%d", time.gmtime(self.began)),
            "seconds": round(time.time() - self.began, 1),
            "threads": torch.get_num_threads(),
            "machine": machine(),
            "code": code(),
        }


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
    )


def machine() -> dict[str, str]:
    import psutil

    return {
        "processor": processor(),
        "cores": str(len(psutil.Process().cpu_affinity())),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        **{name: version(name) for name in ("torch", "transformers", PEER)},
    }


def code() -> str:
    """Return the last commit of what is measured, with a word where files differ from it."""
    commit = _git("log", "-1", "--format=%h", "--", *CODE)
    if not commit:
        return "not under version control"
    return f"{commit} with changes" if _git("status", "--porcelain", "--", *CODE) else commit


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
