"""The auxiliary network beside the authors' numbers, and beside a loop over rows and tokens."""

import copy
from typing import Any

import pytest
import torch
from cse_mlm.auxiliary import AuxiliaryMlm
from cse_mlm.options import AuxiliaryMlmOptions
from cse_testkit import make_context, make_setup, run_steps
from cse_testkit.batches import tiny_tokenizer
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForMaskedLM, BertModel

from cse_core.errors import CseError
from cse_core.functional import hashed_uniform
from cse_core.types import TokenBatch, TokenStates
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.masked_lm import Head
from tests.fixtures.token_rows import packed
from tests.shared import fill, golden, tensor

BOUND = 1e-9


def made(whole: Any, **options: Any) -> AuxiliaryMlm:
    """Return the part over a model, which it loads."""
    inner = getattr(whole, whole.base_model_prefix)
    head = Head(whole, True)
    setup = make_setup("aux", load_masked_lm=lambda: (PackedEncoder(inner), head, None))
    return AuxiliaryMlm(AuxiliaryMlmOptions(**options), setup).double().eval()


def states_of(tokens: TokenBatch, states: Tensor) -> TokenStates:
    none = torch.zeros(0, dtype=torch.long)
    return TokenStates(tokens, states, states.new_zeros(tokens.rows, 8), none, tokens.owner)


