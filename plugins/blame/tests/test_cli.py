"""``cse blame`` from beginning to end."""

import hashlib
import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from cse_blame.cli import blame as command
from cse_blame.products import Pair
from cse_blame.proof import Again
from cse_blame.replay import Segment, segments

import cse as toolkit
from cse_cli.api import Installed
from tests.fixtures.command_line import Cse, refused
from tests.fixtures.tiny import WORDS

DRAWS = random.Random(3)
TEXTS = [" ".join(DRAWS.choices(WORDS[:-10], k=6)) for _ in range(32)]
QUERY, DOCUMENT, AWAY = (
    " ".join(DRAWS.choices(words, k=6)) for words in (WORDS[-5:], WORDS[-10:-5], WORDS[:-10])
)
"""The first two have words that only the planted row has."""
PLANTED = 5
"""Row whose positive makes the query and the document similar."""
OPTIONS = {
    "train.batch_size": 4, "train.device": "cpu", "train.precision": "fp32", "train.threads": 1,
    "train.lr": 1e-3, "train.epochs": 2, "train.save_steps": 2, "model.dropout": 0.0,
    "model.max_length": 32,
}  # fmt: skip


def rows() -> list[dict[str, str]]:
    made = [{"text": TEXTS[n], "positive": TEXTS[n + 12], "title": f"title {n}"} for n in range(12)]
    made[PLANTED] |= {"text": QUERY, "positive": DOCUMENT}
    return made


