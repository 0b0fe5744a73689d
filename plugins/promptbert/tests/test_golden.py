"""PromptBERT's and CoT-BERT's code, run unmodified, gave these numbers; the parts give the same.

Rows go through tokenizer, pooler, augmenter and encoder as in a run. For RoBERTa the positions of
templates are set to those of the published code, which are not those of the rows that they are
subtracted from (docs/methods/promptbert.md).
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from cse_promptbert.options import TemplateOptions
from cse_promptbert.template import TemplatePooler
from cse_testkit import make_batch, make_context, make_part, make_setup
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from cse_core.types import Embeddings, TokenBatch, View
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.tokenizer import TextTokenizer
from cse_engine.step.sentence_encoder import SentenceEncoder
from tests.shared import fill, golden, tensor

NAMES: tuple[Any, ...] = ("anchor", "positive", "negative")
CPU = torch.device("cpu")


def tokenizer_of(case: dict[str, Any]) -> TextTokenizer:
    """Return a vocabulary of numbered words with the file's special tokens."""
    special = {f"[{name.upper()}]": number for name, number in case["token_ids"].items()}
    words = {f"w{i}": i for i in range(case["config"]["vocab_size"]) if i not in special.values()}
    made = Tokenizer(models.WordLevel(special | words, unk_token="[PAD]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens([AddedToken(token) for token in special])
    ends = [(token, special[token]) for token in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    hf = PreTrainedTokenizerFast(
        tokenizer_object=made, mask_token="[MASK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]",
    )  # fmt: skip
    return TextTokenizer(hf)


class Case:
    """A case of the file: its encoder with the template pooler, and its rows."""

    def __init__(self, case: dict[str, Any], gap: str) -> None:
        self.case, self.gap, self.roberta = case, gap, case["encoder"] == "roberta"
        family: Any = transformers.RobertaModel if self.roberta else transformers.BertModel
        model = family(family.config_class(**case["config"]), add_pooling_layer=False).double()
        fill(model.named_parameters(), case["weight_seed"])
        self.tokenizer = tokenizer_of(case)
        mask = case["token_ids"]["mask"]

        def words(ids: list[int]) -> str:
            return " ".join("[MASK]" if i == mask else f"w{i}" for i in ids)

        templates: dict[str, Any] = {
            name: f"{words(template['before'])} [X] {words(template['after'])}"
            for name, template in zip(NAMES, case["templates"], strict=False)
        }
        options = TemplateOptions(**templates, full_stop=False, leading_space=False)
        pooler = TemplatePooler(options, make_setup("template", tokenizer=self.tokenizer))
        self.encoder = SentenceEncoder(PackedEncoder(model), self.tokenizer, pooler, {}, 160)
        given = [s if isinstance(s[0], list) else [s] for s in case["sentences"]]
        self.texts = [[words(ids) for ids in row] for row in given]
        self.only = make_part("aug", "template-only", gap=gap)
        self.only._padding = case["token_ids"]["pad"]

    def rows(self, place: int, name: str) -> TokenBatch:
        texts = [row[place] for row in self.texts]
        return self.encoder.rows(self.tokenizer.content(texts), name)

    def templates(self, place: int, name: str) -> TokenBatch:
        """Return the templates of a view as the part makes them, by the code's positions."""
        view = View(f"{name}-template", "aux", "online")
        rows = self.rows(place, view.name)
        made: TokenBatch = self.only(rows, rows, view, make_context())
        if not self.roberta:
            return made
        if self.gap == "positions":
            return replace(made, positions=made.positions - 2)  # from 0, and a row's from 2
        text = ~made.special
        before = torch.cumsum(text, 0) - text.long()
        starts = before[made.offsets[:-1]].repeat_interleave(made.lengths)
        moved = made.positions - (before - starts)  # padding gets the padding position, 1
        return replace(made, positions=moved.masked_fill(text, -1))

    def embed(self, tokens: TokenBatch) -> Embeddings:
        return self.encoder.embed(tokens, CPU, tokens.rows)["sentence"]


@pytest.mark.parametrize(("method", "gap"), [("promptbert", "positions"), ("cotbert", "padding")])
def test_states_vectors_loss_and_gradients_of_training(method: str, gap: str) -> None:
    given = golden("goldB")[method]
    cases = [case for case in given["cases"] if "loss" in case]
    assert len(cases) == 2 and {case["encoder"] for case in cases} == {"bert", "roberta"}

    def near(found: Tensor, wanted: Any) -> None:
        torch.testing.assert_close(found, tensor(wanted), rtol=0, atol=given["suggested_atol"])

    for case in cases:
        made, names = Case(case, gap), NAMES[: len(case["templates"])]
        assert made.encoder.encoder.packed
        views = {}
        for place, name in enumerate(names):
            rows = made.rows(place, name)
            for row, ids in enumerate(case["input_ids"]):
                there = [i for i in ids[place] if i != case["token_ids"]["pad"]]
                assert there == rows.ids[rows.offsets[row] : rows.offsets[row + 1]].tolist()
            views[name] = made.embed(rows)
            views[f"{name}-template"] = made.embed(made.templates(place, name))
            near(views[name].vectors, [row[place] for row in case["mask_states"]])
            wanted = [row[place] for row in case["template_states"]]
            near(views[f"{name}-template"].vectors, wanted)
        part = make_part("transform", "template-denoising", views=names)
        fill(part.named_parameters(), case["weight_seed"] + 500)
        after = part(views, make_context())
        assert set(after) == {*names}
        for place, name in enumerate(names):
            after[name].vectors.retain_grad()
            near(after[name].vectors, [row[place] for row in case["vectors_after_mlp"]])
        vectors = {name: after[name].vectors for name in names}
        batch = make_batch(vectors, views={name: name for name in names[1:]})
        kind = "infonce" if method == "promptbert" else "extended-infonce"
        loss = make_part("loss", kind, temperature=case["temp"])
        ctx = make_context(batch)
        negatives = ctx.negatives(batch, loss.options)
        value = loss(batch, batch.targets["positive"], negatives, ctx).value
        near(value, case["loss"])
        value.backward()
        for place, name in enumerate(names):
            near(vectors[name].grad, [row[place] for row in case["grad_vectors_after_mlp"]])
        near(part.dense.weight.grad, case["grad_mlp_weight"])
        words = made.encoder.encoder.model.embeddings.word_embeddings.weight.grad
        near(words[:6], case["grad_first_word_rows"])


def test_vectors_of_the_evaluation() -> None:
    """With denoising on PromptBERT's dev set, without it on test sets; never the dense layer."""
    found = []
    for method in ("promptbert", "cotbert"):
        given = golden("goldB")[method]
        for case in (case for case in given["cases"] if "vectors" in case):
            made = Case(case, "positions")
            view = {"anchor": made.embed(made.rows(0, "anchor"))}
            if not case["options"]:
                view["anchor-template"] = made.embed(made.templates(0, "anchor"))
                options: Any = {"views": ("anchor",), "projection": "none"}
                part = make_part("transform", "template-denoising", **options)
                view = part(view, make_context())
            vectors = view["anchor"].vectors
            atol = given["suggested_atol"]
            torch.testing.assert_close(vectors, tensor(case["vectors"]), rtol=0, atol=atol)
            found.append(bool(case["options"]))
    assert sorted(found) == [False, True, True]
