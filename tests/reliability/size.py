"""Size: millions of lines, thousands of steps, and what they take of memory, files and threads.

    python -m tests.reliability.size lines 5000000
    python -m tests.reliability.size mining 5000000
    python -m tests.reliability.size steps 10000

prints a line of JSON for each measurement. Texts are generated, the encoder is tiny and random:
what is measured is what the data takes, not the model.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cse_testkit import tiny_encoder

THINGS = ("dog", "boat", "judge", "goal", "train", "garden", "planet", "violin", "river", "court")
KINDS = ("old", "near", "green", "late", "loud", "cold", "small", "rare", "new", "last")
PLACES = ("the harbour", "a hill", "the square", "an island", "the old town", "a field")
SENTENCES = 20
"""Of a document."""
EVERY = 0.05
"""Seconds between two looks at a process."""


def lines(count: int) -> Iterator[str]:
    """Yield so many sentences, of which hardly any two are equal."""
    draw = random.Random(0)
    for number in range(count):
        yield (f"The {draw.choice(KINDS)} {draw.choice(THINGS)} {number} is behind "
               f"{draw.choice(PLACES)} of the {draw.choice(THINGS)}.")  # fmt: skip


def write_lines(path: Path, count: int) -> None:
    """Write a sentence a line."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines(count))


def write_documents(path: Path, count: int) -> None:
    """Write a document of 20 sentences a line, as JSON."""
    of_file = lines(count)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count // SENTENCES):
            paragraph = [next(of_file) for _ in range(SENTENCES)]
            record = {"id": number, "title": f"Document {number}", "paras": [paragraph]}
            file.write(json.dumps(record) + "\n")


class Watch(threading.Thread):
    """Looks at a process until it ends.

    Attributes:
        peak: Its largest resident memory in MB, ``cached`` files that are mapped not counted.
        looks: Seconds, memory, open files and threads at each look.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self.process, self.peak = process, 0.0
        self.looks: list[tuple[float, float, int, int]] = []

    def run(self) -> None:
        """Look."""
        folder, began = Path(f"/proc/{self.process.pid}"), time.monotonic()
        while self.process.poll() is None:
            try:
                status = (folder / "status").read_text()
                files = len(list((folder / "fd").iterdir()))
            except OSError:
                return
            found = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
            memory = int(found.get("RssAnon", "0 kB").split()[0]) / 1024
            self.peak = max(self.peak, memory)
            look = (time.monotonic() - began, memory, files, int(found.get("Threads", "0")))
            self.looks.append(look)
            time.sleep(EVERY)


def train(folder: Path, *words: str) -> tuple[Watch, float]:
    """Run ``cse train`` in a folder and watch it; return with its seconds."""
    command = [str(Path(sys.executable).with_name("cse")), "train", "--train.device", "cpu"]
    began = time.monotonic()
    with subprocess.Popen(
        [*command, "--model", "./encoder", "--dev", "none", *words],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "CSE_CACHE": "off"},
    ) as process:  # fmt: skip
        watch = Watch(process)
        watch.start()
        _, err = process.communicate()
    watch.join()
    if process.returncode:
        raise RuntimeError(err.decode()[-2000:])
    return watch, time.monotonic() - began


def measure_lines(count: int) -> dict[str, Any]:
    """Train 200 steps on a file of so many lines."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny_encoder(folder / "encoder")
        write_lines(folder / "lines.txt", count)
        words = "--recipe simcse --data lines.txt --train.max_steps 200 --train.batch_size 64"
        watch, seconds = train(folder, *words.split(), "--out", "run")
        size = (folder / "lines.txt").stat().st_size / 2**20
        return {"lines": count, "file_mb": round(size), "peak_mb": round(watch.peak),
                "seconds": round(seconds)}  # fmt: skip


def measure_mining(count: int) -> dict[str, Any]:
    """Mine so many sentences of documents once, and train a few steps on what was found."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny_encoder(folder / "encoder", hidden=16, layers=1)
        write_documents(folder / "documents.jsonl", count)
        words = ("--recipe infocse --data documents.jsonl --train.max_steps 20 "
                 "--train.batch_size 64 --positives.idc.rounds 1")  # fmt: skip
        watch, seconds = train(folder, *words.split(), "--out", "run")
        size = (folder / "documents.jsonl").stat().st_size / 2**20
        return {"sentences": count, "file_mb": round(size), "peak_mb": round(watch.peak),
                "seconds": round(seconds)}  # fmt: skip


def measure_steps(count: int, recipe: str) -> dict[str, Any]:
    """Train so many steps; compare the first fifth, after the start, with the last."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny_encoder(folder / "encoder", layers=1)
        write_lines(folder / "lines.txt", 4_000)
        words = f"--recipe {recipe} --data lines.txt --train.max_steps {count}"
        sizes = "--train.batch_size 16 --train.save_steps 500 --train.log_steps 50 --out run"
        watch, seconds = train(folder, *words.split(), *sizes.split())
    looks = [look for look in watch.looks if look[0] > 0.2 * watch.looks[-1][0]]
    early, late = looks[: len(looks) // 4], looks[-len(looks) // 4 :]
    of = {"memory_mb": 1, "files": 2, "threads": 3}
    first = {what: max(look[place] for look in early) for what, place in of.items()}
    last = {what: max(look[place] for look in late) for what, place in of.items()}
    return {"recipe": recipe, "steps": count, "seconds": round(seconds), "early": first,
            "late": last}  # fmt: skip


def main(words: list[str] | None = None) -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("lines", "mining", "steps"))
    parser.add_argument("count", type=int)
    parser.add_argument("--recipe", action="append", help="of steps; mocose and is-cse by default")
    options = parser.parse_args(words)
    if options.what == "steps":
        for recipe in options.recipe or ("mocose", "is-cse"):
            print(json.dumps(measure_steps(options.count, recipe)), flush=True)
    else:
        measure = measure_lines if options.what == "lines" else measure_mining
        print(json.dumps(measure(options.count)), flush=True)


if __name__ == "__main__":
    main()
