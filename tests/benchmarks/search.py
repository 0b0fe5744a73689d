"""The benchmark of the first answer: a search of one query in an index, from a process's start."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.benchmarks.inputs import FOR_VOCABULARY, make_model, read, write
from tests.benchmarks.report import PEER, Report, alternate, ratios, spread
from tests.benchmarks.sections import Given, folder

PASSAGES, LONGEST, REPEATS = 100_000, 16, 10
QUERY = "what came of the old harbour"
_PEER = """
import sys
import numpy as np
from sentence_transformers import SentenceTransformer
model, vectors, texts, query = sys.argv[1:]
asked = SentenceTransformer(model, device="cpu").encode([query], normalize_embeddings=True)[0]
best = np.argsort(-(np.load(vectors, mmap_mode="r") @ asked))[:5]
lines = open(texts, encoding="utf-8").read().splitlines()
print(*(lines[place] for place in best), sep="\\n")
"""
_ABOUT_PEER = (
    "The peer loads the model, encodes the query, multiplies it with the vectors of a .npy file "
    "and prints the nearest lines: no checksums, no words, no places."
)


def processor_seconds(words: Sequence[str]) -> float:
    """Run a command; return the seconds that its processors took."""

    def used() -> float:
        found = resource.getrusage(resource.RUSAGE_CHILDREN)
        return found.ru_utime + found.ru_stime

    began = used()
    subprocess.run(words, check=True, capture_output=True)
    return used() - began


def search(report: Report, given: Given) -> None:
    """Seconds of the processor from the start of `cse search` to its answer, beside the peer."""
    shape, repeats = given.shape(6, 384), 2 if given.quick else REPEATS
    texts = read(given.texts, PASSAGES)
    count = min(len(texts), 500 if given.quick else PASSAGES)
    cse = str(Path(sys.executable).with_name("cse"))
    with folder() as place:
        model, file = (
            make_model(place / "model", texts[:FOR_VOCABULARY], shape),
            place / "texts.txt",
        )
        write(file, texts[:count])
        index = (cse, "index", model, str(file), "--out", str(place / "index"))
        subprocess.run(
            (*index, "--max-length", str(LONGEST), "--language", "none"),
            check=True,
            capture_output=True,
        )
        (vectors,) = (place / "index").glob("content-*/vectors.npy")
        ask = (cse, "search", model, QUERY, "--index", str(place / "index"))
        commands = {
            "cse search": ask,
            "cse search --bm25 0.3": (*ask, "--bm25", "0.3"),
            PEER: (sys.executable, "-c", _PEER, model, str(vectors), str(file), QUERY),
        }
        works = {name: partial(processor_seconds, words) for name, words in commands.items()}
        found = alternate(works, repeats)
    report.say(
        f"One query, a random BERT of {shape}, {count:,} sentences of {LONGEST} tokens at most; "
        f"{repeats} starts of each in turn. {_ABOUT_PEER}"
    )
    report.add("first", found["cse search"])
    report.add("words", found["cse search --bm25 0.3"])
    report.add("ratio", ratios(found["cse search"], found[PEER]))
    rows = [[name, spread(seconds, ".2f")] for name, seconds in found.items()]
    report.table("The first answer", ["", "processor seconds"], rows)
