"""The authors' own code gave these numbers; the parts give the same.

Their mean counts padding as tokens that were not replaced, which rows without padding do not have:
what the file's padding adds is computed beside, by transformers' own model.
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from cse_diffcse.batch_norm import BatchNormMlp
from cse_diffcse.loss import ReplacedTokens
from cse_diffcse.options import BatchNormMlpOptions, ReplacedTokensOptions
from cse_testkit import make_batch, make_context, make_part, make_setup
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot
from transformers import AutoConfig, AutoModel

from cse_core.types import Hidden, StepContext, TokenBatch, TokenStates
from cse_defaults.transformers.encoder import PackedEncoder
from tests.fixtures.token_rows import packed
from tests.shared import fill, golden, tensor

BOUND = 1e-9
WORDS, SIZE = 24, 8


class Answers(nn.Module):
    """A generator that answers as the file says; it notes what it saw."""

    def __init__(self, answers: list[Tensor]) -> None:
        super().__init__()
        self.answers, self.seen = answers, list[Tensor]()

    def word_embeddings(self, ids: Tensor) -> Tensor:
        self.seen.append(ids)
        return ids

    def forward(self, words: Tensor, positions: Tensor, offsets: Tensor) -> Hidden:
        return Hidden(one_hot(self.answers[len(self.seen) - 1], WORDS).double())


class Case:
    """The parts of a case with its weights, and its rows as two views."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case, seed = case, case["weight_seed"]
        self.real = torch.tensor(case["attention_mask"]).bool()
        sizes = {**case["config"], "pad_token_id": case["pad_token_id"]}

        def model() -> Any:
            config = AutoConfig.for_model(case["encoder"], **sizes)
            return AutoModel.from_config(config, add_pooling_layer=False).double()

        self.plain = model()
        fill(self.plain.named_parameters(), seed)
        own = model()
        own.load_state_dict(self.plain.state_dict())
        self.generator = Answers([self.packed("generator_argmax", v) for v in (0, 1)])
        words = SimpleNamespace(mask_token_id=case["mask_token"], get_vocab=dict)
        words = type("Words", (), {**vars(words), "__len__": lambda _: WORDS,
                                   "get_vocab": lambda _: {}})()  # fmt: skip
        tokenizer: Any = SimpleNamespace(hf=words)
        setup = make_setup(
            encoder=PackedEncoder(own), tokenizer=tokenizer,
            load_masked_lm=lambda *_, **__: (self.generator, nn.Identity(), tokenizer),
        )  # fmt: skip
        self.loss = ReplacedTokens(ReplacedTokensOptions(), setup).double().eval()
        fill(self.loss.judge.named_parameters(), seed + 900)
        self.mapped = self._mapped(setup, seed + 500)

    def _mapped(self, setup: Any, seed: int) -> Any:
        if not self.case["batchnorm"]:
            dense = nn.Linear(SIZE, SIZE).double()
            fill(dense.named_parameters(), seed)
            return lambda vectors: torch.tanh(dense(vectors))
        made = BatchNormMlp(BatchNormMlpOptions(), setup).double()
        named = {
            "net.0.weight": made.enter.weight, "net.1.bias": made.shift,
            "net.1.weight": made.scale, "net.3.weight": made.leave.weight,
        }  # fmt: skip
        assert len(named) == len([*made.parameters()])
        fill(named.items(), seed)
        return made.mapped

    def packed(self, name: str, view: int) -> Tensor:
        """Return the ids of a view's real places, end to end."""
        return torch.tensor(self.case[name])[view::2][self.real[view::2]]

    def tokens(self, view: int) -> TokenBatch:
        made = packed(self.case["input_ids"][view::2], self.case["attention_mask"][view::2])
        special = torch.zeros_like(made.special)
        special[made.offsets[:-1]] = special[made.offsets[1:] - 1] = True
        return replace(made, special=special)

    def context(self) -> StepContext:
        """Return a context whose draws mask the places that the file masks."""
        masked = [self.packed("masked_input_ids", v) != self.packed("input_ids", v) for v in (0, 1)]

        def uniform(name: str, tokens: TokenBatch) -> Tensor:
            word, view = name.split()
            where = masked[int(view == "positive")]
            return torch.where(where, 0.0, 0.9) if word == "which" else torch.zeros(len(where))

        return make_context().replace(uniform=uniform)

    def of_padding(self, condition: Tensor) -> Tensor:
        """Return the cross entropies of the padding, which has label 0, summed."""

        def begun(_: Any, __: Any, output: Tensor) -> Tensor:
            return torch.cat([condition[:, None], output[:, 1:]], dim=1)

        with self.plain.embeddings.register_forward_hook(begun):
            states = self.plain(
                input_ids=torch.tensor(self.case["discriminator_input_ids"]),
                attention_mask=self.real.long(),
            )[0]
        scores = self.loss.judge(states[~self.real])
        return cross_entropy(scores, torch.zeros(len(scores)).long(), reduction="sum")