@pytest.mark.parametrize("number", [0, 1])
def test_the_authors_losses_and_gradients(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = golden("goldA")["infocse_auxiliary"]["cases"][number]
    sizes = {**case["config"], "num_hidden_layers": case["skip_from"]}
    whole = BertForMaskedLM(BertConfig(**sizes, pad_token_id=case["pad_token_id"])).double().eval()
    fill(whole.named_parameters(), case["weight_seed"] + 300)
    part = made(whole, lower=case["skip_from"], layers=case["n_head_layers"])
    layers = {
        f"{place}.{name}": each
        for place, layer in enumerate(part.upper.layers())
        for name, each in layer.named_parameters()
    }
    fill(iter(layers.items()), case["weight_seed"] + 600)
    head = {n.removeprefix("model.cls.predictions."): p for n, p in part.head.named_parameters()}
    fill(iter(head.items()), case["weight_seed"] + 700)
    cls = tensor(case["cls_states"]).requires_grad_()
    views, hidden, below = {}, [], tensor(case["auxiliary_states"])
    for first, name in enumerate(("anchor", "positive")):
        own = slice(first, None, 2)
        parts = (case["mlm_input_ids"], case["attention_mask"], case["mlm_labels"])
        tokens = packed(*(each[own] for each in parts))
        states = torch.full((len(tokens.ids), 8), 7.0, dtype=torch.float64)
        views[name] = states_of(tokens, states.index_copy(0, tokens.offsets[:-1], cls[own]))
        hidden.append(tokens)
        (lower,) = part._lower
        found = lower(lower.word_embeddings(tokens.ids), tokens.positions, tokens.offsets).last
        kept = torch.tensor(case["attention_mask"][own]).bool()
        assert torch.allclose(found, below[own][kept], rtol=0, atol=BOUND)
    monkeypatch.setattr(part._mask, "hide", lambda *_: hidden.pop(0))
    sums = part.sums(views, make_context())
    value = sums.total / sums.count
    assert float(value.detach()) == pytest.approx(case["auxiliary_mlm_loss"], abs=BOUND)
    (case["mlm_weight"] * value).backward()
    # Of the state of a sentence the file has the gradient of both losses; of the rest, of this one.
    for wanted, name in (
        (layers["0.attention.self.query.weight"], "grad_query_of_first_head_layer"),
        (head["bias"], "grad_head_bias"),
    ):
        assert torch.allclose(wanted.grad, tensor(case[name]), rtol=0, atol=BOUND), name
    assert cls.grad is not None and bool((cls.grad != 0).any())
    assert all(each.grad is None for each in lower.parameters())


def uniform(name: str, tokens: TokenBatch) -> Tensor:
    return hashed_uniform(
        sum(map(ord, name)), tokens.owner[tokens.row_of_token()], tokens.positions
    )


def test_beside_a_loop_over_rows_and_tokens() -> None:
    tokenizer = tiny_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer.hf), hidden_size=8, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=12, max_position_embeddings=40,
    )  # fmt: skip
    torch.manual_seed(3)
    whole = BertForMaskedLM(copy.deepcopy(config)).double().eval()
    plain = BertModel(config, add_pooling_layer=False).double().eval()
    plain.load_state_dict(whole.bert.state_dict())
    part = made(whole, lower=2, layers=1, probability=0.5)
    layer = BertModel(config).double().eval().encoder.layer[0]
    layer.load_state_dict(part.upper.layers()[0].state_dict())
    assert not torch.allclose(
        layer.output.dense.weight, plain.encoder.layer[0].output.dense.weight
    ), "its layers are drawn again"
    texts = {
        "anchor": ["the boat leaves a green harbour", "anna paints"],
        "positive": ["the old boat"],
    }
    views, total, count = {}, 0.0, 0
    for name, said in texts.items():
        tokens = tokenizer.wrap(tokenizer.content(said))
        states = torch.randn(len(tokens.ids), 8, dtype=torch.float64, requires_grad=True)
        views[name] = states_of(tokens, states)
        draws = {w: uniform(f"{w} {name}", tokens).tolist() for w in ("chosen", "how", "what")}
        for start, stop in zip(
            tokens.offsets[:-1].tolist(), tokens.offsets[1:].tolist(), strict=True
        ):
            seen, asked = tokens.ids[start:stop].clone(), []
            for place in range(start, stop):
                if draws["chosen"][place] < 0.5 and not tokens.special[place]:
                    asked.append(place - start)
                    if draws["how"][place] < 0.8:
                        seen[place - start] = tokenizer.hf.mask_token_id
                    elif draws["how"][place] < 0.9:
                        seen[place - start] = int(draws["what"][place] * len(tokenizer.hf))
            below = plain(input_ids=seen[None], output_hidden_states=True).hidden_states[2].detach()
            above = layer(torch.cat([states[start][None, None], below[:, 1:]], dim=1))
            above = above[0] if isinstance(above, tuple) else above
            for place in asked:
                logits = part.head(above[0, place : place + 1])
                total = total + cross_entropy(logits, tokens.ids[start + place][None])
                count += 1
    sums = part.sums(views, make_context(uniform=uniform))
    assert int(sums.count) == count > 3
    assert abs(float((sums.total - total).detach())) < 1e-12
    reached = [view.states for view in views.values()]
    for found, wanted in zip(
        torch.autograd.grad(sums.total, reached), torch.autograd.grad(total, reached), strict=True
    ):
        assert torch.allclose(found, wanted, rtol=0, atol=1e-12)
    first = views["anchor"].tokens.offsets[:-1]
    assert int((found.abs().sum(dim=1) > 0).sum()) == 1 and len(first) == 2, (
        "the first states alone"
    )


def test_in_a_run_its_layers_train_and_the_lower_ones_stay() -> None:
    kinds: Any = {"loss": ["infonce", "+auxiliary-mlm"], "pool": ["cls"]}
    sets = ["train.batch_size=4", "views.positive.column=text", "train.lr=1e-2"]
    rig = run_steps(kinds, [*sets, "loss.auxiliary-mlm.probability=0.5"], None, steps=2)
    part: Any = rig.session.parts["loss.auxiliary-mlm"]
    kept = part.state_dict()
    assert kept and all(n.startswith(("head.", "upper.model.encoder.layer.")) for n in kept)
    assert all(not each.requires_grad for each in part._lower[0].parameters())
    assert not part._lower[0].training
    with pytest.raises(CseError, match=r"auxiliary-mlm.lower: the model has \d layers.*at most"):
        run_steps(kinds, [*sets, "loss.auxiliary-mlm.lower=99"], None, steps=1)
