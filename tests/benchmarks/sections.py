"""The benchmarks of a whole run, and their sizes: as the modules have them, and a smoke run's."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Section:
    """A benchmark.

    Attributes:
        name: Its module.
        title: Its heading.
        sizes: Arguments of a whole run, where they are not the module's own defaults.
        quick: Arguments of a smoke run.
        texts: Whether it takes a file of sentences.
        articles: Whether it takes a file of documents.
    """

    name: str
    title: str
    sizes: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    texts: bool = True
    articles: bool = False

    def words(self, *, quick: bool, texts: str | None, articles: str | None) -> list[str]:
        """Return its arguments."""
        words = list(self.quick if quick else self.sizes)
        if texts and self.texts:
            words += ["--texts", texts]
        if articles and self.articles:
            words += ["--articles", articles]
        return words

    def command(self, *, quick: bool, texts: str | None, articles: str | None) -> str:
        """Return the command that does it, files by their names alone."""
        named = (Path(path).name if path else None for path in (texts, articles))
        words = self.words(quick=quick, texts=next(named), articles=next(named))
        return shlex.join(["python", "-m", f"tests.benchmarks.{self.name}", *words])


_SMALL = ("--layers", "2", "--hidden", "64")
SECTIONS = (
    Section("startup", "Start-up", quick=("--repeats", "1"), texts=False),
    Section(
        "training",
        "Training",
        quick=("--repeats", "2", "--steps", "1", "--batch", "16", *_SMALL),
    ),
    Section("encoding", "Encoding", quick=("--repeats", "2", "--count", "400", *_SMALL)),
    Section(
        "memory",
        "Memory against the batch",
        quick=("--repeats", "1", "--batches", "8,64", "--chunk", "8", "--whole", "64", *_SMALL),
    ),
    Section(
        "mining",
        "Mining",
        sizes=("--whole",),
        quick=("--repeats", "1", "--documents", "40", "--shard", "200"),
        texts=False,
        articles=True,
    ),
    Section(
        "parts",
        "What a part costs",
        quick=("--repeats", "1", "--steps", "1", "--warm", "1", "--rows", "128", "--batch", "8"),
    ),
    Section(
        "hicl",
        "HiCL at 512 tokens",
        sizes=("--steps", "3", "--plot", "docs/methods/hicl.svg"),
        quick=(
            "--repeats", "1", "--steps", "1", "--batch", "2", "--sentence-batch", "8",
            "--layers", "1", "--hidden", "64",
        ),
        articles=True,
    ),
)  # fmt: skip
