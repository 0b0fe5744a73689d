"""No output is an input: what a command reads is never written over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cse import CseError, evaluate
from tests.fixtures.command_line import Cse, refused

PAIRS = "sentence1\tsentence2\tscore\tnote\na b\ta c\t1\tx\na d\tb c\t3\ty\nred x\tred y\t5\tz\n"
LABELS = "label\ttext\n" + "good\tgreat text\nbad\tpoor words\n" * 10


def test_an_output_onto_an_input(cse: Cse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "p.tsv": PAIRS, "data/stsb.test.tsv": PAIRS, "labels.tsv": LABELS, "t.txt": "one\ntwo\n",
        "texts.jsonl": '{"text": "one"}\n', "recipe.toml": '[data]\npath = ["t.txt"]\n',
        "study.toml": 'summary = "S"\n[settings]\nrecipe = "simcse"\n', "run/run.toml": "",
        "run/metrics.jsonl": "", "run/model/config.json": "{}", "own/config.json": "{}",
        "fetched/fetched.json": "{}", "fetched/stsb.dev.tsv.gz": "",
    }.items():  # fmt: skip
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(content)
    os.symlink("p.tsv", "link.tsv")
    os.link("p.tsv", "hard.tsv")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    read, twice, owned = "is read by this command", "is named twice", "belongs to a run, a model"
    score = "eval starter --dry-run"
    for words, said in (
        (f"{score} --pairs p.tsv --pairs-out p.tsv", read),
        (f"{score} --pairs=p.tsv --pairs-out={tmp_path / 'p.tsv'}", read),
        (f"{score} --pairs p.tsv --pairs-out hard.tsv", read),
        (f"{score} --pairs link.tsv --pairs-out p.tsv", read),
        (f"{score} --pairs p.tsv --labelled labels.tsv --items-out labels.tsv", read),
        (f"{score} --pairs p.tsv --labelled labels.tsv --items-out x --pairs-out x", twice),
        (f"{score} --suite sts --data-dir data --pairs-out data/stsb.test.tsv", read),
        (f"{score} --pairs p.tsv --pairs-out fetched/stsb.dev.tsv.gz", owned),
        (f"{score} --pairs p.tsv --pairs-out run/model/config.json", owned),
        (f"{score} --pairs p.tsv --pairs-out own/config.json", owned),
        ("encode starter texts.jsonl --out texts.jsonl", twice),
        ("encode starter texts.jsonl -otexts.jsonl", twice),
        ("train --data t.txt --dry-run --save-recipe t.txt", read),
        ("train --data t.txt --dev p.tsv --dry-run --save-recipe p.tsv", read),
        ("train --recipe recipe.toml --dry-run --save-recipe t.txt", read),
        ("train --recipe recipe.toml --dry-run --save-recipe recipe.toml", twice),
        ("train --data t.txt --dry-run --save-recipe run/run.toml", owned),
        ("study study.toml --data sentences=t.txt --no-run --pack t.txt", twice),
        ("study study.toml --no-run --page study.toml", twice),
    ):
        refused(cse(*words.split()), said)
        assert before == {p: p.read_bytes() for p in before}, words
    with pytest.raises(CseError, match=read):
        evaluate("starter", pairs="p.tsv", pairs_out="hard.tsv", no_baselines=True)
    assert (
        cse("eval", "starter", "--pairs", "p.tsv", "--no-baselines", "--pairs-out", "x.tsv").code
        == 0
    )
    assert Path("x.tsv").is_file() and before == {p: p.read_bytes() for p in before}
