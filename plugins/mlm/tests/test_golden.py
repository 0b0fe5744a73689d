"""SimCSE's own code with masked language modelling gave these numbers; the loss gives the same."""

from typing import Any

import pytest
import torch
from cse_mlm.loss import Mlm
from cse_mlm.options import MlmOptions
from cse_testkit import make_context, make_setup
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    BertConfig,
    BertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
)

from cse_core.types import TokenBatch, TokenStates
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.masked_lm import Head
from tests.fixtures.token_rows import packed
from tests.shared import fill, golden, tensor


def encoded(encoder: PackedEncoder, tokens: TokenBatch) -> Tensor:
    words = encoder.word_embeddings(tokens.ids)
    return encoder(words, tokens.positions, tokens.offsets).last


def model_of(case: dict[str, Any]) -> Any:
    bert = case["encoder"] == "bert"
    special = {"pad_token_id": case["pad_token_id"]}
    config = (BertConfig if bert else RobertaConfig)(**case["config"], **special)
    return (BertForMaskedLM if bert else RobertaForMaskedLM)(config).double().eval()


@pytest.mark.parametrize("number", [0, 1])
def test_losses_and_gradients(number: int) -> None:
    given = golden("goldA")["mlm"]
    case = given["cases"][number]
    whole = model_of(case)
    inner = getattr(whole, whole.base_model_prefix)
    fill(inner.named_parameters(), case["weight_seed"])
    encoder, head = PackedEncoder(inner), Head(whole, True)
    tied = case["head_matrix_is_the_word_embedding"]
    setup = make_setup(dimension=8, encoder=encoder, load_masked_lm=lambda: (None, head, None))
    loss = Mlm(MlmOptions(tied=tied), setup)
    own = {name: value for name, value in head.named_parameters()
           if value is not encoder.model.get_input_embeddings().weight}  # fmt: skip
    wanted = case["head_names_in_order_of_seeds"]
    short = {
        max((w for w in wanted if name.endswith(w)), key=len): value for name, value in own.items()
    }
    assert sorted(short) == wanted
    fill(iter(short.items()), case["weight_seed"] + 700)
    mlp = nn.Linear(8, 8).double()
    fill(mlp.named_parameters(), case["weight_seed"] + 500)

    mask, tokens = case["attention_mask"], case["mlm_input_ids"]
    masked = packed(tokens, mask, case["mlm_labels"])
    labelled = masked.with_labels()[1]
    assert len(labelled) == case["label_count"]
    view = TokenStates(masked, encoded(encoder, masked), torch.zeros(len(mask), 8), labelled,
                       masked.owner)  # fmt: skip
    sums = loss.sums({"masked": view}, make_context())
    value = sums.total / sums.count
    atol = given["suggested_atol"]
    assert float(value.detach()) == pytest.approx(case["mlm_loss"], abs=atol)

    plain = packed(case["input_ids"], mask, case["mlm_labels"])
    vectors = torch.tanh(mlp(encoded(encoder, plain)[plain.offsets[:-1]]))
    one, two = vectors[::2], vectors[1::2]
    scores = cosine_similarity(one[:, None], two[None], dim=-1) / case["temp"]
    both = cross_entropy(scores, torch.arange(len(one))) + case["mlm_weight"] * value
    assert float(both.detach()) == pytest.approx(case["loss"], abs=atol)
    both.backward()
    table = encoder.model.get_input_embeddings().weight
    for found, name in (
        (table.grad, "grad_word_embeddings"),
        (short["bias"].grad, "grad_head_bias"),
    ):
        assert torch.allclose(found, tensor(case[name]), rtol=0, atol=atol), name


class _Given(nn.Module):
    """A head whose states are logits already."""

    pretrained = True

    def tie(self, encoder: object) -> None:
        pass

    def forward(self, states: Tensor) -> Tensor:
        return states


def shifted(head: nn.Module, tokens: TokenBatch, states: Tensor) -> Tensor:
    setup = make_setup(dimension=8, load_masked_lm=lambda: (None, head, None))
    loss = Mlm(MlmOptions(tied=False, shifted=True), setup)
    view = TokenStates(tokens, states, torch.zeros(tokens.rows, 8), tokens.with_labels()[1],
                       tokens.owner)  # fmt: skip
    sums = loss.sums({"masked": view}, make_context())
    return sums.total / sums.count


def test_masked_next_token_prediction_is_that_of_llm2vec() -> None:
    given = golden("goldB")["llm2vec"]
    case = given["cases"][3]
    whole = torch.ones(2, 6, dtype=torch.long).tolist()
    tokens = packed(case["input_ids"], whole, case["labels"])
    value = shifted(_Given(), tokens, tensor(case["logits"]).flatten(0, 1))
    assert float(value) == pytest.approx(case["loss_float64"], abs=1e-9)
    config = AutoConfig.for_model(case["kind"], **case["config"], is_causal=False)
    model = AutoModelForCausalLM.from_config(config).double().eval()
    fill(model.named_parameters(), case["weight_seed"])
    encoder, head = PackedEncoder(model.model, attention="bidirectional"), Head(model, True)
    value = shifted(head, tokens, encoded(encoder, tokens))
    value.backward()
    assert float(value.detach()) == pytest.approx(case["loss"], abs=5e-6)
    found = head.model.lm_head.weight.grad
    assert torch.allclose(found, tensor(case["grad_lm_head"]), rtol=0, atol=5e-6)
    first = packed(case["input_ids"], whole, [[5, *labels[1:]] for labels in case["labels"]])
    same = shifted(_Given(), first, tensor(case["logits"]).flatten(0, 1))
    assert float(same) == pytest.approx(case["loss_float64"], abs=1e-9), "nothing is before it"
