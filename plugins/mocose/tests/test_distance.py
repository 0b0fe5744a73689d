"""The traceable distance: its numbers in the plan, its warning, and the size that it sets."""

from functools import partial

from cse_mocose.distance import Growth
from cse_testkit import settings_of

from cse_engine.compose.composition import Composition
from tests.fixtures import methods
from tests.fixtures.methods import refusal

planned = partial(methods.planned, "mocose")
plain = partial(methods.planned, None, kinds={"negatives": ["queue"]})
"""The queue alone, without the recipe."""


def printed(composition: Composition) -> str:
    return "\n".join(line for line in composition.notes if "distance" in line)


def test_the_papers_setting() -> None:
    base, large = planned(), planned(encoder="bert-large")
    assert "14.67 at the start (1/(1-0.85) + 512/64), 21.33 at half the run" in printed(base)
    assert "22.67 at the start (1/(1-0.85) + 512/32)" in printed(large)
    assert not [each for made in (base, large) for each in made.warnings if "distance" in each]


def test_a_distance_far_from_the_papers_best_is_warned_of() -> None:
    for setting, encoder, warned in (
        ("negatives.queue.size=512", "bert-base", False),
        ("negatives.queue.size=792", "bert-base", False),  # 19.04
        ("negatives.queue.size=800", "bert-base", True),  # 19.17 is above 1.3 * 14.67
        ("negatives.queue.size=256", "bert-base", False),  # 10.67
        ("negatives.queue.size=192", "bert-base", True),  # 9.67
        ("negatives.queue.size=256", "bert-large", True),  # 14.67, and 22 is the best
        ("branch.target.decay=1", "bert-base", True),
        ("negatives.queue.update=oldest", "bert-base", True),  # 22.67: twice the size is held
        ("negatives.queue.update=latest", "bert-base", False),
    ):
        found = [each for each in planned(setting, encoder=encoder).warnings if "distance" in each]
        assert bool(found) == warned, found
        if warned:
            assert found[0].startswith("negatives.queue: traceable distance")
            assert ("for large encoders" in found[0]) == (encoder == "bert-large")


def test_the_default_branch_lags_by_its_own_decay() -> None:
    made = plain()
    assert "208.00 at the start (1/(1-0.995) + 512/64)" in printed(made)
    assert any("branch ema a lower decay" in each for each in made.warnings)
    own = plain("negatives.queue.branch=none")
    assert "9.00 at the start (1/(1-0) + 512/64)" in printed(own)


def test_a_wished_distance_sets_the_size_or_is_refused_in_one_line() -> None:
    for wish, sets, size in (
        ("14.67", [], 512),
        ("14.67", ["train.batch_size=128"], 1024),
        ("22.67", ["negatives.queue.update=oldest"], 512),
        ("10", ["branch.target.decay=0.5"], 512),
        ("9", ["negatives.queue.size=7", "branch.target.decay=0"], 512),
    ):
        made = planned(f"negatives.queue.distance={wish}", *sets)
        assert settings_of(made)["negatives.queue.size"] == size
        assert f"size {size} was set for distance" in printed(made)
    for wish, sets, why in (
        ("6.66", [], "alone makes it 6.67"),
        ("6.67", [], "out of reach"),
        ("6", [], "or lower that decay\n"),  # below what the paper's own decay reaches
        ("50", ["branch.target.decay=1"], "alone makes it inf"),
        ("20", ["negatives.queue.update=latest"], "give size"),
        ("1e8", [], "a queue holds at most 1,048,576"),
        ("14.67", ["branch.target.decay=0.995"],
         'lower that decay (--branch.target.decay "cosine(0.85,1)")'),
    ):  # fmt: skip
        line = refusal(planned, f"negatives.queue.distance={wish}", *sets)
        assert line.startswith("negatives.queue: ") and why in f"{line}\n"


def test_a_branch_without_a_decay_has_no_distance() -> None:
    frozen = "negatives.queue.branch=frozen"
    assert not printed(plain(frozen))
    line = refusal(plain, frozen, "negatives.queue.distance=20")
    assert "frozen has none: give size" in line


def test_the_trace_of_a_growing_queue() -> None:
    traces = [
        # the paper's: 128 random rows, a batch of 64 more each step, all real from step 8 on
        (Growth(512, 128), 64,
         [(128, 128), (192, 128), (256, 128), (320, 128), (384, 128), (448, 128), (512, 128),
          (512, 64), (512, 0)]),
        # the public code at the paper's setting, as traced
        (Growth(512, 128, official=True), 64,
         [(256, 256), (320, 256), (384, 256), (448, 256), (768, 512), (832, 512), (896, 512),
          (512, 64), (512, 0)]),
        (Growth(256, 128, official=True), 256, [(256, 256), (256, 0)]),
        (Growth(8, 0, official=True), 2, [(0, 0), (2, 0), (4, 0), (6, 0), (8, 0)]),
        (Growth(4, 0), 4, [(0, 0), (4, 0)]),
        (Growth(4, 2), 6, [(2, 2), (4, 0)]),
        (Growth(8, 2, shown=4), 2, [(2, 2), (4, 2), (4, 2), (4, 2), (4, 0)]),
    ]  # fmt: skip
    for growth, batch, wanted in traces:
        assert growth.trace(batch) == wanted


def test_the_plan_says_how_it_fills() -> None:
    line = next(each for each in planned().notes if "random rows" in each)
    assert line == (
        "negatives.queue: 128 random rows at step 1, 512 keys from step 7 on, none of them random "
        "from step 9 on"
    )
    made = planned("negatives.queue.growth=official")
    assert any("256 random rows at step 1, up to 896 keys, 512 keys" in n for n in made.notes)
