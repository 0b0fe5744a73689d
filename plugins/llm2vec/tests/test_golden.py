"""Numbers of the authors' code: pooling without the instruction, and the loss of SimCSE."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part

from cse_core.types import Hidden
from cse_defaults.basics.options import MeanOptions
from cse_defaults.basics.poolers import Mean
from cse_engine.step.negatives import negatives_for_loss
from tests.fixtures.token_rows import packed
from tests.shared import compare, golden, tensor


@pytest.mark.parametrize("number", [0, 1])
def test_the_mean_is_of_the_text_alone(number: int) -> None:
    case = golden("goldB")["llm2vec"]["cases"][number]
    real, text = (torch.tensor(case[name]).bool() for name in ("attention_mask", "embed_mask"))
    tokens = replace(packed(case["input_ids"], case["attention_mask"]), special=~text[real])
    # To the authors the first special token belongs to the instruction, also where there is none.
    setup: Any = SimpleNamespace(dimension=8, tokenizer=SimpleNamespace(before=[], after=[]))
    states = tensor(case["hidden_states"])[real]
    found = Mean(MeanOptions(include_prompt=False), setup).pool(Hidden(states, {}), tokens)
    assert torch.allclose(found, tensor(case["vectors"]), rtol=0, atol=1e-9)


def test_the_loss_of_simcse() -> None:
    """The cosine times 20, of the query to all positives."""
    case = golden("goldB")["llm2vec"]["cases"][4]
    leaves = {name: tensor(case[name]).requires_grad_() for name in ("query", "positive")}
    batch = make_batch({"anchor": leaves["query"], "positive": leaves["positive"]})
    part = make_part("loss", "infonce", temperature=1 / case["scale"])
    negatives = negatives_for_loss(batch, part.options, ())
    value = part(batch, batch.targets["positive"], negatives, make_context()).value
    compare(value, leaves, case, 1e-9)
