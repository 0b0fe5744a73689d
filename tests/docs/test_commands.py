"""The commands of the quickstart run; those of other pages have a plan, or show what is there."""

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from cse_starter.corpus import StarterCorpus
from cse_testkit.tiny import shared_encoder

from cse_cli.main import run
from cse_cli.plugins.installed import Installed
from cse_core.texts import Wanted
from tests.docs.pages import DOCS, Page, write_files

WORDS = ("harbour", "library", "market", "garden", "station", "museum", "bakery", "bridge")
TEXTS = [f"The {one} is near the old {two}." for one in WORDS for two in WORDS if one != two]
CHEAP = ("--train.precision", "fp32", "--train.max_steps", "3", "--train.batch_size", "8")


def table(rows: list[tuple[object, ...]], mark: str) -> str:
    return "".join(mark.join(map(str, row)) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with small files and runs of the names that the pages give theirs."""
    for name in ("texts.txt", "wiki.txt"):
        (tmp_path / name).write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    pairs = [(TEXTS[i], TEXTS[i + 1], i % 6) for i in range(24)]
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Notes\n\n" + "\n\n".join(TEXTS), encoding="utf-8")
    (tmp_path / "sts").mkdir()
    for name in ("pairs.tsv", "stsb.dev.tsv", "sts/stsb.test.tsv"):
        (tmp_path / name).write_text(table([("sentence1", "sentence2", "score"), *pairs], "\t"))
    triplets = [(TEXTS[i], TEXTS[i + 1], TEXTS[i + 2]) for i in range(24)]
    triplets.insert(0, ("text", "positive", "negative"))
    (tmp_path / "triplets.csv").write_text(table(triplets, ","))
    rows = "".join(
        json.dumps(dict(zip(triplets[0], each, strict=True))) + "\n" for each in triplets[1:]
    )
    (tmp_path / "pairs.jsonl").write_text(rows, encoding="utf-8")
    ranked = [{"query": TEXTS[n], "passages": TEXTS[n : n + 3], "scores": [2, 1, 0]}
              for n in range(24)]  # fmt: skip
    topics = [("text", "topic"), *((text, "ab"[n % 2]) for n, text in enumerate(TEXTS[:24]))]
    (tmp_path / "topics.csv").write_text(table(topics, ","))
    written = [{"text": TEXTS[n], "positive": TEXTS[n + 1 : n + 3],
                "negative": TEXTS[n + 3 : n + 5]} for n in range(24)]  # fmt: skip
    (tmp_path / "written.jsonl").write_text("\n".join(map(json.dumps, written)), encoding="utf-8")
    (tmp_path / "ranked.jsonl").write_text("\n".join(map(json.dumps, ranked)), encoding="utf-8")
    articles = [
        {"id": str(n), "title": f"About {n}", "paras": [TEXTS[4 * n : 4 * n + 4]]} for n in range(9)
    ]
    for name in ("articles.jsonl", "titles.jsonl", "news.dev.jsonl"):
        lines = "".join(json.dumps(each) + "\n" for each in articles)
        (tmp_path / name).write_text(lines, encoding="utf-8")
    (tmp_path / "runs").mkdir()
    for name in ("simcse", "infocse"):
        (tmp_path / "runs" / name).symlink_to(shared_encoder())
    monkeypatch.chdir(tmp_path)
    rows = list(islice(StarterCorpus().rows("starter", Wanted()), 500))
    monkeypatch.setattr(StarterCorpus, "rows", lambda self, *given: iter(rows))
    return tmp_path


def runnable(page: str) -> list[list[str]]:
    """Return a page's commands; those of a hub or of the starter's large set are out.

    MODEL, for which the reader puts an encoder of theirs, is the starter.
    """
    hub = ("bert-base-", "roberta-", "bert-large-")
    return [
        ["starter" if word == "MODEL" else word for word in words]
        for block in Page(DOCS / page).blocks()
        for words in block.commands()
        if words[0] == "cse" and "starter" not in words[3:]
        if not any(word.startswith(hub) for word in words)
    ]


def test_quickstart_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in runnable("quickstart.md"):
        if "--resume" in words:  # as if it had been killed before its end
            (folder / words[3] / "result.json").unlink()
        elif words[1] == "train":
            own = () if {"--dev", "--help-all"} & {*words} else ("--dev", "none")
            tiny = ("--model", str(shared_encoder())) if "--data" in words else ()
            words = [*words, *CHEAP, *own, *tiny]
        code = run(words[1:])
        printed = capsys.readouterr()
        assert code == 0, f"{' '.join(words)}\n{printed.out}{printed.err}"
    assert (folder / "vectors.npy").is_file()
    assert (folder / "runs/again/model/model.safetensors").is_file()
    from sentence_transformers import SentenceTransformer

    assert SentenceTransformer(str(folder / "runs/mine/model"), device="cpu").encode(["a"]).any()


def test_the_plan_that_combine_shows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = Page(DOCS / "combine.md")
    shown = [block.text for block in page.blocks() if block.kind == "text"]
    (plan,) = (text for text in shown if text.startswith("views:"))
    (command,) = (words for words in runnable("combine.md") if "--branch.ema.decay" in words)
    assert run([*command[1:], "--data", "texts.txt"]) == 0
    assert plan in capsys.readouterr().out


METHODS = [f"methods/{each.name}" for each in sorted((DOCS / "methods").glob("*.md"))]


@pytest.mark.parametrize("page", ["combine.md", "recipes.md", "security.md", *METHODS])
def test_commands_of_other_pages(
    page: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(Page(DOCS / page).blocks(), folder)
    for words in runnable(page):
        if words[1] == "study":  # plugins/study plans every study
            assert words[2] in Installed().studies
        if words[1] in ("study", "iscse") or "runs/latest" in words:
            continue
        if words[1] == "train" and not {"--dry-run", "--help-all"} & {*words}:
            words = [*words, "--dry-run"]
        if words[1] == "train" and not {"--data", "--recipe"} & {*words[2:]}:
            words = [*words, "--data", "texts.txt"]
        code = run(words[1:])
        printed = capsys.readouterr()
        assert code == 0, f"{' '.join(words)}\n{printed.out}{printed.err}"
        assert "has no effect without a dev set" not in printed.out, " ".join(words)


@pytest.mark.slow
def test_many_processes_as_lifecycle_shows(folder: Path) -> None:
    page = Page(DOCS / "lifecycle.md")
    (words,) = (line for block in page.blocks() for line in block.commands() if "torchrun" in line)
    short = ["--data", "texts.txt", "--dev", "none", "--out", "runs/two", *CHEAP]
    tools = Path(sys.executable).parent
    done = subprocess.run(
        [str(tools / words[0]), *words[1:], *short],
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "runs/two/model/model.safetensors").is_file()
