"""docs/authors.md: every hook has its section, and every example there is a plugin that works."""

import gzip
import json
import re
import runpy
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from cse_evaluation.pairs import find_pairs
from cse_testkit import PluginSuite, ReporterSuite, SuiteSuite, failures, shared_encoder, suite_of
from cse_testkit.promises import plugins_of
from cse_testkit.source_suite import SourceSuite

import cse
from cse_cli.api import Installed, load_texts
from cse_cli.main import run
from cse_cli.models.saved_model import load
from cse_core.hookspecs import HOOK_RECORDS
from cse_core.loading import load_factory
from cse_core.records import ComponentSpec
from cse_core.registry.manager import load_plugins
from cse_core.registry.registry import Registry
from tests.docs.pages import DOCS, Page, write_files
from tests.fixtures.packages import entry_points, installed

PAGE = Page(DOCS / "authors.md")
SECTIONS = {
    "cse_losses": ("A loss", 'use = "cse-dcl/decoupled"'),
    "cse_losses:lists": ("Lists of texts", 'lists = "all"'),
    "cse_augmenters": ("An augmenter", "rate = 0.2"),
    "cse_poolers": ("A pooler", 'use = "cse-max-pooling/max"'),
    "cse_transforms": ("A transform", 'use = "cse-centre/centre"'),
    "cse_positive_miners": ("A positive miner", 'name = "neighbours"'),
    "cse_negative_stores": ("A negative store", "size = 512"),
    "cse_samplers": ("A sampler", 'use = "cse-by-length/by-length"'),
    "cse_branches": ("A branch", "every = 2"),
    "cse_adapters": ("An adapter", 'name = "biases"'),
    "cse_metrics": ("A metric", 'use = "cse-norms/norms"'),
    "cse_models": ("An encoder", "max_length"),
    "cse_sources": ("A data set", 'path = ["weather"]'),
    "cse_sources:files": ("A format of files", 'notes.xlsx"]'),
    "cse_views": ("A view or a schedule", 'weight = "square(0.1,1)"'),
    "cse_schedules": ("A view or a schedule", 'target = "again"'),
    "cse_suites": ("An evaluation suite", ""),
    "cse_reporters": ("A reporter", 'report = ["notes:digits=1", "csv"]'),
    "commands": ("A command", ""),
}
"""The section of each hook, and what run.toml of its example has, where it trains."""
TEXTS = [
    f"The {one} {two} near the {place}."
    for one in ("old farmer", "young painter", "tired driver")
    for two in ("waits for the bus", "reads a long letter", "sings an old song")
    for place in ("harbour", "library", "market")
]
CHEAP = ("--train.precision", "fp32", "--train.batch_size", "9")
SHORT = ("--train.max_steps", "2", "--data", "texts.txt")
COMMANDS = {
    hook: [words for block in PAGE.blocks(section) for words in block.commands()]
    for hook, (section, _) in SECTIONS.items()
}


@contextmanager
def example(hook: str, folder: Path) -> Iterator[str]:
    """Install the example of a hook from its files, and yield the name of its distribution."""
    paths = write_files(PAGE.blocks(SECTIONS[hook][0]), folder)
    rows = [f"{a}\t{b}\t{s}" for a, b, s in zip(TEXTS, TEXTS[1:], [5, 0, 3, 1] * 9, strict=False)]
    triplets = ["\t".join(each) for each in zip(TEXTS, TEXTS[1:], TEXTS[9:], strict=False)]
    for name, lines in {
        "texts.txt": TEXTS,
        "pairs.tsv": ["sentence1\tsentence2\tscore", *rows],
        "triplets.test.tsv": ["anchor\tpositive\tnegative", *triplets],
    }.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    lists = [{"text": one, "answers": TEXTS[n : n + n % 3], "scores": [0.5] * (n % 3)}
             for n, one in enumerate(TEXTS[:24])]  # fmt: skip
    (folder / "answers.jsonl").write_text("\n".join(map(json.dumps, lists)), encoding="utf-8")
    write_workbook(folder / "notes.xlsx", ["id", "sentence"], list(enumerate(TEXTS)))
    grades = [(one, two, float(score)) for one, two, score in (row.split("\t") for row in rows)]
    write_workbook(folder / "grades.xlsx", ["sentence1", "sentence2", "score"], grades)
    package = next(path.name for path in sorted(folder.glob("cse_*")))
    (folder / package / "__init__.py").touch()
    name = package.replace("_", "-")
    own = any(path.endswith("pyproject.toml") for path in paths)
    points = entry_points(folder) if own else {"cse": {name[len("cse-") :]: f"{package}.plugin"}}
    with installed({name: folder}, points):
        plugins_of.cache_clear()
        yield name
    plugins_of.cache_clear()


def write_workbook(path: Path, *rows: Any) -> None:
    """Write a sheet as Excel does: texts stand in a table of their own."""
    header, body = rows
    texts = list(dict.fromkeys(c for row in [header, *body] for c in row if isinstance(c, str)))
    lines = []
    for number, row in enumerate([header, *body], 1):
        cells = [
            f'<c r="{letter}{number}" t="s"><v>{texts.index(cell)}</v></c>'
            if isinstance(cell, str)
            else f'<c r="{letter}{number}"><v>{cell}</v></c>'
            for letter, cell in zip("ABC", row, strict=False)
        ]
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    with ZipFile(path, "w") as book:
        book.writestr("xl/sharedStrings.xml", f"<sst {space}>{shared}</sst>")
        sheet = f"<worksheet {space}><sheetData>{''.join(lines)}</sheetData></worksheet>"
        book.writestr("xl/worksheets/sheet1.xml", sheet)


