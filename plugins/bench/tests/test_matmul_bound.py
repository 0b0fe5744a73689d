"""The bound has the products of the encoder's linear layers, all of them and no others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from cse_bench.matmul_bound import CallRecorder, MatmulBound, Product, products
from torch.utils.flop_counter import FlopCounterMode

from cse_core.engine.step import StepResult
from tests.fixtures.tiny import CPU, Bench

HIDDEN, INNER, LAYERS, BATCH = 32, 64, 2, 8
ATTENTION, FEED = 4 * HIDDEN**2, 2 * HIDDEN * INNER
MEAN = '[[pool]]\nuse = "mean"\n'


def recorded(bench: Bench, *, whole: bool = True) -> tuple[StepResult, list[Product]]:
    recorder = CallRecorder(bench.engine)
    with recorder.listening():
        result = bench.step()
    bench.step(1)
    return result, products(recorder.calls, whole=whole)


def total(made: Iterable[Product]) -> int:
    return sum(each.multiplications for each in made)


def test_a_layer_counts_once_for_its_output_and_twice_for_gradients(
    encoder: str, tmp_path: Path
) -> None:
    result, made = recorded(Bench(encoder, tmp_path))
    of_a_token = LAYERS * (ATTENTION + FEED)
    assert total(made) == 3 * result.tokens * of_a_token
    assert len(made) == 3 * LAYERS * 6
    for side in ("output", "input", "weight"):
        assert total(each for each in made if each.side == side) == result.tokens * of_a_token


def test_its_own_last_layer_makes_keys_and_values_alone_for_every_token(
    encoder: str, tmp_path: Path
) -> None:
    result, made = recorded(Bench(encoder, tmp_path), whole=False)
    rows, tokens = 2 * BATCH, result.tokens
    last = tokens * 2 * HIDDEN**2 + rows * (2 * HIDDEN**2 + FEED)
    assert total(made) == 3 * (tokens * (ATTENTION + FEED) + last)


def test_a_pooler_of_all_tokens_leaves_nothing_out(encoder: str, tmp_path: Path) -> None:
    bench = Bench(encoder, tmp_path, MEAN)
    assert recorded(bench, whole=False)[1] == recorded(bench)[1]


def test_it_is_what_a_step_multiplies_beside_attention_and_loss(
    encoder: str, tmp_path: Path
) -> None:
    bench = Bench(encoder, tmp_path, MEAN)
    recorder = CallRecorder(bench.engine)
    with recorder.listening(), FlopCounterMode(display=False) as counter:
        bench.step()
    counts = counter.get_flop_counts()["Global"]
    found = sum(count for op, count in counts.items() if str(op) in ("aten.mm", "aten.addmm"))
    loss = 3 * BATCH * BATCH * HIDDEN
    assert found == 2 * (total(products(recorder.calls)) + loss)


def test_frozen_embeddings_need_no_gradient_of_what_enters_the_first_layer(
    encoder: str, tmp_path: Path
) -> None:
    result, made = recorded(Bench(encoder, tmp_path, "", "model.freeze_embeddings=true"))
    of_a_token = 3 * LAYERS * (ATTENTION + FEED) - 3 * HIDDEN**2
    assert total(made) == result.tokens * of_a_token


def test_a_branch_without_gradient_counts_outputs_alone(encoder: str, tmp_path: Path) -> None:
    recipe = '[[negatives]]\nuse = "queue"\nbranch = "ema"\n[[branch]]\nuse = "ema"\n'
    result, made = recorded(Bench(encoder, tmp_path, recipe))
    outputs = total(each for each in made if each.side == "output")
    gradients = total(each for each in made if each.side != "output")
    half = result.tokens // 2
    assert gradients == 2 * result.tokens * LAYERS * (ATTENTION + FEED)
    assert outputs == (result.tokens + half) * LAYERS * (ATTENTION + FEED)


def test_the_pass_for_the_gradient_of_the_inputs_makes_none_of_the_weights(
    encoder: str, tmp_path: Path
) -> None:
    bench = Bench(encoder, tmp_path, '[[aug]]\nuse = "push"\n')
    recorder = CallRecorder(bench.engine)
    with recorder.listening():
        bench.step()
    assert [(each.inputs, each.weights) for each in recorder.calls] == [(True, False), (True, True)]
    assert not bench.engine.inputs_only


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_bound_runs_its_products_and_nothing_else(dtype: torch.dtype) -> None:
    made = [
        Product("output", 0, 10, 4, 6), Product("output", 1, 3, 6, 4),
        Product("input", 1, 3, 6, 4), Product("weight", 0, 10, 4, 6),
    ]  # fmt: skip
    waits = 0

    def wait() -> None:
        nonlocal waits
        waits += 1

    bound = MatmulBound(made, dtype, CPU)
    with FlopCounterMode(display=False) as counter:
        assert bound.seconds(2, wait) > 0
    assert counter.get_total_flops() == 3 * 2 * total(made)
    assert list(counter.get_flop_counts()) == ["Global"]
    assert waits == 2
