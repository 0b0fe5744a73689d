"""Who goes on, for how long, and what is said of the winner: beside obvious loops."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import tomlkit
from cse_tune.budget import Budget, Costs, beginning, lay_out
from cse_tune.picture import HEIGHT, LINE, draw_race
from cse_tune.race import difference_of, look
from cse_tune.space import space_of
from cse_tune.verdict import ADAPT, SIMCSE, START, Judged, judge
from numpy.typing import NDArray

from cse_core.errors import CseError

COSTS = Costs(step=1.0, run=10.0, judging=20.0)


def gains(mean: float, count: int = 200, seed: int = 0) -> NDArray[np.float64]:
    return np.clip(np.random.default_rng(seed).normal(mean, 0.1, count), 0, 1)


def test_a_point_that_is_worse_leaves_and_others_by_their_means() -> None:
    points = {1: gains(0.5), 2: gains(0.5) - 0.01, 3: gains(0.495, seed=2), 4: gains(0.2, seed=1)}
    stay, left = look(points, family=9, room=2)
    assert stay == [1, 3]
    why = {one.number: one for one in left}
    assert {number: one.why for number, one in why.items()} == {2: "worse", 4: "worse"}
    noisy = {n: gains(0.5, 40, seed=n) for n in range(5)}
    stay, left = look(noisy, family=12, room=2)
    order = sorted(noisy, key=lambda n: -noisy[n].mean())
    assert stay == order[:2] and {one.why for one in left} == {"room"}
    assert look({7: gains(0.1)}, family=0, room=1) == ([7], [])


def test_a_family_of_more_looks_drops_fewer() -> None:
    close = {1: gains(0.50, 60, 1), 2: gains(0.50, 60, 1) - 0.05 * gains(0.5, 60, 3) + 0.01}
    assert look(close, family=1, room=2)[1], "shown by itself"
    assert not look(close, family=5_000, room=2)[1], "not among so many"


def test_a_difference_is_the_mean_of_those_of_all_seeds() -> None:
    ours, theirs = [gains(0.5, seed=n) for n in (1, 2)], [gains(0.4, seed=n) for n in (3, 4)]
    found = difference_of(ours, theirs)
    loop = [100 * (a - b).mean() for a, b in zip(ours, theirs, strict=True)]
    assert found.value == pytest.approx(sum(loop) / 2) and found.seeds == 2


@pytest.mark.parametrize(("points", "seconds", "workers"),
                         [*product((4, 27), (1_400, 3_000, 9_000), (1, 4))])  # fmt: skip
def test_a_race_takes_the_time_that_there_is(points: int, seconds: float, workers: int) -> None:
    costs = replace(COSTS, workers=workers)
    budget = lay_out(points, 3, 1_000, costs, seconds + 60, 60)
    assert budget.seconds(costs) <= seconds and budget.points <= points
    more = Budget(budget.points, budget.steps + 1, 3)
    assert more.seconds(costs) > seconds or budget.steps == 1_000
    if budget.points < points:
        assert Budget(budget.points + 1, 72, 3).seconds(costs) > seconds
    spent = 4 * costs.judging  # the start, the model, and both beside BM25
    for steps, count in budget.rungs:
        for _ in range(0, count, workers):  # those of one turn run at the same time
            spent += costs.run + 1.25 * steps * costs.step
    for count in (3, 3 * 2):  # the seed of the race compares no methods
        for _ in range(0, count, workers):
            spent += costs.run + 1.25 * budget.steps * costs.step + costs.judging
    assert budget.seconds(costs) == pytest.approx(spent)
    assert budget.rungs[-1][0] == budget.steps and budget.rungs[0][1] == budget.points


def test_of_few_points_the_first_of_each_method_begin() -> None:
    groups = {n: f"method {(n - 1) // 3}" for n in range(1, 28)}
    assert beginning(groups, 4) == [1, 4, 7, 10], "the first rates of the first methods"
    assert beginning(groups, 9) == [*range(1, 28, 3)]
    assert beginning(groups, 11) == sorted([*range(1, 28, 3), 2, 5])
    assert beginning(groups, 27) == [*groups] == beginning(groups, 40)


def test_too_little_time_is_refused_with_how_much_is_needed() -> None:
    with pytest.raises(CseError, match=r"takes \d\d minutes at least") as caught:
        lay_out(27, 3, 300, COSTS, 100, 200)
    needed = int(str(caught.value).split("takes ")[1].split()[0])
    assert lay_out(27, 3, 300, COSTS, 60 * needed, 200).points >= 3
    with pytest.raises(CseError):
        lay_out(27, 3, 300, COSTS, 60 * (needed - 1), 200)


def judged(change: float, ordered: bool = True, now: float = 50.0, noise: float = 0.05) -> Judged:
    start = gains(0.4)
    rng = np.random.default_rng(5)
    model, *ours = (start + change + rng.normal(0, noise, len(start)) for _ in range(4))
    beside = {START: [start], SIMCSE: [start + 0.01] * 3, ADAPT: [one - 0.02 for one in ours]}
    return judge("titles", model, ours, beside, (50.0, now), ordered=ordered, texts=900)


def test_the_winner_is_better_only_beyond_chance_and_with_words_in_order() -> None:
    better = judged(0.05)
    assert better.better and better.text.startswith("better: nDCG@10 of 200 titles")
    assert better.differences[START].seeds == 1, "of the model that is kept"
    assert better.differences[SIMCSE].seeds == 3
    apart = better.means["winner"] - better.means[SIMCSE]
    assert better.differences[SIMCSE].value == pytest.approx(apart)
    assert better.differences[ADAPT].value == pytest.approx(2.0)
    assert not judged(0.0).better and judged(0.0).text.startswith("no better")
    assert judged(-0.1).text.startswith("worse")
    assert not judged(0.05, ordered=False).better and "random order" in judged(0.05, False).text
    fell = judged(0.05, now=44.9)
    assert not fell.better and "fell from 50 % to 45 %" in fell.text
    assert judged(0.05, now=45.1).better


def test_a_space_is_a_study_whose_texts_the_race_names(tmp_path: Path) -> None:
    given = tmp_path / "space.toml"
    given.write_text(
        '[settings]\nrecipe = "simcse"\n"model.max_length" = 16\n\n'
        '[[axes]]\nvalues = { "train.lr" = [1e-5, 3e-5] }\n'
    )
    text = space_of(given, length=40)
    made = tomlkit.parse(text).unwrap()
    assert made["settings"]["data"] == "@texts" and made["settings"]["model.max_length"] == 16
    assert made["scores"]["options"]["max-length"] == 40
    assert "[1e-5, 3e-5]" in text, "labels are as typed"
    for text, what in (
        ("[setings]\n", "no key 'setings'"),
        ('[settings]\ndata = "a.txt"\n', "data is set by cse tune"),
        ('[[axes]]\nvalues = { "train.max_steps" = [9] }\n', "name it by --steps"),
        ('[[axes]]\n[[axes.places]]\nlabel = "x"\n"data.path" = "a.txt"\n', "name it by FILE"),
        ('settings = "simcse"\n', "is not made of tables"),
        ("[settings\n", "not TOML"),
    ):
        given.write_text(text)
        with pytest.raises(CseError, match=what):
            space_of(given, length=40)
    with pytest.raises(CseError, match="No such file"):
        space_of(tmp_path / "none.toml", length=40)


def test_names_in_the_picture_stand_apart_within_it(tmp_path: Path) -> None:
    lines = {f"point <{n}>": [(3, 20.0 + n / 1000), (9, 20.0 + n / 500)] for n in range(7)}
    lines["point <7>"] = [(3, 22.0), (9, 30.0)]
    draw_race(lines, 20.0, "point <7>", tmp_path / "race.svg")
    text = (tmp_path / "race.svg").read_text()
    assert text.count("<polyline") == 8 and "point &lt;7&gt;: 30.0" in text
    places = sorted(
        float(part.split('y="')[1].split('"')[0])
        for part in text.split("<text")[1:]
        if "point &lt;" in part
    )
    assert len(places) == 8 and places[-1] < HEIGHT - 20
    assert min(b - a for a, b in zip(places, places[1:], strict=False)) >= LINE - 0.11
