"""Steps and whole runs of the engine while ``BLOCKED`` libraries cannot be imported.

Run as a program, it prints a line of JSON for each thing that it did.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

BLOCKED = ("transformers", "pyarrow", "datasets", "tokenizers", "huggingface_hub")


class Wall(MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in BLOCKED:
            raise ImportError(f"{name} is blocked")


sys.meta_path.insert(0, Wall())

import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

from cse_core.hookspecs import hookimpl  # noqa: E402
from cse_core.parts import PositiveMiner, RoundContext  # noqa: E402
from cse_core.records import MinerSpec  # noqa: E402
from cse_core.registry.registry import Registered, Registry  # noqa: E402
from cse_core.reporter import Reporter  # noqa: E402
from cse_core.texts import LoadReport  # noqa: E402
from cse_core.types import Round  # noqa: E402
from cse_defaults.basics import plugin as basics  # noqa: E402
from cse_engine.compose.compose import resolve  # noqa: E402
from cse_engine.compose.models import Models  # noqa: E402
from cse_engine.run.prepare import prepare  # noqa: E402
from cse_engine.run.run import read_run, resume, train  # noqa: E402
from cse_engine.run.signals import Stopped  # noqa: E402
from tests.engine.acid import toy  # noqa: E402

TEXTS = [f"word{i % 7} of{i % 3} text{i} and{i % 5}" for i in range(24)]


class Texts(list[str]):
    """A list of strings as a column."""

    def take(self, rows: Sequence[int]) -> list[str]:
        return [self[int(row)] for row in rows]

    def distinct(self) -> tuple[Sequence[str], Any]:
        return self, np.arange(len(self))


@dataclass
class Strings:
    """A list of strings as the training texts of a run."""

    texts: Texts
    report: LoadReport = LoadReport(("a list",))
    held_out: None = None
    documents: None = None
    fingerprint: str = "sha256:0"
    names: tuple[str, ...] = ("text",)
    columns: tuple[str, ...] = ("text",)
    graded: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    def column(self, name: str) -> Texts:
        return self.texts

    texts_of = column

    def offsets(self, name: str) -> None:
        """A row has one text."""

    def corpus(self, needed: Any = None) -> "Strings":
        return self

    @property
    def text_ids(self) -> Any:
        return np.arange(len(self))


class Next(PositiveMiner):
    """Two rounds: the next text is the positive, then the one before, as texts of their own."""

    remembers = ("asked",)
    asked = 0

    def next_round(self, ctx: RoundContext) -> Round | None:
        self.asked += 1
        rows, texts = np.arange(len(ctx.corpus) - 1), list(ctx.corpus.column("text"))
        vectors = ctx.encode(texts[:2])
        assert vectors.shape == (2, toy.WIDTH)
        if self.asked == 1:
            return Round({"text": rows, "positive": rows + 1}, train={"epochs": 1})
        own = {"text": texts[1:], "positive": texts[:-1]}
        return Round(own, train={"max_steps": 4}) if self.asked == 2 else None


@hookimpl
def cse_positive_miners() -> list[MinerSpec]:
    return [
        MinerSpec(
            name="next", summary="neighbours", factory=f"{__name__}:Next", rounds=True,
            columns=("text",),
        )
    ]  # fmt: skip


@dataclass
class Stopping(Reporter):
    """Asks a run to stop after so many steps, as a signal does."""

    after: int | None = None
    steps: list[int] = field(default_factory=list)

    def step(self, step: int) -> None:
        self.steps.append(step)
        if len(self.steps) == self.after:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGTERM)


def registry() -> Registry:
    hooks = [getattr(basics, name) for name in dir(basics) if name.startswith("cse_")]
    records = [
        record for hook in (*hooks, toy.cse_models, cse_positive_miners) for record in hook()
    ]
    return Registry(Registered(record, "cse-toolkit", "1", "it") for record in records)


def run(out: Path, model: Path, stop: int | None, *sets: str) -> Path:
    """Train, stopped and resumed where ``stop`` says so."""
    plugins, read = registry(), lambda options: Strings(Texts(TEXTS))
    kinds: Any = {"pool": ["mean", "mlp"], "loss": ["infonce"]}
    if "rounds" in out.name:
        kinds["positives"] = ["next"]
    settings = ["train.batch_size=6", "train.device=cpu", "train.precision=fp32", "train.dev=none",
                "train.save_steps=2", "train.lr=1e-2", "model.max_length=8", *sets]  # fmt: skip
    plan = resolve(
        plugins, kinds=kinds, sets=settings, model=str(model), data=["list"], lookup=read
    )
    try:
        train(prepare(plan, plugins, reporter=Stopping(after=stop), read_texts=read), out)
    except Stopped:
        record = read_run(out, plugins)
        settings, reporter = record.settings["run"], Stopping()
        again = prepare(
            record.composition, plugins, reporter=reporter, read_texts=read, recorded=settings
        )
        resume(record, again)
    return out


def tensors(folder: Path) -> dict[str, Any]:
    return {
        f"{file.name} {name}": value.tolist()
        for file in sorted(folder.glob("*.safetensors"))
        for name, value in load_file(file).items()
    }


def journey(folder: Path) -> Iterator[dict[str, Any]]:
    torch.set_num_threads(1)
    start = folder / "start"
    start.mkdir()
    (start / "toy.json").write_text("{}")
    for name, stop, sets in (
        ("steps", None, ()), ("steps-stopped", 2, ()), ("chunks", None, ("train.chunk_size=4",)),
        ("rounds", None, ()), ("rounds-stopped", 5, ()),
    ):  # fmt: skip
        out = run(folder / name, start, stop, *sets)
        losses = [json.loads(line)["loss"] for line in (out / "metrics.jsonl").open()]
        yield {"run": name, "losses": losses, "model": tensors(out / "model")}
    models = Models(registry())
    facts, card = models.look(str(folder / "rounds"))
    assert card.row is not None
    yield {"saved": facts.family, "pool": card.row.use, "heads": [head.use for head in card.heads]}
    yield {"imported": [name for name in BLOCKED if name in sys.modules]}


if __name__ == "__main__":
    for line in journey(Path(sys.argv[1])):
        print(json.dumps(line))