def run_commands(hook: str) -> None:
    for number, words in enumerate(COMMANDS[hook]):
        if words[0] == "cp":
            shutil.copytree(words[2], words[3])
        if words[0] != "cse":
            continue
        if words[1] == "train":
            words = [*words, *CHEAP, *(() if "--data" in words else SHORT)]
            words += () if "--model" in words else ("--model", str(shared_encoder()))
            words = words if "--out" in words else [*words, "--out", f"runs/{number}"]
        assert run(words[1:]) == 0, words


def registry() -> Registry:
    """Return the parts of the plugins as they are installed now, the example's too."""
    return Registry.from_plugins(load_plugins().infos)


@pytest.mark.parametrize("hook", SECTIONS)
def test_an_example(
    hook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with example(hook, tmp_path) as name:
        assert COMMANDS[hook]
        run_commands(hook)
        out, record = capsys.readouterr().out, None
        if hook != "commands":
            (info,) = (info for info in load_plugins().infos if info.distribution == name)
            spec = hook.partition(":")[0]
            assert (info.status, info.reason) == ("active", "") and spec in info.hooks
            record = next(each for each in info.parts if isinstance(each, HOOK_RECORDS[spec]))
            if isinstance(record, ComponentSpec):
                assert failures(suite_of(record.kind, record.name, registry())) == {}
        if text := SECTIONS[hook][1]:
            files = [p for p in tmp_path.glob("runs/*/run.toml") if p.parent.name != "latest"]
            done = [p for p in files if (p.parent / "model/model.safetensors").is_file()]
            assert any(text in file.read_text(encoding="utf-8") for file in done)
        if hook in MORE:
            MORE[hook](record, tmp_path, out)


def loss(record: Any, folder: Path, out: str) -> None:
    tests = runpy.run_path(str(folder / "cse_dcl/test_decoupled.py"))
    assert failures(tests["TestDecoupled"], ["equals_its_slow_version"]) == {}


def pooler(record: Any, folder: Path, out: str) -> None:
    from sentence_transformers import SentenceTransformer

    ours = load("runs/0", registry()).encode(TEXTS[:3])
    theirs = SentenceTransformer("runs/0/model", device="cpu").encode(TEXTS[:3])
    assert abs(ours - theirs).max() < 1e-5


def metric(record: Any, folder: Path, out: str) -> None:
    from cse_evaluation.pairs import read_pairs

    made = load_factory(record.factory)(
        record.options_class(), type("Named", (), {"name": "norms"})
    )
    numbers = made.compute(load("starter", registry()).encode, read_pairs("pairs.tsv"))
    assert numbers["mean"] > 0 and numbers["deviation"] >= 0


def suite(record: Any, folder: Path, out: str) -> None:
    assert re.search(r"triplets\.test +│ +\d+\.\d\d", out)
    assert re.search(r"triplets +│ triplets\.test +│ triplets\.test\.tsv", out)
    values = {"suite": "triplets", "folder": folder, "registry": registry()}
    assert failures(type("Suite", (SuiteSuite,), values)) == {}


def reporter(record: Any, folder: Path, out: str) -> None:
    notes = (folder / "runs/0/notes.md").read_text(encoding="utf-8")
    assert notes.startswith("# 0: batches of 9, seed 42\n- step ")
    lines = (folder / "runs/0/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    table = (folder / "runs/0/metrics.csv").read_text(encoding="utf-8").splitlines()
    assert len(table) == len(lines) + 1 and json.loads(lines[0])["step"]
    values = {"reporter": "notes", "options": {"digits": 3}, "registry": registry()}
    assert failures(type("Suite", (ReporterSuite,), values)) == {}


def command(record: Any, folder: Path, out: str) -> None:
    assert out.startswith(f"{sum(len(text.split()) for text in TEXTS)} words\n")
    suite = type("Suite", (PluginSuite,), {"distribution": "cse-count-words"})
    asked = ("it_is_active", "its_records_import_nothing_heavy", "its_commands_show_their_help")
    assert failures(suite, asked) == {}


def format_of_files(record: Any, folder: Path, out: str) -> None:
    assert f"row 1\n  text: {TEXTS[0]}\n  id: 0.0\n" in out
    assert len(np.load(folder / "notes.npy")) == len(TEXTS)
    columns, rows = cse.read_table("notes.xlsx")
    assert columns == ["id", "sentence"]
    assert next(rows) == ("notes.xlsx, row 2", {"id": 0.0, "sentence": TEXTS[0]})
    dev = json.loads((folder / "runs/2/metrics.jsonl").read_text("utf-8").splitlines()[-1])
    assert dev["grades.xlsx.spearman"]
    assert find_pairs("grades.xlsx").pairs[0].score == 5
    Path("notes.xlsx.gz").write_bytes(gzip.compress(Path("notes.xlsx").read_bytes()))
    assert load_texts("notes.xlsx.gz", Installed([])).column("text")[1] == TEXTS[1]
    values = {"source": "xlsx", "sample": "notes.xlsx", "registry": registry()}
    assert failures(type("Suite", (SourceSuite,), values)) == {}


MORE: dict[str, Callable[[Any, Path, str], None]] = {
    "cse_losses": loss,
    "cse_poolers": pooler,
    "cse_metrics": metric,
    "cse_sources:files": format_of_files,
    "cse_suites": suite,
    "cse_reporters": reporter,
    "commands": command,
}
"""What else is shown of an example: its record, its folder, and what its commands printed."""


def test_every_hook_has_an_example() -> None:
    assert {*HOOK_RECORDS} - {*SECTIONS} == {"cse_recipes", "cse_studies"}
