"""The kit finds what a part breaks, by the right test, and says what it was."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cse_testkit import LossSuite, failures, suite_of
from cse_testkit.checking import of_part

from cse_core.records import Kind
from plugins.testkit.tests.broken_parts import broken_registry

ROOT = Path(__file__).parents[3]
REGISTRY = broken_registry()
PURE = "test_pure_methods_change_nothing_and_repeat"
ROWS = "test_it_keeps_rows_and_their_order"
STATE = "test_its_state_round_trips"
DRAWS = "test_it_draws_for_its_own_rows_or_for_all"
OWNERS = "test_its_views_are_announced_and_have_owners"
MOVES = "test_its_parameters_move"
ONLINE = "test_it_leaves_the_online_encoder_as_it_is"
REACHES = "test_its_gradient_reaches_the_vectors"
ANY_MASK = "test_takes_any_mask_and_weights[float32]"
BROKEN: list[tuple[Kind, str, str, str]] = [
    ("aug", "drops-row", ROWS, "4 rows in, 3 out"),
    ("aug", "swaps-rows", ROWS, "changes the owner"),
    ("aug", "drops-special", ROWS, "special or prompt tokens of row 0"),
    ("aug", "in-place", PURE, "call changes its arguments"),
    ("aug", "global-random", PURE, "draws from the global generator of torch"),
    ("aug", "global-random", PURE, "called twice returns another"),
    ("aug", "counts", PURE, "call changes what the part holds: ['calls']"),
    ("aug", "ignores-draws", "test_another_seed_draws_otherwise", "the same for another seed"),
    ("aug", "loses-text", ROWS, "4 texts in, 3 out"),
    ("aug", "loses-text", "test_it_runs", "a step raised"),
    ("aug", "cuts-gradient", "test_gradients_pass_through_it", "cuts the gradient"),
    ("aug", "reshapes", ROWS, "in, ("),
    ("negatives", "stores-in-candidates", PURE, "candidates changes what the part holds: kept"),
    ("negatives", "stores-in-candidates", "test_only_after_step_stores", "changes kept"),
    ("negatives", "keeps-graph", "test_what_it_keeps_is_detached", "kept"),
    ("negatives", "forgets-state", STATE, "resumed after step 2, the loss of step 3"),
    ("negatives", "strange-state", "test_its_state_is_tensors_and_json", "'seen' is neither"),
    ("negatives", "turned-mask", "test_candidates_have_their_shapes", "mask has shape"),
    ("negatives", "float-mask", "test_candidates_have_their_shapes", "a log-weight is NaN"),
    ("negatives", "weighs-vectors", "test_weigh_only_weighs", "changes the vectors"),
    ("negatives", "weigh-needs-candidates", "test_weigh_takes_any_candidates", ""),
    ("loss", "mean-of-nothing", "test_takes_no_candidates", "the value is nan"),
    ("loss", "mean-of-nothing", ANY_MASK, "the value is nan"),
    ("loss", "ignores-mask", "test_a_masked_candidate_does_not_count", "that are masked"),
    ("loss", "ignores-weights", "test_a_masked_candidate_does_not_count", "of weight zero"),
    ("loss", "nan-gradient", ANY_MASK, "the gradient of the"),
    ("loss", "wants-four", "test_takes_one_row", "IndexError"),
    ("loss", "wants-four", "test_trains_with_finite_loss_and_gradients[fp32]", "IndexError"),
    ("loss", "per-anchor", "test_takes_one_row", "not a scalar"),
    ("loss", "nan-loss", "test_trains_with_finite_loss_and_gradients[bf16]", "loss of step 1"),
    ("pool", "reads-others", "test_row_reads_its_own_tokens_only", "pooled alone"),
    ("pool", "batch-norm-head", "test_head_maps_any_number_of_vectors", "ValueError"),
    ("pool", "slots-from-one", "test_slices_keep_owners_and_count_slots", "the slots of sentence"),
    ("pool", "joins-sorted", "test_join_makes_one_vector_a_sentence", "owners are [2, 5, 9]"),
    ("positives", "other-group", "test_groups_are_those_of_its_record", "positives:friends"),
    ("positives", "flat-group", "test_groups_have_their_shapes", "the weights of group"),
    ("positives", "uneven-pairs", "test_rounds_are_well_formed_and_repeat", "lengths"),
    ("branch", "moves-online", "test_it_shares_the_encoder_only_if_trained", "changes the online"),
    ("metric", "nan-metric", "test_its_numbers_are_finite_and_repeat", "spread is nan"),
    ("metric", "nan-metric", "test_its_factory_makes_a_part_of_its_kind", "not a subclass"),
    ("loss", "silent", "test_its_options_are_described_and_frozen", "rate"),
    ("loss", "wrong-default", "test_its_default_options_are_valid", "mode"),
    ("loss", "loose", "test_its_options_are_described_and_frozen", "not frozen"),
    ("loss", "odd-token", "test_its_tokens_are_in_the_vocabulary", "sight:identical"),
    ("loss", "no-class", "test_its_factory_makes_a_part_of_its_kind", "has no Nobody"),
    ("loss", "other-kind", "test_its_factory_makes_a_part_of_its_kind", "parts.Loss"),
    ("aug", "texts-turned", ROWS, "row 0 is what row 3 was"),
    ("aug", "ids-turned", ROWS, "leaves source and word where they were"),
    ("aug", "rows-turned", ROWS, "row 0"),
    ("aug", "words-counted", ROWS, "(source, word)"),
    ("aug", "norm-of-batch", "test_a_row_does_not_depend_on_the_others", "row 0 of 4"),
    ("aug", "shared-draws", DRAWS, "write shared=False"),
    ("aug", "unsaid-view", OWNERS, "adds the view aux"),
    ("aug", "owners-of-corpus", OWNERS, "not batch rows, 0 to 3"),
    ("aug", "in-place-states", PURE, "call changes its arguments"),
    ("branch", "own-copy", MOVES, "are not with the optimiser"),
    ("branch", "no-dropout", ONLINE, "is 0.0, not 0.1"),
    ("loss", "ignores-target-weights", "test_a_positive_of_weight_zero_does_not_count", "weight 0"),
    ("loss", "ignores-reduction", "test_its_reduction_is_that_of_its_options", "for 4 anchors"),
    ("loss", "detached", REACHES, "is it detached?"),
    ("loss", "no-gradient", REACHES, "leave no gradient"),
    ("loss", "returns-none", "test_it_returns_one_number", "returned NoneType"),
    ("loss", "returns-tensor", "test_it_returns_one_number", "returned Tensor"),
    ("loss", "opens-mask", PURE, "call changes its arguments: 2.mask"),
    ("loss", "scales-anchors", PURE, "call changes its arguments: 0.anchors"),
    ("loss", "by-position", "test_it_joins_rows_by_key", "by owner and slot"),
    ("loss", "unmoved", MOVES, "leave scale as they were"),
    ("loss", "notes-text", "test_its_notes_are_lines", "notes returns 'one text'"),
    ("loss", "warns-of-none", "test_its_notes_are_lines", "warnings returns None"),
    ("loss", "derives-nothing", "test_its_notes_are_lines", "resolve_options returns a NoneType"),
    ("negatives", "owner-for-row", "test_its_rows_are_those_of_its_vectors", "not batch.owner"),
    ("negatives", "inverted-mask", "test_anchors_see_candidates_of_others", "are masked"),
    ("negatives", "opens-positives", "test_weigh_keeps_what_is_masked", "negatives again"),
    ("negatives", "writes-afterwards", PURE, "after_step changes its arguments"),
    ("negatives", "draws-apart", DRAWS, "write shared=True"),
    ("pool", "in-place-head", PURE, "forward changes its arguments"),
]
SOUND: list[tuple[Kind, str]] = [
    ("aug", "repeat"), ("negatives", "ring"), ("loss", "plain"), ("pool", "halves"),
    ("positives", "neighbour"), ("positives", "pairs"), ("loss", "infonce"), ("branch", "ema"),
    ("aug", "nudge"), ("aug", "cutoff"), ("aug", "deny"), ("loss", "innate"), ("loss", "learned"),
    ("positives", "memory"), ("negatives", "frozen-weights"), ("loss", "base"),
    ("negatives", "kept"), ("branch", "twin"),
]  # fmt: skip
FIRST = {
    "per-anchor": "test_it_returns_one_number",
    "nan-loss": "test_it_returns_one_number",
    "odd-token": "test_its_record_is_valid",
}
"""What breaks before the promise that is looked for above, which then is not asked."""
MOST_FAILURES = 3
"""Of one mistake: what depends on a broken promise is not asked."""
_suites: dict[tuple[Kind, str], type] = {}


def failed(kind: Kind, name: str, test: str | None = None) -> dict[str, str]:
    suite = _suites.setdefault((kind, name), suite_of(kind, name, REGISTRY))
    return failures(suite, None if test is None else [test.partition("[")[0]])


@pytest.mark.parametrize(("kind", "name", "test", "text"), BROKEN)
def test_a_broken_promise_is_found(kind: Kind, name: str, test: str, text: str) -> None:
    found = failed(kind, name, test)
    assert test in found, f"{name} passed {test}"
    assert text in found[test]


@pytest.mark.parametrize(("kind", "name"), list(dict.fromkeys(each[:2] for each in BROKEN)))
def test_one_mistake_is_few_failures_with_its_file(kind: Kind, name: str) -> None:
    """What ``cse check-plugin`` prints of each broken part."""
    found = [each for each in of_part(REGISTRY.find(kind, name), registry=REGISTRY) if not each.ok]
    broken = [each for each in found if each.ok is False]
    assert broken, f"{name} passed everything"
    assert len(broken) <= MOST_FAILURES, broken
    tests = {test for *part, test, _ in BROKEN if part == [kind, name]}
    assert {each.name for each in broken} & (tests | {FIRST.get(name, "")}), broken
    for each in broken:
        if name != "no-class":  # it names none
            assert re.search(r"(broken_parts|mutants)\.py:\d+$", each.file), each
        assert each.says and each.detail


@pytest.mark.parametrize(("kind", "name"), SOUND)
def test_a_sound_part_passes_everything(kind: Kind, name: str) -> None:
    assert failed(kind, name) == {}


def test_a_sound_part_passes_with_other_options() -> None:
    suite = suite_of("aug", "nudge", REGISTRY)
    assert failures(type("Previous", (suite,), {"options": {"gradient": "previous"}})) == {}


class WrongSlow(LossSuite):
    part = ("loss", "infonce")

    def slow(self, batch, targets, negatives, ctx, options):  # type: ignore[no-untyped-def]
        return 1.0


def test_another_value_than_the_slow_version_is_found() -> None:
    found = failures(WrongSlow)
    assert list(found) == ["test_equals_its_slow_version"]
    assert "by the slow version 1.0" in found["test_equals_its_slow_version"]


PYTEST = """
from cse_testkit import LossSuite
from plugins.testkit.tests.broken_parts import broken_registry


class TestWantsFour(LossSuite):
    part = ("loss", "wants-four")
    registry = broken_registry()
"""


def test_pytest_skips_what_waits_for_a_broken_promise(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(PYTEST, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rfs", "-p", "no:cacheprovider", tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "FAILED test_it.py::TestWantsFour::test_takes_one_row - IndexError" in done.stdout
    assert "1 failed" in done.stdout
    assert "not asked, since test_takes_one_row is broken" in done.stdout
