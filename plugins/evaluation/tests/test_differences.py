"""``cse eval A B``: what is said of a difference, beside a slow bootstrap of the same items."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cse_testkit import shared_encoder
from scipy.stats import spearmanr

import cse as api
from plugins.evaluation.tests.test_collections import JUDGED, beir
from tests.fixtures.command_line import Cse

WORDS = ["boat", "lake", "lamp", "garden", "bell", "violin", "judge", "goal"]
DRAWS = 3_000


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    rng, path = np.random.default_rng(0), tmp_path / "made.test.tsv"
    rows = ["sentence1\tsentence2\tscore"]
    for _ in range(60):
        one, other = (rng.choice(WORDS, 4) for _ in range(2))
        shared = len({*one} & {*other})
        rows.append(f"{' '.join(one)}\t{' '.join(other)}\t{shared}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def models() -> tuple[str, str]:
    return str(shared_encoder()), str(shared_encoder(family="electra"))


def test_an_interval_is_that_of_a_slow_bootstrap(
    cse: Cse, pairs: Path, models: tuple[str, str]
) -> None:
    said = json.loads(cse("eval", *models, "--pairs", str(pairs), "--json").out)
    first, second = said["models"]
    assert "differences" not in first and second["differences"]["from"] == models[0]
    (found,) = second["differences"]["sets"].values()
    rows = [line.split("\t") for line in pairs.read_text().splitlines()[1:]]
    gold, cosines = np.array([float(row[2]) for row in rows]), []
    for name in models:
        left, right = (
            api.load(name, device="cpu").encode([row[side] for row in rows], normalize=True)
            for side in (0, 1)
        )
        cosines.append((left * right).sum(axis=1))
    rng, drawn = np.random.default_rng(1), []
    for _ in range(DRAWS):
        some = rng.integers(len(gold), size=len(gold))
        one, other = (100 * spearmanr(gold[some], side[some]).statistic for side in cosines)
        drawn.append(other - one)
    (name,) = first["results"]
    scores = [entry["results"][name]["spearman"] for entry in (first, second)]
    assert found["value"] == pytest.approx(scores[1] - scores[0], abs=1e-3)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (found["low"], found["high"]) == pytest.approx((low, high), abs=0.15 * (high - low))
    share = min(np.mean(np.array(drawn) <= 0), np.mean(np.array(drawn) >= 0))
    assert found["p"] == pytest.approx(2 * share, abs=0.05) and found["items"] == 60


def test_every_kind_of_set_has_one_and_all_are_one_family(
    cse: Cse, tmp_path: Path, pairs: Path, models: tuple[str, str]
) -> None:
    labelled, articles = tmp_path / "kinds.tsv", tmp_path / "articles.jsonl"
    labelled.write_text(
        "label\ttext\n" + "".join(f"{i % 2}\t{WORDS[i % 8]} {i}\n" for i in range(40))
    )
    articles.write_text("".join(
        json.dumps({"title": word, "paras": [[f"a {word} is here", f"{word} again"]]}) + "\n"
        for word in WORDS
    ))  # fmt: skip
    beir(tmp_path / "c")
    sources = ("--pairs", str(pairs), "--labelled", str(labelled), "--documents", str(articles),
               "--collections", str(tmp_path / "c"))  # fmt: skip
    three = (*models, shutil.copytree(models[0], tmp_path / "same"))
    said = cse("eval", *map(str, three), *sources, "--json")
    entries = json.loads(said.out)["models"]
    sets = entries[1]["differences"]["sets"]
    assert len(sets) == 4 and sets.keys() == entries[0]["results"].keys()
    assert {found["items"] for found in sets.values()} == {60, 40, 8, 3}
    for found in entries[2]["differences"]["sets"].values():
        assert (found["value"], found["low"], found["high"], found["p"]) == (0, 0, 0, 1)
    alone = json.loads(cse("eval", *models, *sources[:2], "--json").out)["models"][1]
    (one,) = alone["differences"]["sets"].values()
    (name,) = alone["differences"]["sets"]
    assert one["p"] <= sets[name]["p"] <= min(1, 8 * one["p"]) + 1e-9
    table = cse("eval", *models, *sources[:2], *sources[4:]).out
    assert "Holm's method for the 3" in table and " p = " in table
    shown = cse("eval", *map(str, three), *sources[:2]).out
    assert "over" in shown and "[+0.00, +0.00] p = 1" in shown


def test_a_set_of_one_item_is_scored_and_has_no_difference(
    cse: Cse, tmp_path: Path, models: tuple[str, str]
) -> None:
    folder = beir(tmp_path / "one", judged=dict([*JUDGED.items()][:1]))
    _, other = json.loads(cse("eval", *models, "--collections", str(folder), "--json").out)[
        "models"
    ]
    assert len(other["results"]) == 1 and other["differences"]["sets"] == {}


def test_an_interval_excludes_zero_exactly_where_p_shows_a_difference() -> None:
    for draws, shown in ((2_000, False), (100 * 64, True)):
        drawn = np.sort(np.random.default_rng(0).normal(5.0, 0.5, draws))
        one = api.Comparison(5.0, 2 / (draws + 1), 0.5, seeds=1, items=60, draws=drawn)
        for found in api.corrected([one] * 64, 64):
            assert (found.p < 0.05) == (found.low > 0) == shown and found.draws == draws
