"""The kit finds what a part breaks, by the right test, and says what it was."""

from __future__ import annotations

import pytest
from cse_testkit import LossSuite, failures, suite_of

from cse_core.records import Kind
from plugins.testkit.tests.broken_parts import broken_registry

REGISTRY = broken_registry()
PURE = "test_pure_methods_change_nothing_and_repeat"
ROWS = "test_it_keeps_rows_and_their_order"
STATE = "test_its_state_round_trips"
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
]
SOUND: list[tuple[Kind, str]] = [
    ("aug", "repeat"), ("negatives", "ring"), ("loss", "plain"), ("pool", "halves"),
    ("positives", "neighbour"), ("positives", "pairs"), ("loss", "infonce"), ("branch", "ema"),
    ("aug", "nudge"), ("aug", "cutoff"), ("aug", "deny"), ("loss", "innate"), ("loss", "learned"),
    ("positives", "memory"), ("negatives", "frozen-weights"),
]  # fmt: skip
_suites: dict[tuple[Kind, str], type] = {}


def failed(kind: Kind, name: str, test: str | None = None) -> dict[str, str]:
    suite = _suites.setdefault((kind, name), suite_of(kind, name, REGISTRY))
    return failures(suite, None if test is None else [test.partition("[")[0]])


@pytest.mark.parametrize(("kind", "name", "test", "text"), BROKEN)
def test_a_broken_promise_is_found(kind: Kind, name: str, test: str, text: str) -> None:
    found = failed(kind, name, test)
    assert test in found, f"{name} passed {test}"
    assert text in found[test]


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
