"""Titles found from documents: before training, after weak starts, after rounds of clusters.

The encoder trains on the first articles of a file; the last ones, and the documents of other files,
are what it is scored on (recall of the own title among all of the file). Each round of clusters is
a run of its own that starts from the model of the one before, so that every one can be scored. A
line of results.jsonl is written as each run ends, and what is there already is not run again.

    python -m tests.benchmarks.titles --articles wiki.jsonl.gz [--documents news.jsonl.gz] \
        [--seeds 1,2,3]
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.real_text import command

STARTS = ("simcse", "mirror-bert", "neighbour", "inverse-cloze", "preceding-context", "span")
OF_CORPUS = ("simcse", "mirror-bert")
"""Recipes whose rows are the sentences; the others take pairs from documents."""
FIRST = "neighbour"
"""The start of the rounds."""
RECALLS = ("recall@5", "recall@10", "recall@20")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--articles", required=True, help="documents with titles, jsonl or jsonl.gz")
    made.add_argument("--documents", action="append", default=[], help="more to score on")
    made.add_argument("--out", type=Path, default=Path("runs/titles"))
    made.add_argument("--seeds", default="1,2,3")
    made.add_argument("--starts", default=",".join(STARTS))
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--sentences", default="24000", help="the first of the articles, to train on")
    made.add_argument("--held-out", type=int, default=500, help="the last articles, to score on")
    made.add_argument("--pairs", type=int, default=10_000, help="pairs of a round at most")
    made.add_argument("--batch", type=int, default=64)
    return made.parse_args()


def held_out(articles: str, count: int, folder: Path) -> str:
    """Write the last documents of a file to a file of their own, and return its path."""
    path = folder / f"last-{count}.jsonl"
    opened = gzip.open if articles.endswith(".gz") else open
    with opened(articles, "rt", encoding="utf-8") as file:
        path.write_text("".join(file.readlines()[-count:]), encoding="utf-8")
    return str(path)


def runs(options: argparse.Namespace, seed: str) -> Iterator[tuple[str, list[str], str]]:
    """Yield name, words of cse train, and model to start from, of every run of a seed."""
    steps = ["--set", f"train.max_steps={options.pairs // options.batch}"]
    for start in options.starts.split(","):
        pairs = ["--set", f"positives.{start}.pairs={options.pairs}"]
        yield start, ["--recipe", start, *(steps if start in OF_CORPUS else pairs)], "starter"
    model = str(options.out / f"{FIRST}-{seed}")
    for number in range(1, options.rounds + 1):
        words = ["--recipe", "infocse", "--positives", "idc", "--positives.idc.rounds", "1"]
        words += ["--set", f"positives.idc.pairs={options.pairs}"]
        yield f"round {number}", words, model
        model = str(options.out / f"round-{number}-{seed}")


def scores(model: str, files: Iterable[str], *more: str) -> dict[str, Any]:
    """Return recall of a model on files of documents, of sentences of 32 tokens."""
    words = [word for file in files for word in ("--documents", file)]
    found = command("eval", model, "--suite", "retrieval", *words, "--max-length", "32", *more)
    results: dict[str, Any] = found["results"]
    return results


def show(lines: list[dict[str, Any]]) -> None:
    """Print mean and deviation over the seeds of every kind of run, file by file."""
    for name in dict.fromkeys(line["name"] for line in lines):
        of_name = [line["scores"] for line in lines if line["name"] == name]
        for file in of_name[0]:
            cells = []
            for recall in RECALLS:
                values = [each[file][recall] for each in of_name]
                spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
                cells.append(f"{statistics.mean(values):6.2f}{spread}")
            print(f"{name:20} {file:16} {'  '.join(cells)}  ({len(of_name)})")


def main() -> None:
    """Run what is missing, and print what each kind of run scored."""
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    book = options.out / "results.jsonl"
    lines = [json.loads(line) for line in book.read_text().splitlines()] if book.exists() else []
    files = [held_out(options.articles, options.held_out, options.out), *options.documents]

    def keep(name: str, seed: str, **found: Any) -> None:
        line = {"name": name, "seed": seed, **found}
        lines.append(line)
        with book.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(name, seed, found["scores"], flush=True)

    def is_there(name: str, seed: str) -> bool:
        return any((line["name"], line["seed"]) == (name, seed) for line in lines)

    if not is_there("starter", "-"):
        keep("starter", "-", scores=scores("starter", files))
    for seed in options.seeds.split(","):
        for name, words, model in runs(options, seed):
            if is_there(name, seed):
                continue
            out = options.out / f"{name.replace(' ', '-')}-{seed}"
            words = ["train", *words, "--model", model, "--data", options.articles, "--seed", seed]
            words += ["--set", f"data.limit={options.sentences}", "--dev", "none"]
            words += ["--set", f"train.batch_size={options.batch}", "--out", str(out)]
            began = time.time()
            command(*(["train", "--resume", str(out)] if (out / "run.toml").exists() else words))
            keep(
                name,
                seed,
                seconds=round(time.time() - began, 1),
                command=" ".join(["cse", *words]),
                scores=scores(str(out), files, "--no-baselines"),
            )
    show(lines)


if __name__ == "__main__":
    main()
