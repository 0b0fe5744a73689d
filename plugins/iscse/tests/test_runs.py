"""Runs with smoothed positives: both groups, the plan, the neighbours shown."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cse_iscse.neighbours import neighbours_of_run, of_point
from cse_testkit import Rig, compose, run_steps, tiny_corpus

from cse import open_run
from cse_cli.main import run as cse
from cse_core.errors import CseError
from cse_defaults.texts import Corpus
from cse_engine.run.checkpoint import Checkpoint
from tests.fixtures import methods
from tests.fixtures.methods import finished, refusal

BOTH = [
    "positives.knn-smoothing.size=12",
    "positives.knn-smoothing.k=3",
    "positives.kmeans-smoothing.size=12",
    "positives.kmeans-smoothing.clusters=4",
    "loss.clustered.target=kmeans-smoothing",
    "loss.clustered.weight=0.1",
]
CORPUS = Corpus.from_columns({"text": [*dict.fromkeys(tiny_corpus(60).column("text"))]})
KINDS: Any = {"positives": ["+kmeans-smoothing"], "loss": ["+infonce:clustered"]}


def test_both_groups_at_once_each_with_a_loss_of_its_own() -> None:
    """Batches of 4 fill 12 in the third step; clusters are there in the step after."""
    run = run_steps(KINDS, BOTH, "is-cse", steps=6)
    assert ["smoothed.loss" in each for each in run.scalars] == [False] * 2 + [True] * 4
    assert ["clustered.loss" in each for each in run.scalars] == [False] * 3 + [True] * 3
    for step, scalars in enumerate(run.scalars):
        total = scalars["infonce.loss"]
        for name in ("smoothed", "clustered"):
            total += 0.1 * scalars.get(f"{name}.loss", 0.0)
        assert run.losses[step] == pytest.approx(total, rel=1e-5)
    knn, kmeans = (run.session.parts[f"positives.{name}-smoothing"] for name in ("knn", "kmeans"))
    assert knn.state_dict()["row"].shape == (12,)
    assert kmeans.state_dict()["centroids"].shape[0] == 4


# -- the plan -------------------------------------------------------------------------------------


planned = partial(methods.planned, "is-cse")


def lines_of(lines: Sequence[str], part: str = "positives.knn-smoothing") -> list[str]:
    return [line.removeprefix(f"{part}: ") for line in lines if line.startswith(part)]


def test_the_plan_says_when_smoothing_begins() -> None:
    for sets, step in (
        ([], 16),
        (["positives.knn-smoothing.exclude=batch"], 17),
        (["train.batch_size=100"], 11),
        (["train.batch_size=512"], 2),
    ):
        made = planned(*sets)
        (line,) = lines_of(made.notes)
        assert line.startswith(f"smooths from step {step} on, ") and line.endswith("filled 1024")
        assert not lines_of(made.warnings)
    kinds = {"positives": ["kmeans-smoothing"]}
    made = planned("loss.smoothed.target=kmeans-smoothing", kinds=kinds)
    (line,) = lines_of(made.notes, "positives.kmeans-smoothing")
    assert line.startswith("smooths from step 17 on")


def test_the_step_in_the_plan_is_that_of_the_run() -> None:
    """Epochs of 26 rows in batches of 4, the last of 2: 30 vectors are there in step 8."""
    corpus = tiny_corpus(26)
    for exclude in ("rank", "batch"):
        sets = ["positives.knn-smoothing.size=30", f"positives.knn-smoothing.exclude={exclude}"]
        composition = compose(recipe="is-cse", sets=[*sets, "train.epochs=3"], corpus=corpus)
        (line,) = lines_of(composition.notes)
        smoothed = ["smoothed.loss" in each.parts for each in Rig(composition).step(10)]
        assert line.startswith(f"smooths from step {smoothed.index(True) + 1} on")


def test_runs_that_never_smooth_or_push_all_else_out_are_warned_of() -> None:
    (line,) = lines_of(planned("train.max_steps=15").warnings)
    assert line.startswith("never smooths: the buffer of 1024 is full for step 16, and the run has")
    assert not lines_of(planned("train.max_steps=16").warnings)
    started = planned("train.max_steps=15", "positives.knn-smoothing.start=at-once")
    assert not lines_of(started.warnings) and not lines_of(started.notes)
    (line,) = lines_of(planned("train.batch_size=1024").warnings)
    assert line.startswith("a batch of 1024 leaves nothing of earlier steps in a buffer of 1024")


def test_settings_that_cannot_be_are_refused() -> None:
    for setting, wanted in (
        ("positives.knn-smoothing.k=1024", "k = 1024 neighbours need a larger buffer"),
        ("positives.knn-smoothing.view=anchor", "view = anchor: only a positive can be smoothed"),
        ("positives.kmeans-smoothing.clusters=2000", "2000 clusters need as many vectors"),
    ):
        line = refusal(planned, setting, kinds=KINDS)
        assert line.startswith(setting.partition("=")[0].rpartition(".")[0]) and wanted in line


# -- neighbours as sentences ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with both miners, on a file of texts."""
    sets = [*BOTH, "train.max_steps=5", "train.save_steps=4"]
    return finished(tmp_path_factory.mktemp("run"), "is-cse", *sets, kinds=KINDS, corpus=CORPUS)