@pytest.fixture(scope="module")
def kept(encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six steps with a planted row; tests change copies of it alone."""
    folder = tmp_path_factory.mktemp("kept")
    path = folder / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows())))
    chosen: dict[str, Any] = {"model": encoder, "data": path, "dev": "none", "options": OPTIONS}
    return toolkit.train("pairs", out=folder / "run", quiet=True, **chosen).folder


@pytest.fixture
def run(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "run"))


def everything(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert re.search(old, text), text
    path.write_text(re.sub(old, new, text, count=1))


def blamed(cse: Cse, *words: str) -> dict[str, Any]:
    printed = cse("blame", *words, "--json")
    assert (printed.code, printed.err) == (0, "")
    value: dict[str, Any] = json.loads(printed.out)
    return value


def test_a_planted_row_is_first_and_training_without_it_confirms_it(cse: Cse, run: Path) -> None:
    before = everything(run)
    value = blamed(cse, str(run), QUERY, DOCUMENT, "--top", "3", "--prove", "1",
                   "--controls", "3")  # fmt: skip
    assert everything(run) == before
    first = value["raised"][0]
    assert first["row"] == PLANTED and first["share"] > 0.2
    assert first["columns"] == {"text": QUERY, "positive": DOCUMENT, "title": "title 5"}
    with toolkit.Session(toolkit.open_run(run)) as session:
        batches = [session.batch(step).tolist() for step in range(6)]
    assert first["steps"] == [n + 1 for n, batch in enumerate(batches) if PLANTED in batch]
    assert len(first["steps"]) == 2
    assert value["rows"] == 12 and value["steps"] == 6 and abs(value["rest"]) < 1e-3
    assert [row["moved"] for row in value["raised"]] == sorted(
        (row["moved"] for row in value["raised"]), reverse=True
    )
    assert all(row["moved"] < 0 for row in value["lowered"])
    assert value["lowered"][0]["moved"] <= value["lowered"][-1]["moved"]
    assert [(at["step"], at["steps"]) for at in value["checkpoints"]] == [
        (0, [1, 2]), (4, [3, 5]), (6, [6, 6])
    ]  # fmt: skip
    model = toolkit.load(run).encode([QUERY, DOCUMENT])
    wanted = float(toolkit.similarities("cosine", model[:1], model[1:])[0, 0])
    assert value["end"] == pytest.approx(wanted, abs=1e-5)
    proof = value["proof"]
    assert proof["repeats"] and proof["again"] == value["end"]
    assert proof["raised"]["rows"] == [PLANTED] and proof["raised"]["confirmed"]
    assert proof["raised"]["change"] == proof["raised"]["without"] - proof["again"] < -0.02
    assert len(proof["controls"]) == len(proof["changes"]) == 3
    assert max(map(abs, proof["changes"])) < -proof["raised"]["change"]
    assert value["start"] < value["end"]
    assert value["moved"] == pytest.approx(value["end"] - value["start"], rel=0.6)


def test_what_is_shown(cse: Cse, run: Path) -> None:
    printed = cse("blame", str(run), QUERY, DOCUMENT, "--top", "2", "--prove", "1",
                  "--controls", "1")  # fmt: skip
    assert printed.code == 0, printed.err
    lines = printed.out.splitlines()
    assert re.fullmatch(r"cosine: 0\.\d{4} at the start, 0\.\d{4} in the run", lines[0])
    assert re.fullmatch(r"  steps 1-2 by the weights of the start, where it is 0\.\d{4}", lines[1])
    assert re.fullmatch(r"  step 6 by the weights of step 6, where it is 0\.\d{4}", lines[3])
    assert re.fullmatch(
        r"12 rows in 6 batches, which moved it by \+0\.\d{4} to first order", lines[4]
    )
    assert lines[5].startswith("raised it most, as shares of what all rows moved it")
    place = 5
    assert re.fullmatch(rf"  \+\d+\.\d\d%  row {PLANTED}, steps \d, \d", lines[place + 1])
    assert lines[place + 2] == f"    text: {QUERY}"
    assert lines[place + 4] == f"    title: title {PLANTED}"
    assert re.search(r"without the row that raised it most: .* \(-0\.\d+\), confirmed", printed.out)
    assert re.search(r"with all rows: 0\.\d+, as in the run", printed.out)
    assert re.search(r"without as many random rows: 0\.\d+ \([-+]0\.\d+\)", printed.out)


def test_a_claim_that_does_not_hold_is_said(
    cse: Cse, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(again: Again, rows: tuple[int, ...]) -> float:
        return 0.5 + (0.1 if 5 in rows else 0.02 if len(rows) else 0.0)

    monkeypatch.setattr(Again, "without", without)
    printed = cse("blame", str(run), QUERY, DOCUMENT, "--top", "2", "--prove", "1")
    assert "not as in the run" in printed.out
    assert "(+0.1000), NOT confirmed: it did not fall" in printed.out
    assert "(+0.0200), NOT confirmed: random rows change it as much" in printed.out
    printed = cse("blame", str(run), QUERY, DOCUMENT, "--top", "1", "--prove", "2")
    assert "without the 2 rows that raised it most" in printed.out
    assert len(re.findall(r"  [-+]\d+\.\d\d%  row", printed.out)) == 2


def test_python_gives_what_the_command_prints(cse: Cse, run: Path) -> None:
    from cse_blame.blaming import blame

    made = blame(None, run, QUERY, DOCUMENT, top=2)
    assert json.loads(json.dumps(made.to_json())) == blamed(
        cse, str(run), QUERY, DOCUMENT, "--top", "2"
    )
    assert command.__doc__


def test_a_run_that_cannot_be_blamed_is_refused(cse: Cse, run: Path, tmp_path: Path) -> None:
    words = (QUERY, DOCUMENT)
    refused(cse("blame", str(tmp_path / "no"), *words), "is not a run")
    refused(cse("blame", str(run), " ", DOCUMENT), "QUERY", "is blank")
    refused(cse("blame", str(run), QUERY, QUERY), "no trained weight changes their similarity")
    refused(cse("blame", str(run), *words, "--update", "adam"), "--update", "did you mean adamw")
    printed = cse("blame", str(run), *words, "--prove", "6", "--json")
    refused(printed, "to draw random ones from", "--prove")
    refused(cse("blame", str(run), *words, "--controls", "3"), "--controls", "--prove N")
    assert cse("blame", str(run), *words, "--top", "0").code == 2
    result = (run / "result.json").read_text()
    (run / "result.json").unlink()
    refused(cse("blame", str(run), *words), "is unfinished", "cse train --resume")
    edited = json.loads(result) | {"chosen_by": "x.spearman", "step": 0}
    (run / "result.json").write_text(json.dumps(edited))
    refused(cse("blame", str(run), *words), "kept the weights of its start")
    (run / "result.json").write_text(json.dumps(edited | {"step": 3}))
    refused(cse("blame", str(run), *words), "the checkpoint of the chosen step 3 is gone")
    (run / "result.json").write_text(result)
    settings = (run / "run.toml").read_text()
    edit(run / "run.toml", "processes = 1", "processes = 2")
    refused(cse("blame", str(run), *words), "was trained in 2 processes")
    (run / "run.toml").write_text(settings)
    for step in (4, 6):
        shutil.rmtree(run / f"checkpoints/step-{step}")
    refused(cse("blame", str(run), *words), "kept no checkpoints", "--train.keep_checkpoints true",
            "--train.save_steps")  # fmt: skip


def test_data_or_a_model_that_changed_is_refused(cse: Cse, run: Path, tmp_path: Path) -> None:
    settings = (run / "run.toml").read_text()
    edit(run / "run.toml", '("?model.name: config.json"? = ")....', r"\g<1>0000")
    refused(cse("blame", str(run), QUERY, DOCUMENT), "has changed since", "model.name: config.json")
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows()[::-1])))
    (run / "run.toml").write_text(settings)
    edit(run / "run.toml", r'path = \[\s*"[^"]*"', f'path = ["{path}"')
    refused(cse("blame", str(run), QUERY, DOCUMENT), "the data has changed", "data.path")


def test_the_chosen_step_ends_what_is_replayed(cse: Cse, run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    changed = result | {"chosen_by": "x.spearman", "step": 4}
    (run / "result.json").write_text(json.dumps(changed))
    value = blamed(cse, str(run), QUERY, DOCUMENT)
    assert value["steps"] == 4
    assert [(at["step"], at["steps"]) for at in value["checkpoints"]] == [(0, [1, 2]), (4, [3, 4])]


def test_rounds_are_replayed_where_checkpoints_are_and_not_proved(
    cse: Cse, encoder: str, tmp_path: Path
) -> None:
    path = tmp_path / "articles.jsonl"
    with path.open("w") as out:
        for n in range(4):
            body = [["a", TEXTS[7 * n : 7 * n + 7]]]
            out.write(json.dumps({"id": n, "title": f"t{n}", "sections": body}) + "\n")
    options = OPTIONS | {"model.max_length": 48, "train.epochs": 1, "train.max_steps": 4}
    chosen: dict[str, Any] = {"model": encoder, "data": path, "dev": "none", "options": options}
    run = str(toolkit.train("inverse-cloze", out=tmp_path / "run", quiet=True, **chosen).folder)
    value = blamed(cse, run, QUERY, DOCUMENT, "--top", "1")
    assert value["start"] is None
    assert {at["round"] for at in value["checkpoints"]} == {1}
    row = value["raised"][0]
    assert row["round"] == 1 and {"text", "positive"} <= row["columns"].keys()
    assert f"of round {row['round']}" in cse("blame", run, QUERY, DOCUMENT, "--top", "1").out
    refused(cse("blame", run, QUERY, DOCUMENT, "--prove", "1"), "makes rounds", "--prove")


def test_each_step_goes_to_the_nearest_checkpoint_of_its_round() -> None:
    assert segments([(0, 0), (0, 8), (0, 12)], (0, 12)) == [
        Segment((0, 0), 0, 4), Segment((0, 8), 4, 10), Segment((0, 12), 10, 12)
    ]  # fmt: skip
    assert segments([(0, 0), (0, 5), (0, 9)], (0, 5)) == [
        Segment((0, 0), 0, 3), Segment((0, 5), 3, 5)
    ]  # fmt: skip
    assert segments([(1, 4), (2, 0), (2, 2), (2, 6)], (2, 2)) == [
        Segment((1, 4), 0, 4), Segment((2, 0), 0, 1), Segment((2, 2), 1, 2)
    ]  # fmt: skip


def test_a_batch_without_other_rows_is_left_out(run: Path) -> None:
    again = Again(run, Installed(), Pair(QUERY, AWAY, "cosine"), 6)
    assert again.seen == list(range(12))
    with toolkit.Session(toolkit.open_run(run)) as session:
        first = session.batch(0).tolist()
    one, same = again.without(first), again.without(first)
    assert one == same != again.without(())
    with again.trained(first) as session:
        assert session.done == 6, "the step behind one that is not made is what it was"