@pytest.mark.parametrize("number", range(3))
def test_values_and_gradients(number: int) -> None:
    case = golden("goldA")["diffcse"]["cases"][number]
    made = Case(case)
    before = tensor(case["sentence_vectors_before_mlp"]).requires_grad_()
    after = made.mapped(before)
    after.retain_grad()
    assert torch.allclose(after, tensor(case["vectors_after_mlp"]), rtol=0, atol=BOUND)
    condition = before if case["before_mlp"] else after
    views = {}
    for v, name in enumerate(("anchor", "positive")):
        tokens, vectors = made.tokens(v), condition[v::2]
        views[name] = TokenStates(
            tokens=tokens, states=vectors, vectors=vectors, place=torch.arange(tokens.rows),
            labelled=torch.zeros(0, dtype=torch.long),
        )  # fmt: skip
        ids = made.packed("discriminator_input_ids", v)
        states = made.loss._read(ids, tokens, vectors)
        wanted = tensor(case["discriminator_states"])[v::2][made.real[v::2]]
        assert torch.allclose(states, wanted, rtol=0, atol=BOUND)
        wanted = tensor(case["scores"])[v::2][made.real[v::2]]
        assert torch.allclose(made.loss.judge(states), wanted, rtol=0, atol=BOUND)
    sums = made.loss.sums(views, made.context())
    for v, seen in enumerate(made.generator.seen):
        assert torch.equal(seen, made.packed("masked_input_ids", v))
    labels = torch.tensor(case["labels_replaced"])
    assert float(sums.parts["replaced"]) == int(labels.sum())
    assert int(sums.count) == int(made.real.sum())
    replaced = (sums.total + made.of_padding(condition)) / made.real.numel()
    assert float(replaced.detach()) == pytest.approx(case["replaced_token_loss"], rel=0, abs=BOUND)
    batch = make_batch({"anchor": after[::2], "positive": after[1::2]})
    infonce, ctx = make_part("loss", "infonce", temperature=case["temp"]), make_context(batch)
    given = batch.targets["positive"], ctx.negatives(batch, infonce.options), ctx
    contrastive = infonce(batch, *given).value
    assert float(contrastive.detach()) == pytest.approx(case["contrastive_loss"], abs=BOUND)
    value = contrastive + case["lambda_weight"] * replaced
    assert float(value.detach()) == pytest.approx(case["loss"], rel=0, abs=BOUND)
    value.backward()
    queries = [
        model.encoder.layer[-1].attention.self.query.weight.grad
        for model in (made.plain, made.loss.discriminator.model)
    ]
    for found, name in (
        (before.grad, "sentence_vectors_before_mlp"),
        (after.grad, "vectors_after_mlp"),
        (made.loss.judge.weight.grad, "electra_head_weight"),
        (queries[0] + queries[1], "discriminator_query_of_last_layer"),
    ):
        wanted = tensor(case[f"grad_{name}"])
        print(case["name"], name, float((found - wanted).abs().max()))
        assert torch.allclose(found, wanted, rtol=0, atol=BOUND), name
