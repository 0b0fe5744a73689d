"""A user's mistakes: one line that says what to do, exit code 2, nothing left or written over."""

import os
from pathlib import Path

import pytest

from cse import CseError, evaluate
from tests.fixtures.command_line import Cse, refused
from tests.fixtures.distributions import Distributions, loss, plugin

FILES: dict[str, bytes] = {
    "ok.txt": b"one\ntwo\nthree\n",
    "blank.txt": b"\n  \n\n",
    "latin.txt": b"caf\xe9\nbar\n",
    "two.tsv": b"foo\tbar\na\tb\n",
    "columns.tsv": b"text\tother\na\tb\n",
    "empty.tsv": b"text\tpositive\tnegative\n" + b"a b\tc d\t\n" * 3 + b"e\tf\tg\n",
    "dev.tsv": b"sentence1\tsentence2\tscore\na\tb\t4\na\tc\t1\nb\tc\t5\n",
    "titles.tsv": b"text\tdocument\ttitle\na\t1\tb\nc\t2\td\n",
    "positives.tsv": b"text\tpositives\na cat\tcats are here\na dog\tdogs are there\n",
    "no.toml": b"[train\n",
}
CHOICES = [
    ("--seed abc", "train.seed", "integer"),
    ("--train.lr -1", "train.lr", ">= 0"),
    ("--recipe no.toml", "not valid TOML"),
    ("--data latin.txt", "latin.txt, line 1", "not UTF-8", "iconv"),
    ("--data columns.tsv --set data.columns.positive=textt", "textt"),
    (
        "--data positives.tsv --views.positive.column positives",
        "views.positive.column: the file's "
        "column 'positives' is read as 'positive'; --views.positive.column positive",
    ),
    ("--model ./nothere", "./nothere", "no such folder"),
    ("--recipe hicl-sncse --pool.segments.wrap sentence", "pool.segments", "pool.mask-prompt"),
    ("--dev nothing.tsv", "no such file"),
    ("--dev ok.txt", "graded or labelled rows are not read"),
    ("--dev dev.tsv --train.select other", "not a dev score"),
    ("--out .", "holds other things"),
    ("--negatives hard-negatives --data empty.tsv --data.blank refuse", "column negative"),
]
"""What ``train`` refuses in the same words with ``--dry-run`` and without."""
RUNS = [
    ("--data ok.txt --out ok.txt/run", "--out", "ok.txt is a file"),
    ("--data ok.txt --out ok.txt", "--out", "ok.txt is a file"),
    ("--data ok.txt --dry-run --save-recipe ok.txt/x.toml", "--save-recipe", "cannot be written"),
    ("--data ok.txt --dev columns.tsv", "columns.tsv", "sentence1"),
    (
        "--data ok.txt --dev titles.tsv --no-plugin evaluation",
        "titles.tsv",
        "suite sts or retrieval",
        "cse-evaluation",
        "blocked",
    ),
    ("--data ok.txt --train.device gpu", "train.device", "gpu"),
    ("--data ok.txt --train.precision fp8 --train.device cpu", "train.precision", "fp8"),
    (
        "--recipe sncse --model.max_length 8 --data ok.txt --dev none --train.device cpu",
        "model.max_length",
        "nothing is left for the text",
        "use at least",
    ),
    ("--resume folder", "--resume", "folder", "no run"),
    ("--resume nothere", "--resume", "nothere", "no run"),
    ("--resume ok.txt", "--resume", "no run"),
    ("--resume folder --loss infonce", "--resume", "--loss"),
    ("--resume damaged", "run.toml"),
]
USES = [
    ("eval ./nothere", "MODEL", "./nothere"),
    ("eval folder", "MODEL", "config.json"),
    ("eval ok.txt", "MODEL", "ok.txt"),
    ("eval starter --pairs ok.txt", "ok.txt", ".tsv"),
    ("eval starter --pairs columns.tsv", "sentence1"),
    ("eval starter --pooling max", "--pooling", "max", "cls"),
    ("eval starter --max-length 600", "--max-length", "512"),
    ("eval starter --data strater", "--data", "strater", "starter"),
    ("eval starter --pairs-out ok.txt/x.tsv", "ok.txt/x.tsv"),
    ("eval starter --device gpu", "--device", "gpu"),
    ("eval starter --precision fp17", "--precision", "fp17"),
    ("encode starter blank.txt", "blank.txt", "blank lines"),
    ("encode starter latin.txt", "latin.txt, line 1", "not UTF-8"),
    ("encode starter two.tsv", "two.tsv", "--set data.columns.text=NAME"),
    ("encode starter ok.txt --set data.limit=3", "--set", "data.limit=3", "data.columns.text=NAME"),
    ("encode starter ok.txt --set data.columns.text=c", "no file has a column c"),
    ("encode starter --text hi --set data.columns.text=c", "no file has a column c"),
    ("encode starter ok.txt --out ok.txt/v.npy", "--out", "cannot be written"),
    ("encode starter ok.txt --out v.bin", "--out", ".npy"),
    ("encode starter latin.txt --out v.npy", "not UTF-8"),
    ("encode starter ok.txt --batch-tokens 0", "--batch-tokens"),
    ("search starter query --data ok.txt --top 0", "--top"),
    (
        "search starter query --data columns.tsv --set data.columns.text=c",
        "data.columns.text",
        "no file has a column c",
    ),
    ("data stats ok.txt --unit word", "--unit", "sentence"),
    ("data stats ok.txt --model nothere", "--model", "starter"),
    ("data fetch starter", "starter", "owner/name"),
    ("data fetch ../work", "../work", "owner/name"),
    ("data fetch owner/name --out ok.txt/x.parquet", "--out"),
    ("data fetch owner/name --out x.docx", "--out", ".jsonl"),
]


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    for name in ("folder", "damaged"):
        (folder / name).mkdir(parents=True)
    (folder / "damaged" / "run.toml").write_text("[[[")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    monkeypatch.chdir(folder)
    return folder


def everything(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def test_a_mistake_is_one_line_and_leaves_nothing(cse: Cse, bad: Path) -> None:
    before = everything(bad)
    for words, *said in CHOICES:
        given = words.split() if "--data" in words else ["--data", "ok.txt", *words.split()]
        run, dry = cse("train", *given), cse("train", "--dry-run", *given)
        for each in (run, dry):
            refused(each, *said)
        assert dry.err == run.err.replace(f"{bad}/", ""), "a run has its paths in full"
    for words, *said in RUNS:
        refused(cse("train", *words.split()), *said)
    for words, *said in USES:
        refused(cse(*words.split()), *said)
    assert everything(bad) == before


def test_a_part_that_two_plugins_bring(cse: Cse, bad: Path, distributions: Distributions) -> None:
    distributions.with_defaults()
    for name in ("cse-one", "cse-two"):
        distributions.add(name, plugin(loss("same")))
    refused(
        cse("train", "--dry-run", "--model", "nothere", "--data", "ok.txt", "--loss", "same"),
        "more than one loss", "write cse-one:one/same or cse-two:two/same",
    )  # fmt: skip


def test_a_bug_keeps_its_traceback(cse: Cse, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("cse_core.registry.manager.load_plugins", explode)
    with pytest.raises(RuntimeError, match="a bug"):
        cse("list-plugins")


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
        ("train --data p.tsv?quotes=no --dry-run --save-recipe p.tsv", read),
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
    words = ("--pairs", "p.tsv", "--no-baselines", "--pairs-out", "x.tsv")
    assert cse("eval", "starter", *words).code == 0
    assert Path("x.tsv").is_file() and before == {p: p.read_bytes() for p in before}
