"""Chinese texts and pairs through the commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fixtures.command_line import Cse, refused

THINGS = "狗猫船树花鸟车门"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the suite's form, 0/1 pairs and a parallel file."""
    (tmp_path / "chinese").mkdir()
    graded = [f"{i % 5}\t一只{t}在那里\t那里有{t}吗" for i, t in enumerate(THINGS)]
    lines = ["score\tsentence1\tsentence2", *graded]
    (tmp_path / "chinese" / "cstsb.test.tsv").write_text("\n".join(lines) + "\n")
    labelled = [f"{t}好看吗\t{t}好不好看\t{i % 2}" for i, t in enumerate(THINGS)]
    lines = ["text_a\ttext_b\tlabel", *labelled]
    (tmp_path / "lcqmc.dev.tsv").write_text("\n".join(lines) + "\n")
    lines = ["zh\ten", *(f"一只{t}在这里。\there is one thing" for t in THINGS)]
    (tmp_path / "parallel.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_suite_and_labelled_pairs_are_scored(cse: Cse, folder: Path) -> None:
    said = cse("eval", "starter", "--suite", "chinese", "--data-dir", str(folder), "--pairs",
               str(folder / "lcqmc.dev.tsv"), "--json")  # fmt: skip
    answer = json.loads(said.out)
    assert set(answer["results"]) == {"cstsb.test", "lcqmc.dev"}
    assert answer["missing"] == ["cstsb.dev"]
    for result in answer["results"].values():
        assert result["lexical"]["units"] == "character 1-2-grams"
    assert answer["results"]["lcqmc.dev"]["binary"]["positives"] == 4
    assert "binary" not in answer["results"]["cstsb.test"]
    refused(cse("eval", "starter", "--suite", "chinse"), "did you mean chinese?")


def test_labelled_pairs_choose_a_checkpoint(cse: Cse, folder: Path) -> None:
    out = folder / "run"
    said = cse("train", "--data", str(folder / "parallel.tsv"), "--set", "data.columns.text=zh",
               "--dev", str(folder / "lcqmc.dev.tsv"), "--train.max_steps", "2",
               "--train.batch_size", "4", "--train.eval_steps", "1", "--out", str(out))  # fmt: skip
    assert said.code == 0, said.err
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert all("lcqmc.dev.average_precision" in line for line in lines)
    assert "by lcqmc.dev.spearman" in said.err + said.out


def test_stats_and_show(cse: Cse, folder: Path) -> None:
    zh = folder / "zh.jsonl"
    rows = [{"text": f"一只{t}在这里。", "fraternal": f"here is {t}"} for t in THINGS]
    zh.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n")
    said = json.loads(cse("data", "stats", str(zh), "--json").out)
    assert said["words_mean"] is None and said["characters_mean"] == 7
    assert said["others"] == {"fraternal": {"words_mean": 3.0, "characters_mean": 9.0}}
    text = cse("data", "stats", str(zh)).out
    assert "written without spaces" in text and "3.0 words, 9.0 characters" in text
    shown = cse("data", "show", str(folder / "parallel.tsv"), "--rows", "1")
    assert "  text: here is one thing\n  fraternal: 一只狗在这里。" in shown.out


def test_a_sentence_is_no_header(cse: Cse, folder: Path) -> None:
    path = folder / "lone.tsv"
    path.write_text("\n".join(f"一只{t}在这里看着我" for t in THINGS) + "\n")
    refused(cse("data", "stats", str(path)), "the first line is not a header")
    path.write_text("\n".join(["句子", *(f"一只{t}在这里看着我" for t in THINGS)]) + "\n")
    assert cse("data", "stats", str(path)).code == 0
