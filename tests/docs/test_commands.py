"""Every ``cse`` command line of the docs parses, and those of the quickstart run."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from cse_testkit.tiny import shared_encoder

from cse_cli.main import build_app, run
from cse_cli.options import flags
from cse_cli.plugins.installed import Installed
from cse_cli.training import choosing
from cse_core.recipes.settings import CORE_OPTIONS, ViewOptions
from tests.docs.pages import DOCS, Page, pages

EXAMPLE = "count-words"
"""The command that docs/authors.md makes: its lines run in tests/docs/test_authors.py."""
LINES = [
    (page.name, words)
    for page in pages()
    for block in page.blocks()
    for words in block.commands()
    if words[0] == "cse" and words[1] != EXAMPLE
]
INLINE = re.compile(r"`(cse [a-z][^`\n]*)`")
MENTIONED = [
    (page.name, shlex.split(found))
    for page in pages()
    for found in INLINE.findall(page.prose())
    if "…" not in found
]


def parse(words: Sequence[str]) -> None:
    """Parse a command line as ``cse`` does, down to the last flag, without running it."""
    rest, left_out = flags.take_no_plugin(words[1:])
    installed = Installed(left_out)
    chosen = installed.commands.chosen(rest)
    rest, topic = choosing.take_topic(rest, chosen)
    rest = choosing.with_settings(rest, chosen)
    command: Any = typer.main.get_command(build_app(rest, installed, topic))
    name = "cse"
    while True:
        try:
            context = command.make_context(name, list(rest))
        except typer.Exit:
            return
        if not hasattr(command, "resolve_command"):
            return
        rest = [*getattr(context, "_protected_args", []), *context.args]
        name, command, rest = command.resolve_command(context, rest)


@pytest.mark.parametrize(("page", "words"), LINES, ids=lambda value: str(value)[:80])
def test_command_line_parses(page: str, words: list[str]) -> None:
    parse(words)


@pytest.mark.parametrize(("page", "words"), MENTIONED, ids=lambda value: str(value)[:80])
def test_command_in_the_text_exists(page: str, words: list[str]) -> None:
    try:
        parse(words)
    except Exception as error:
        assert "missing" in str(error).lower(), error


def test_parse_notices_mistakes() -> None:
    for line in ("cse train --recipee x", "cse data lisst", "cse trian", "cse eval"):
        with pytest.raises(Exception, match=r"(?i)no such|missing"):
            parse(line.split())


@pytest.mark.parametrize(("page", "words"), LINES, ids=lambda value: str(value)[:80])
def test_core_options_in_command_lines_exist(page: str, words: list[str]) -> None:
    sets = flags.peek(words[1:]).sets
    for path in (text.partition("=")[0] for text in sets):
        head, _, rest = path.partition(".")
        if head in CORE_OPTIONS:
            assert rest.split(".")[0] in CORE_OPTIONS[head].model_fields, path
        if head == "views":
            assert rest.split(".")[1] in ViewOptions.model_fields, path


# -- pages whose commands run ---------------------------------------------------------------------

WORDS = ("harbour", "library", "market", "garden", "station", "museum", "bakery", "bridge")
TEXTS = [f"The {one} is near the old {two}." for one in WORDS for two in WORDS if one != two]
CHEAP = ("--train.precision", "fp32", "--train.max_steps", "3", "--train.batch_size", "8")


def write(path: Path, head: Sequence[str], rows: Sequence[Sequence[object]], mark: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=mark)
        writer.writerows([head, *rows])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the pages speak of."""
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    pairs = [(TEXTS[i], TEXTS[i + 1], i % 6) for i in range(24)]
    write(tmp_path / "pairs.tsv", ("sentence1", "sentence2", "score"), pairs, "\t")
    (tmp_path / "sts").mkdir()
    write(tmp_path / "sts/stsb.test.tsv", ("sentence1", "sentence2", "score"), pairs, "\t")
    triplets = [(TEXTS[i], TEXTS[i + 1], TEXTS[i + 2]) for i in range(24)]
    write(tmp_path / "triplets.csv", ("text", "positive", "negative"), triplets, ",")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def runnable(page: str) -> list[list[str]]:
    """Return a page's commands, made short; those of a hub or of the large made-up set are out.

    MODEL, for which the reader puts an encoder of theirs, is the starter.
    """
    found = []
    for block in Page(DOCS / page).blocks():
        for words in block.commands():
            if words[0] != "cse" or "bert-base-uncased" in words or "starter" in words[3:]:
                continue
            words = ["starter" if word == "MODEL" else word for word in words]
            if words[1] == "train" and "--resume" not in words:
                own = () if {"--dev", "--help"} & set(words) else ("--dev", "none")
                words = [*words, *CHEAP, *own]
            found.append(words)
    return found