def test_neighbours_are_shown_as_sentences(run: Path) -> None:
    printed, shown = neighbours_of_run(open_run(run), sentences=4, k=2)
    assert printed == "positives.knn-smoothing at step 5: 12 vectors in the buffer"
    texts = [*CORPUS.column("text")]
    assert len({each.text for each in shown}) == 4
    for each in shown:
        assert each.text in texts and len(each.near) == 2
        assert all(text in texts and text != each.text for _, text in each.near)
        assert 1 > each.near[0][0] >= each.near[1][0] > -1


def test_neighbours_are_those_of_the_buffer(run: Path) -> None:
    """The cosines are those of the checkpoint's vectors, found again by brute force."""
    state = Checkpoint.read(run / "checkpoints" / "step-4").part("part.positives.knn-smoothing")
    texts = CORPUS.column("text").take(state["row"].tolist())
    _, (found,) = neighbours_of_run(open_run(run), step=4, sentences=1, k=11)
    cosines = state["vectors"] @ state["vectors"][-1]
    order = sorted(range(11), key=lambda place: -float(cosines[place]))
    assert (found.text, [text for _, text in found.near]) == (texts[-1], [texts[i] for i in order])


def test_clusters_are_shown_as_sentences(run: Path) -> None:
    """Near are those of the same cluster alone, so twelve sentences have eleven others at most."""
    printed, shown = neighbours_of_run(open_run(run), part="kmeans-smoothing", sentences=12, k=11)
    assert printed.startswith("positives.kmeans-smoothing")
    groups = {frozenset([each.text, *(text for _, text in each.near)]) for each in shown}
    assert 1 < len(groups) <= 4 and sum(map(len, groups)) == 12


def test_the_command(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cse(["iscse", "neighbours", str(run), "--sentences", "1", "-k", "2", "--json"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert len(line["neighbours"]) == 2
    word = line["text"].split()[0]
    assert cse(["iscse", "neighbours", str(run), "--find", word.upper(), "--sentences", "1"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert word.lower() in first.lower()


def test_mistakes_of_the_command(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = str(run)
    for words, wanted in (
        (["nowhere"], "RUN: is not a run: it has no run.toml (got 'nowhere')"),
        (
            [here, "--step", "3"],
            "step: no checkpoint of this step (got 3); there are those of steps",
        ),
        ([here, "--part", "x"], "--part: has no buffer in this run (got 'x'); this run has knn"),
        ([here, "--find", "qqq"], "--find: no sentence in the buffer has this text (got 'qqq')"),
    ):
        assert cse(["iscse", "neighbours", *words]) == 2
        assert capsys.readouterr().err.startswith(f"error: {wanted}")


def test_neighbours_as_a_function_of_a_study(run: Path) -> None:
    found = of_point({"run": str(run), "sentences": 2, "k": 3, "seed": 42})
    assert [len(each["neighbours"]) for each in found["sentences"]] == [3, 3]
    assert "12 vectors in the buffer" in found["buffer"] and -1 <= found["mean cosine"] <= 1


def test_texts_that_changed_are_not_shown(run: Path) -> None:
    texts = run.with_name("rows.csv")
    kept = texts.read_text(encoding="utf-8")
    try:
        texts.write_text(kept.replace("the", "a"), encoding="utf-8")
        with pytest.raises(CseError, match="the data has changed since this run"):
            neighbours_of_run(open_run(run))
    finally:
        texts.write_text(kept, encoding="utf-8")
