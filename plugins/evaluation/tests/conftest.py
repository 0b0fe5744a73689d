"""Fixtures, and a folder with a small file of every suite."""

import json
import shutil
from pathlib import Path

import pytest

from cse_core.loading import package_path
from tests.fixtures.evaluation import encoder, write

__all__ = ["encoder", "write"]

THINGS = ("dog", "cat", "horse", "boat", "train", "car")
ROWS = [
    (str(int(thing in THINGS[:3])), f"The {thing} was {how} {when}.")
    for thing in THINGS
    for how in ("old", "near", "lost", "loud")
    for when in ("today", "in May")
]
LONG = "It rained all day and nobody came to see the harbour, so we went home. "
CHINESE = "狗猫船树花鸟车门"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a small set of each suite, and files that are none."""
    folder = tmp_path_factory.mktemp("data")

    def write(name: str, rows: list[tuple[str, ...]], *columns: str) -> None:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join("\t".join(row) for row in [columns, *rows]) + "\n")

    pairs = [(a[0], a[1], b[1]) for a, b in zip(ROWS, ROWS[1:], strict=False)]
    write("transfer/mr.tsv", ROWS, "label", "text")
    write("transfer/mrpc.train.tsv", pairs, "label", "sentence1", "sentence2")
    write("transfer/mrpc.test.tsv", pairs[::3], "label", "sentence1", "sentence2")
    write("classify/news.train.tsv", [(a, LONG + b) for a, b in ROWS], "label", "text")
    write("classify/news.test.tsv", [(a, LONG + b) for a, b in ROWS[::3]], "label", "text")
    graded = [(str(n % 4), ROWS[n][1], ROWS[3 * n][1]) for n in range(12)]
    write("classify/graded.tsv", graded, "score", "text1", "text2")
    write("stsb.test.tsv", graded, "score", "text1", "text2")
    titled = [(text, f"d{n // 4}", f"title {n // 4} {text}") for n, (_, text) in enumerate(ROWS)]
    write("docs/b.tsv", titled, "text", "document", "title")
    zh = [(str(i % 5), f"一只{t}在那里", f"那里有{t}吗") for i, t in enumerate(CHINESE)]
    write("chinese/cstsb.test.tsv", zh, "score", "sentence1", "sentence2")
    binary = [(f"{t}好看吗", f"{t}好不好看", str(i % 2)) for i, t in enumerate(CHINESE)]
    write("lcqmc.dev.tsv", binary, "text_a", "text_b", "label")
    write("graded.tsv", [("1", "a dog", "a cat")], "score", "text1", "text2")
    write("half/sst2.train.tsv", ROWS, "label", "text")
    write("broken/mr.tsv", [("1",)], "label", "text")
    short = folder / "short"  # the starter, as if it was trained with 16 tokens
    shutil.copytree(package_path("cse_starter:encoder"), short)
    manifest = json.loads((short / "cse.json").read_text()) if (short / "cse.json").exists() else {}
    plain = {"row": {"use": "mean", "options": {}}, "heads": [], "slice": None}
    (short / "cse.json").write_text(json.dumps({**plain, **manifest, "max_length": 16}))
    return folder