def test_quickstart_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in runnable("quickstart.md"):
        if words[:2] == ["cse", "train"] and "--resume" in words:
            interrupted(folder / words[3])
        code = run(words[1:])
        printed = capsys.readouterr()
        assert code == 0, f"{' '.join(words)}\n{printed.out}{printed.err}"
    assert (folder / "vectors.npy").is_file()
    assert (folder / "runs/again/model/model.safetensors").is_file()
    from sentence_transformers import SentenceTransformer

    assert SentenceTransformer(str(folder / "runs/mine/model"), device="cpu").encode(["a"]).any()


def interrupted(run_folder: Path) -> None:
    """Make a finished run look as if it had been killed before its end."""
    (run_folder / "result.json").unlink()


def test_the_plan_and_the_refusal_that_combine_shows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Page(DOCS / "combine.md")
    shown = [block.text for block in page.blocks() if block.kind == "text"]
    (plan,) = (text for text in shown if text.startswith("views:"))
    (refusal,) = (text for text in shown if text.startswith("error:"))
    (command,) = (words for words in runnable("combine.md") if "--branch.ema.decay" in words)
    assert run([*command[1:], "--data", "texts.txt"]) == 0
    assert plan in capsys.readouterr().out
    recipe = ["train", "--recipe", "simcse-supervised", "--data", "texts.txt", "--dry-run"]
    assert run(recipe) == 2
    assert refusal in capsys.readouterr().err


def test_dry_runs_of_the_other_pages(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = 0
    methods = [f"methods/{each.name}" for each in sorted((DOCS / "methods").glob("*.md"))]
    for page in ("combine.md", "recipes.md", "security.md", *methods):
        for words in runnable(page):
            needs_a_run = words[1] == "neighbours" or words[1] == "train"
            if needs_a_run and "--dry-run" not in words:
                continue
            if words[1] == "study" and "--list" not in words:
                words = [*words[:3], "--dry-run"]  # its encoder and texts are the reader's
            code = run(words[1:])
            printed = capsys.readouterr()
            assert code == 0, f"{page}: {' '.join(words)}\n{printed.out}{printed.err}"
            count += 1
    assert count >= 8


HUB = ("bert-base-", "roberta-", "bert-large-")
METHODS = [
    (name, words) for name, words in LINES if "methods/" in name and words[:2] == ["cse", "train"]
]


@pytest.fixture
def stand_ins(folder: Path) -> Path:
    """The folder with small files and runs of the names that the pages of methods give theirs."""
    texts = folder / "texts.txt"
    (folder / "wiki.txt").write_text(texts.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "stsb.dev.tsv").write_bytes((folder / "pairs.tsv").read_bytes())
    articles = [
        {"id": str(n), "title": f"About {n}", "paras": [TEXTS[4 * n : 4 * n + 4]]} for n in range(9)
    ]
    for name in ("articles.jsonl", "titles.jsonl", "news.dev.jsonl"):
        lines = "".join(json.dumps(each) + "\n" for each in articles)
        (folder / name).write_text(lines, encoding="utf-8")
    (folder / "runs").mkdir()
    for name in ("simcse", "infocse"):
        (folder / "runs" / name).symlink_to(shared_encoder())
    return folder


@pytest.mark.parametrize(("page", "words"), METHODS, ids=lambda value: str(value)[:80])
def test_training_on_the_pages_of_methods_has_a_plan(
    page: str, words: list[str], stand_ins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if any(word.startswith(HUB) for word in words):
        pytest.skip("its model is on the hub")
    dry = [] if "--dry-run" in words else ["--dry-run"]
    code = run([*words[1:], *dry])
    printed = capsys.readouterr()
    assert code == 0, f"{' '.join(words)}\n{printed.err}"
    assert "has no effect without a dev set" not in printed.out, f"{' '.join(words)}\n{printed.out}"


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
