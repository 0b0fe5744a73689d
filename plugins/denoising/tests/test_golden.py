"""Sentence-transformers' own code gave these numbers; the loss gives the same."""

from typing import Any

import numpy as np
import pytest
import torch
from cse_denoising.loss import Reconstruction
from cse_denoising.options import ReconstructionOptions
from cse_testkit import make_context, make_setup, tiny_tokenizer
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from cse_core.types import TokenBatch, TokenStates
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.masked_lm import Head
from tests.fixtures.token_rows import packed
from tests.shared import golden, tensor

BOUND = 1e-9


class Wrapping:
    """The tokenizer of a case: what stands before and behind its rows."""

    def __init__(self, start: int, end: int) -> None:
        self.before, self.after = [start], [end]
        self.prompt_ids = lambda text: []

    def wrap(self, content: TokenBatch, *_: Any) -> TokenBatch:
        return type(tiny_tokenizer()).wrap(self, content)  # type: ignore[arg-type]


def filled(names: list[str], shapes: dict[str, Any], seed: int) -> dict[str, Tensor]:
    """Return the file's weights by name."""
    found = {}
    for j, name in enumerate(names):
        values = 0.25 * np.random.RandomState(seed + j).standard_normal(shapes[name])
        if "norm" in name.lower() and name.endswith("weight"):
            values = 1 + 0.4 * values
        found[name] = torch.tensor(values)
    return found


class Case:
    """A case's encoder, decoder and rows."""

    def __init__(self, case: dict[str, Any]) -> None:
        family, sizes = case["encoder"], {**case["config"], "pad_token_id": case["pad_token_id"]}
        self.prefix = f"{family}."
        config = AutoConfig.for_model(family, **sizes)
        writer = AutoConfig.for_model(family, **sizes, is_decoder=True, add_cross_attention=True)
        shapes = {n: tuple(p.shape) for n, p in AutoModelForCausalLM.from_config(writer)
                  .named_parameters()}  # fmt: skip
        self.weights = filled(case["parameter_names_decoder"], shapes,
                              case["weight_seed_decoder"])  # fmt: skip
        whole = AutoModelForMaskedLM.from_config(config).double()
        self._load(whole, self.weights)
        copy = PackedEncoder(getattr(whole, whole.base_model_prefix))
        head = Head(whole, True)
        tied = case["tie_encoder_decoder"]
        self.encoder = copy
        if not tied:
            own = AutoModelForMaskedLM.from_config(AutoConfig.for_model(family, **sizes))
            own = own.double().base_model
            shapes = {n: tuple(p.shape) for n, p in own.named_parameters()}
            shapes |= {"pooler.dense.weight": (8, 8), "pooler.dense.bias": (8,)}
            names = case["parameter_names_encoder"]
            self._load(own, filled(names, shapes, case["weight_seed_encoder"]))
            self.encoder = PackedEncoder(own)
        first = case["target_input_ids"][0]
        end = first[[*first, case["pad_token_id"]].index(case["pad_token_id"]) - 1]
        setup = make_setup(
            encoder=self.encoder, load_masked_lm=lambda: (copy, head, None),
            tokenizer=Wrapping(first[0], end),
        )  # fmt: skip
        options = ReconstructionOptions(decoder="tied" if tied else "copy")
        self.loss = Reconstruction(options, setup).double().eval()
        for i, (cross, norm) in enumerate(
            zip(self.loss.decoder.cross, self.loss.decoder.norms, strict=True)
        ):
            here = f"{self.prefix}encoder.layer.{i}.crossattention."
            for to, where in ((cross.value, "self.value"), (cross.dense, "output.dense"),
                              (norm, "output.LayerNorm")):  # fmt: skip
                to.load_state_dict(
                    {k: self.weights[f"{here}{where}.{k}"] for k in ("weight", "bias")}
                )
        pad = case["pad_token_id"]
        targets = case["target_input_ids"]
        self.targets = packed(targets, [[int(i != pad) for i in row] for row in targets])
        self.noisy = packed(case["noisy_input_ids"], case["noisy_attention_mask"])
        self.pooling = case["pooling"]

    def _load(self, model: nn.Module, weights: dict[str, Tensor]) -> None:
        there = {name for name, _ in model.named_parameters()}
        missing, _ = model.load_state_dict(weights, strict=False)
        assert there.isdisjoint(missing) or {*missing} & there <= {"cls.predictions.decoder.bias"}

    def value(self) -> tuple[Tensor, Tensor]:
        """Return the loss and the sentence vectors behind it."""
        noisy = self.noisy
        words = self.encoder.word_embeddings(noisy.ids)
        states = self.encoder(words, noisy.positions, noisy.offsets).last
        if self.pooling == "cls":
            vectors = states[noisy.offsets[:-1]]
        else:
            vectors = torch.stack([part.mean(0) for part in states.split(noisy.lengths.tolist())])
        vectors.retain_grad()
        inner = torch.ones(len(self.targets.ids), dtype=torch.bool)
        inner[self.targets.offsets[:-1]] = inner[self.targets.offsets[1:] - 1] = False
        content = self.targets.keep_tokens(inner)
        view = TokenStates(
            tokens=noisy, states=states, vectors=vectors, place=torch.arange(noisy.rows),
            labelled=torch.zeros(0, dtype=torch.long),
        )  # fmt: skip
        ctx = make_context().replace(tokens=lambda column: content)
        found = self.loss.sums({"anchor": view}, ctx)
        return found.total / found.count, vectors


@pytest.mark.parametrize("name", ["bert_tied_cls", "bert_untied_mean"])
def test_loss_and_gradients(name: str) -> None:
    case = next(each for each in golden("goldA")["tsdae"]["cases"] if each["name"] == name)
    made = Case(case)
    value, vectors = made.value()
    assert torch.allclose(vectors, tensor(case["sentence_vectors"]), rtol=0, atol=BOUND)
    assert float(value.detach()) == pytest.approx(case["loss"], rel=0, abs=BOUND)
    value.backward()
    loss = made.loss
    (reader,) = loss.decoder._encoder
    for found, wanted in (
        (vectors, "grad_sentence_vectors"),
        (reader.model.get_input_embeddings().weight, "grad_word_embeddings_of_decoder"),
        (reader.model.encoder.layer[0].attention.self.query.weight,
         "grad_decoder_self_attention_query_of_layer_0"),
        (loss.decoder.cross[0].value.weight, "grad_cross_attention_value_of_layer_0"),
        (made.encoder.model.get_input_embeddings().weight, "grad_encoder_word_embeddings"),
    ):  # fmt: skip
        if wanted in case:
            gradient = found.grad
            print(name, wanted, float((gradient - tensor(case[wanted])).abs().max()))
            assert torch.allclose(gradient, tensor(case[wanted]), rtol=0, atol=BOUND), wanted
